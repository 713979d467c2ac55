"""A web app that records one tool call per request and answers with its id; WSGI for gunicorn, ASGI for uvicorn."""

from __future__ import annotations

import itertools
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from opentelemetry import trace

from otel_agentrec import configure

configure(os.environ["WORKER_RECORDING"])
tracer = trace.get_tracer("worker")
numbers = itertools.count()


def work() -> str:
    """One recorded call; what it returns was recorded before."""
    name = f"{os.getpid()}-{next(numbers)}"
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", "gen_ai.tool.call.id": name}
    with tracer.start_as_current_span("execute_tool t", attributes=attributes):
        pass
    return name


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [("content-type", "text/plain")])
    return [work().encode()]


async def asgi(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": work().encode()})
