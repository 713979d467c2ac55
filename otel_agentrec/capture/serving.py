"""The sockets of ``serve``: OTLP/HTTP by uvicorn, OTLP/gRPC by grpcio, one receiver behind both."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from otel_agentrec.capture import otlp_protobuf, receiving
from otel_agentrec.capture.received import Receiver
from otel_agentrec.errors import AgentRecError, ExtraMissing, UsageError

__all__ = ["GRACE", "Access", "Servers"]

GRACE = 10.0
"""Seconds that requests under way have when the server stops."""
MAX_WAITING = 64
"""Requests that may wait for the receiver; beyond it the sender is asked to come again."""

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Access:
    """Who may send what. ``token``: asked for as ``Authorization: Bearer``; ``cert`` and ``key``: PEM files for TLS."""

    token: str | None = None
    cert: str | None = None
    key: str | None = None
    max_body: int = receiving.MAX_BODY


class _Pool(ThreadPoolExecutor):
    """The threads that do the work. ``waiting``: how much of it is not done."""

    def __init__(self) -> None:
        super().__init__(4, thread_name_prefix="agentrec-serve")
        self.waiting = 0
        self._counting = threading.Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        with self._counting:
            self.waiting += 1
        try:
            future = super().submit(fn, *args, **kwargs)
        except BaseException:
            self._done(None)
            raise
        future.add_done_callback(self._done)
        return future

    def _done(self, _: object) -> None:
        with self._counting:
            self.waiting -= 1


class HttpApp:
    """The ASGI app. Bodies are read no further than ``max_body``; the work is done on threads."""

    def __init__(self, receiver: Receiver, access: Access, pool: ThreadPoolExecutor) -> None:
        self._receiver = receiver
        self._access = access
        self._pool = pool
        self._waiting = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        method, path = scope["method"], scope["path"]
        if path == "/healthz" and method in ("GET", "HEAD"):
            counts = {"status": "ok", **self._receiver.counters}
            await _reply(send, receiving.Answer(200, json.dumps(counts).encode(), "application/json"))
            return
        await _reply(send, await self._answer(method, path, headers, receive))

    async def _answer(self, method: str, path: str, headers: dict[str, str], receive: Receive) -> receiving.Answer:
        kind = headers.get("content-type", "")
        signal = receiving.SIGNALS.get(path)
        if signal is None or method != "POST":
            return receiving.not_found(path)
        if not receiving.allowed(headers.get("authorization"), self._access.token):
            return receiving.unauthorized(kind)
        if self._waiting >= MAX_WAITING:
            return receiving.busy(kind)
        self._waiting += 1
        try:
            body = await _read(receive, self._access.max_body)
            if body is None:
                return receiving.too_large(kind, self._access.max_body)
            encoding = headers.get("content-encoding", "")
            limit = self._access.max_body
            work = functools.partial(receiving.answer, self._receiver, signal, body, kind, encoding, limit)
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1


class Servers:
    """Both servers, each on threads of its own. A port of 0 takes a free one, None starts no such server.

    Raises:
        ExtraMissing: uvicorn is not installed.
        AgentRecError: an address can't be taken, or a TLS file can't be used.
    """

    def __init__(self, receiver: Receiver, host: str, port: int | None, grpc_port: int | None, access: Access) -> None:
        self._receiver = receiver
        self._pool = _Pool()
        self._http: Any = None
        self._grpc: Any = None
        self.port = self.grpc_port = 0
        try:
            if port is not None:
                self._start_http(host, port, access)
            if grpc_port is not None:
                self._start_grpc(host, grpc_port, access)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Take no new requests, finish those under way, and seal the recording."""
        stopping = self._grpc.stop(GRACE) if self._grpc is not None else None
        if self._http is not None:
            self._http.should_exit = True
            self._thread.join(GRACE + 5)
        if stopping is not None:
            stopping.wait(GRACE + 5)
        self._pool.shutdown()
        self._receiver.close()

    # --- HTTP ---

    def _start_http(self, host: str, port: int, access: Access) -> None:
        try:
            import uvicorn
        except ImportError:
            raise ExtraMissing("otel-agentrec serve", "web") from None
        app = HttpApp(self._receiver, access, self._pool)
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=int(GRACE),
            ssl_certfile=access.cert,
            ssl_keyfile=access.key,
        )
        try:
            config.load()
            listening = config.bind_socket()
            listening.listen(config.backlog)  # uvicorn does so only once its loop runs: it would refuse until then
        except SystemExit:  # what uvicorn does about an address that is taken
            raise _not_taken(host, port) from None
        except (OSError, ValueError) as e:
            raise UsageError(f"TLS can't be set up: {e}", "give PEM files with --tls-cert and --tls-key") from None
        self.port = listening.getsockname()[1]
        self._http = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._http.run, kwargs={"sockets": [listening]}, name="agentrec-http", daemon=True
        )
        self._thread.start()

    # --- gRPC ---

    def _start_grpc(self, host: str, port: int, access: Access) -> None:
        import grpc  # type: ignore[import-untyped]

        server = grpc.server(
            self._pool,
            options=[
                ("grpc.max_receive_message_length", access.max_body),
                ("grpc.so_reuseport", 0),
            ],
            # What is refused by this is not sent again by every exporter; calls are refused below, long before.
            maximum_concurrent_rpcs=8 * MAX_WAITING,
        )
        for signal, service in _SERVICES.items():
            handler = grpc.unary_unary_rpc_method_handler(self._handler(signal, access.token))
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if access.cert and access.key:
                with open(access.key, "rb") as key, open(access.cert, "rb") as cert:
                    credentials = grpc.ssl_server_credentials([(key.read(), cert.read())])
                self.grpc_port = server.add_secure_port(address, credentials)
            else:
                self.grpc_port = server.add_insecure_port(address)
        except RuntimeError:
            raise _not_taken(host, port) from None
        except OSError as e:
            raise UsageError(f"{e.filename}: {e.strerror}", "give PEM files with --tls-cert and --tls-key") from None
        server.start()
        self._grpc = server

    def _handler(self, signal: str, token: str | None) -> Callable[[bytes, Any], bytes]:
        import grpc

        def call(body: bytes, context: Any) -> bytes:
            metadata = dict(context.invocation_metadata())
            if not receiving.allowed(metadata.get("authorization"), token):
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "a token is asked for: authorization: Bearer TOKEN")
            if self._pool.waiting > MAX_WAITING:
                context.abort(grpc.StatusCode.UNAVAILABLE, "too many requests wait: send it again")
            outcome = receiving.export(self._receiver, signal, otlp_protobuf.decode(body))
            if not outcome.stored:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the recording can't be written just now: send it again")
            return bytes(receiving.response_of(signal, outcome).SerializeToString())

        return call


_SERVICES = {
    signal: f"opentelemetry.proto.collector.{one}.v1.{one.capitalize()}Service"
    for signal, one in (("traces", "trace"), ("logs", "logs"), ("metrics", "metrics"))
}


async def _read(receive: Receive, limit: int) -> bytes | None:
    """The body of a request, or None when it is longer than ``limit``."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":  # the sender has gone
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > limit:
            return None
        if not message.get("more_body"):
            return bytes(body)


async def _reply(send: Send, answer: receiving.Answer) -> None:
    headers = {"content-type": answer.content_type, "content-length": str(len(answer.body)), **answer.headers}
    pairs = [(k.encode(), v.encode()) for k, v in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
    await send({"type": "http.response.body", "body": answer.body})


def _not_taken(host: str, port: int) -> AgentRecError:
    return AgentRecError(f"{host}:{port} can't be listened on", "is it taken? give another with --port or --grpc-port")
