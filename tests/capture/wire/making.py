"""Exchanges made by hand, as an interception point would tell them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture.processors import AgentRecSpanProcessor
from otel_agentrec.capture.wire.recorder import WireRecorder
from otel_agentrec.nodes.exchange import Exchange, ModelRequest, RecordedResponse, SpanRef
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.nodes.wire import WireRecord, read_wire
from otel_agentrec.records import NodeIoRecord

Json = Any
JSON = (("content-type", "application/json"),)
EVENTS = (("content-type", "text/event-stream"),)
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}


def said(text: str, ident: str = "r1", model: str = "m") -> dict[str, Json]:
    """A chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    return {"id": ident, "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}


def asking(text: str) -> list[Json]:
    return [{"role": "user", "content": text}]


def body_of(text: str, **more: Json) -> bytes:
    return json.dumps({"model": "m", "messages": asking(text), **more}).encode()


def request_of(body: bytes, **more: Any) -> ModelRequest:
    """A request as it leaves now, from where the program stands."""
    context = trace.get_current_span().get_span_context()
    here = SpanRef(f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None
    told: dict[str, Any] = {
        "method": "POST", "host": "api.example.com", "path": "/v1/chat/completions", "query": (),
        "headers": {"content-type": "application/json"}, "body": body, "api": "openai.chat", "library": "httpx2",
        "started_ns": time.time_ns(), "span": here,
    }  # fmt: skip
    return ModelRequest(**{**told, **more})


def answer(value: Json, status: int = 200, **more: Any) -> RecordedResponse:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    told: dict[str, Any] = {"headers": JSON, "chunks": ((1_000_000, data),) if data else ()}
    return RecordedResponse(status, **{**told, **more})


def attributes(text: str, model: str = "m") -> dict[str, str]:
    """A model span that tells what was asked."""
    messages = [{"role": "user", "parts": [{"type": "text", "content": text}]}]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model,
        "gen_ai.input.messages": json.dumps(messages),
    }


def answered(text: str, ident: str | None = None) -> dict[str, str]:
    """What it tells besides when it ends."""
    parts = [{"type": "text", "content": text}]
    told = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts, "finish_reason": "stop"}])}
    return told if ident is None else {**told, "gen_ai.response.id": ident}


class Wired:
    """A provider with our processor, the wire on, and no interception point."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.processor = AgentRecSpanProcessor(path, wire=True, **settings)
        self.provider.add_span_processor(self.processor)
        self.tracer = self.provider.get_tracer("demo")
        self.recorder = self.processor.recorder

    @property
    def wire(self) -> WireRecorder:
        assert self.recorder._wire is not None
        return self.recorder._wire

    def leave(self, body: bytes, **more: Any) -> ModelRequest:
        request = request_of(body, **more)
        self.wire.started(request)
        return request

    def end(self, request: ModelRequest, response: RecordedResponse) -> None:
        self.wire.ended(Exchange(request, response, time.time_ns()))

    def call(self, body: bytes, response: RecordedResponse, **more: Any) -> None:
        self.end(self.leave(body, **more), response)

    def wires(self) -> list[WireRecord]:
        """Closes the recording; what stands in it."""
        self.recorder.shutdown()
        assert self.recorder.stats()["swallowed"] == 0, self.recorder.stats()
        return list(read_wire(self.path))

    def records(self) -> list[NodeIoRecord]:
        self.recorder.shutdown()
        assert self.recorder.stats()["swallowed"] == 0, self.recorder.stats()
        return list(read_nodes(self.path))


def owners(records: list[NodeIoRecord]) -> Mapping[str, NodeIoRecord]:
    """wire id -> its record"""
    return {wire_id: record for record in records for wire_id in record.wire_ids}


def wired(path: Path, **settings: Any) -> Iterator[Wired]:
    one = Wired(path, **settings)
    yield one
    one.recorder.shutdown()
