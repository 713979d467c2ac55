"""What the tests of the HTTP points share: a loopback server that sends exact bytes, a watcher, a tape, the libraries."""

from __future__ import annotations

import gzip
import importlib.util
import socket
import struct
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from otel_agentrec.errors import ReplayDivergence
from otel_agentrec.intercept.protocol import PASS, Exchange, ModelRequest, Pass, RecordedResponse

CHAT = "/v1/chat/completions"
LIBRARIES = [
    pytest.param(
        name, marks=pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed")
    )
    for name in ("httpx", "httpx2")
]


class Watcher:
    """A ``WireObserver`` that keeps what it is told."""

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []
        self.seen: list[Exchange] = []

    def started(self, request: ModelRequest) -> None:
        self.asked.append(request)

    def ended(self, exchange: Exchange) -> None:
        self.seen.append(exchange)

    @property
    def only(self) -> Exchange:
        (exchange,) = self.seen
        return exchange

    def wait(self, count: int = 1, seconds: float = 5) -> list[Exchange]:
        deadline = time.monotonic() + seconds
        while len(self.seen) < count and time.monotonic() < deadline:
            time.sleep(0.002)
        return self.seen


class Tape:
    """A ``ModelAnswerer`` that answers equal requests with what was seen, in order; refuses all else."""

    def __init__(self, seen: Iterable[Exchange]) -> None:
        self.left: dict[Any, deque[RecordedResponse]] = defaultdict(deque)
        for exchange in seen:
            self.left[self._key(exchange.request)].append(exchange.response)

    @staticmethod
    def _key(request: ModelRequest) -> Any:
        return request.method, request.path, request.body

    def answer(self, request: ModelRequest) -> RecordedResponse | Pass:
        answers = self.left.get(self._key(request))
        if not answers:
            raise ReplayDivergence(f"nothing is recorded for {request.method} {request.path}")
        return answers.popleft()


class Fixed:
    """A ``ModelAnswerer`` that always answers the same."""

    def __init__(self, answer: RecordedResponse | Pass = PASS) -> None:
        self.given = answer
        self.asked: list[ModelRequest] = []

    def answer(self, request: ModelRequest) -> RecordedResponse | Pass:
        self.asked.append(request)
        return self.given


def bodies(exchanges: Iterable[Exchange]) -> list[bytes]:
    return [b"".join(chunk for _, chunk in exchange.response.chunks) for exchange in exchanges]


def chunks(exchange: Exchange) -> list[bytes]:
    return [chunk for _, chunk in exchange.response.chunks]


Route = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """One request at the server; ``body`` is what was sent."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    body: bytes
    site: Server

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        if self.headers.get("transfer-encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            self.body = b"".join(parts)
        else:
            self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        with self.site.lock:
            self.site.bodies.append(self.body)
            routes = self.site.routes.get(path)
            route = None if not routes else routes.popleft() if len(routes) > 1 else routes[0]
        if route is None:
            return self.whole(b'{"error": "no such path"}', status=404)
        try:
            return route(self)
        except OSError:
            self.close_connection = True
            return None

    do_GET = do_POST

    def whole(self, data: bytes, *, status: int = 200, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def stream(self, parts: Iterable[bytes], *, pause: float = 0.0, cut: bool = False, **headers: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        for at, part in enumerate(parts):
            if at and pause:
                time.sleep(pause)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        if cut:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class Server:
    """Answers by path; of several routes of a path each once, the last one for ever."""

    def __init__(self, routes: dict[str, Sequence[Route] | Route]) -> None:
        self.routes = {path: deque([given] if callable(given) else given) for path, given in routes.items()}
        self.bodies: list[bytes] = []
        self.lock = threading.Lock()

        class Here(Handler):
            site = self

        self._http = _Http(("127.0.0.1", 0), Here)
        self.host = f"127.0.0.1:{self._http.server_address[1]}"
        self.url = f"http://{self.host}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)


@contextmanager
def serving(route: Sequence[Route] | Route, path: str = CHAT) -> Iterator[Server]:
    with Server({path: route}) as server:
        yield server


EVENTS = [b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % n for n in range(5)] + [b"data: [DONE]\n\n"]
REPLY = b'{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi."}}]}'


def json_reply(handler: Handler) -> None:
    handler.whole(REPLY)


def gzip_reply(handler: Handler) -> None:
    handler.whole(gzip.compress(REPLY), content_encoding="gzip")


class Paced:
    """A route that sends an event every 50 ms and keeps when it sent each (``time.perf_counter()``)."""

    def __init__(self) -> None:
        self.sent: list[float] = []

    def __call__(self, handler: Handler) -> None:
        handler.stream(self._events(), pause=0.05)

    def _events(self) -> Iterator[bytes]:
        for event in EVENTS:
            yield event
            self.sent.append(time.perf_counter())

    def were_not_held_up(self, arrived: Sequence[float]) -> bool:
        """Whether each event but the last ones had arrived before the server sent the one after the next."""
        return all(at < later for at, later in zip(arrived, self.sent[2:], strict=False))


def event_stream(handler: Handler) -> None:
    handler.stream(EVENTS, pause=0.002)
