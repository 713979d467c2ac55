"""A loopback server that speaks all providers' APIs and keeps, byte for byte, what it got and what it sent.

The first part of a path says how it behaves: ``/gzip/v1/chat/completions`` is answered as ``/v1/chat/completions`` is, zipped.
"""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from otel_agentrec.demo import apis
from otel_agentrec.demo.script import Turn, Usage

SAID = "Light rain from 15:00, so start early."
TURN = Turn(SAID, usage=Usage(12, 8))
PAUSE = {"abort": 0.1}
"""Seconds between two pieces of a stream, so that each arrives alone."""


@dataclass
class Sent:
    """One request, and the body of its response in the pieces in which it was written."""

    behaviour: str
    path: str
    asked: bytes
    status: int = 200
    pieces: list[bytes] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    log: list[Sent]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        behaviour, _, rest = self.path.partition("?")[0].lstrip("/").partition("/")
        sent = Sent(behaviour, self.path.partition("?")[0], raw)
        self.log.append(sent)
        found = apis.api_of(f"/{rest}", self.headers.get("user-agent") or "")
        if found is None:
            return self._whole(sent, 404, b"{}")
        api, model = found
        request = json.loads(raw)
        if behaviour == "error" or (behaviour == "retry" and sum(one.path == sent.path for one in self.log) == 1):
            status = 500 if behaviour == "error" else 429
            body, headers = api.error(status, "busy")
            return self._whole(sent, status, json.dumps(body).encode(), {"retry-after": "0", **headers})
        asked = api.read(request, model)
        if api.streams(f"/{rest}", request):
            pieces = list(api.stream(TURN, asked, f"{api.prefix}0001", 1, request))
            return self._stream(sent, pieces, api.content_type)
        body = json.dumps(api.whole(TURN, asked, f"{api.prefix}0001", 1, request)).encode()
        if behaviour == "gzip":
            return self._whole(sent, 200, gzip.compress(body), {"content-encoding": "gzip"})
        return self._whole(sent, 200, body)

    def _whole(self, sent: Sent, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self._head(status, {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})})
        sent.status = status
        sent.pieces.append(body)
        self.wfile.write(body)

    def _stream(self, sent: Sent, pieces: list[bytes], kind: str) -> None:
        self._head(200, {"content-type": kind, "transfer-encoding": "chunked"})
        try:
            for at, piece in enumerate(pieces):
                if sent.behaviour == "cut" and at == 3:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if at:
                    time.sleep(PAUSE.get(sent.behaviour, 0.01))
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                sent.pieces.append(piece)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True  # the client has gone

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


@contextmanager
def serving() -> Iterator[tuple[str, list[Sent]]]:
    """(its address, the log that it keeps)."""
    log: list[Sent] = []
    server = _Quiet(("127.0.0.1", 0), type("Logged", (Handler,), {"log": log}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", log
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
