"""Stands in for a hosted backend: an HTTP server on loopback that keeps every request as it came."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(frozen=True)
class Request:
    """``headers`` by lower-case name; ``body`` decompressed; ``sent`` as many bytes as it had on the wire."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    sent: int

    def message(self) -> ExportTraceServiceRequest:
        return ExportTraceServiceRequest.FromString(self.body)


@dataclass
class Receiver:
    """Answers every POST with ``status``; use it as a context manager."""

    status: int = 200
    delay: float = 0.0
    """Seconds before each answer."""
    requests: list[Request] = field(default_factory=list)

    def __enter__(self) -> Receiver:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                whole = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
                time.sleep(receiver.delay)
                receiver.requests.append(Request(self.path, headers, whole, len(body)))
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *why: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def spans(self) -> list[Span]:
        return [
            span
            for request in list(self.requests)
            for resource in request.message().resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def wait_for(self, count: int, seconds: float = 30.0) -> list[Span]:
        """All spans once there are at least ``count``.

        Raises:
            AssertionError: there were not within ``seconds``.
        """
        until = time.monotonic() + seconds
        while len(spans := self.spans()) < count:
            assert time.monotonic() < until, f"{len(spans)} spans came, not {count}"
            time.sleep(0.05)
        return spans
