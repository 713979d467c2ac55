"""OTLP receivers on loopback that keep what they are sent, and can misbehave."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

__all__ = ["GrpcSink", "HttpSink", "Request", "attributes", "until"]


def value(v: AnyValue) -> Any:
    which = v.WhichOneof("value")
    if which == "array_value":
        return [value(one) for one in v.array_value.values]
    if which == "kvlist_value":
        return {kv.key: value(kv.value) for kv in v.kvlist_value.values}
    return getattr(v, which) if which else None


def attributes(thing: Any) -> dict[str, Any]:
    """Of a protobuf span, log record or resource."""
    return {kv.key: value(kv.value) for kv in thing.attributes}


def until(what: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


@dataclass(frozen=True)
class Request:
    """As it came over HTTP: ``headers`` by lower-case name, ``body`` decompressed."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    def message(self) -> ExportTraceServiceRequest:
        return ExportTraceServiceRequest.FromString(self.body)


class _Sink:
    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        """Those that were taken; so are ``log_requests``."""
        self.log_requests: list[ExportLogsServiceRequest] = []
        self.delay = 0.0
        self.rejects = 0
        """Things in each request that it says it did not take."""

    @property
    def spans(self) -> list[Any]:
        return _spans(self.requests)

    @property
    def logs(self) -> list[Any]:
        return [x for r in self.log_requests for rl in r.resource_logs for sl in rl.scope_logs for x in sl.log_records]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [attributes(s) for s in self.spans if s.name == name]


def _spans(requests: Iterable[ExportTraceServiceRequest]) -> list[Any]:
    return [s for r in requests for rs in r.resource_spans for ss in rs.scope_spans for s in ss.spans]


def _answer(rejects: int) -> ExportTraceServiceResponse:
    """That for log records has the same bytes."""
    if not rejects:
        return ExportTraceServiceResponse()
    told = {"rejected_spans": rejects, "error_message": "too old"}
    return ExportTraceServiceResponse(partial_success=told)  # type: ignore[arg-type]


class HttpSink(_Sink):
    """``port`` 0 takes a free one. Below any path: hosted backends have one of their own before ``/v1/traces``."""

    def __init__(self, port: int = 0) -> None:
        super().__init__()
        self.came: list[Request] = []
        """All requests, also those that were refused."""
        self.status = 200
        self.most = 1 << 40
        """Bytes of a request beyond which it is refused."""
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                time.sleep(sink.delay)
                sink.came.append(Request(self.path, {name.lower(): held for name, held in self.headers.items()}, body))
                status = 413 if len(body) > sink.most else sink.status
                if status == 200 and self.path.endswith("/v1/traces"):
                    sink.requests.append(ExportTraceServiceRequest.FromString(body))
                elif status == 200 and self.path.endswith("/v1/logs"):
                    sink.log_requests.append(ExportLogsServiceRequest.FromString(body))
                said = _answer(sink.rejects).SerializeToString() if status == 200 else b""
                try:
                    self.send_response(status)
                    self.send_header("content-length", str(len(said)))
                    self.end_headers()
                    self.wfile.write(said)
                except OSError:  # who asked has gone
                    pass

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def wait_for(self, count: int) -> list[Any]:
        """All spans that came, also in requests that were refused, once there are at least ``count``."""
        until(lambda: len(_spans(one.message() for one in list(self.came))) >= count, 30)
        return _spans(one.message() for one in list(self.came))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class GrpcSink(_Sink):
    """With gRPC's own limit of 4 MiB for a message."""

    def __init__(self) -> None:
        import grpc
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as traces

        super().__init__()
        sink = self

        class Traces(traces.TraceServiceServicer):
            def Export(self, request: Any, context: Any) -> Any:
                time.sleep(sink.delay)
                sink.requests.append(request)
                return _answer(sink.rejects)

        class Logs(logs.LogsServiceServicer):
            def Export(self, request: Any, context: Any) -> Any:
                sink.log_requests.append(request)
                return ExportLogsServiceResponse()

        self._server = grpc.server(ThreadPoolExecutor(2))
        traces.add_TraceServiceServicer_to_server(Traces(), self._server)
        logs.add_LogsServiceServicer_to_server(Logs(), self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        self.url = f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.stop(0).wait()
