"""Model calls as the official GenAI instrumentation tells of them, for tests of sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind

from otel_agentrec import AgentRecSpanProcessor

Json = Any


def message(role: str, text: str) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def system(text: str) -> Json:
    return message("system", text)


def user(text: str) -> Json:
    return message("user", text)


def assistant(text: str) -> Json:
    return message("assistant", text)


class Recorded:
    """A recorded program whose model calls name a conversation."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.processor = AgentRecSpanProcessor(str(path), **settings)
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(self.processor)

    def call(self, messages: list[Json], reply: Json | None, conversation: str | None = "c1", **more: Json) -> None:
        """One model call that ended. ``more``: further attributes, with ``__`` for dots."""
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-5-mini",
            **({} if conversation is None else {"gen_ai.conversation.id": conversation}),
            **{key.replace("__", "."): value for key, value in more.items()},
        }
        span = self.provider.get_tracer("opentelemetry.util.genai.handler").start_span(
            "chat gpt-5-mini", kind=SpanKind.CLIENT, attributes=attributes
        )
        span.set_attribute("gen_ai.input.messages", json.dumps(messages))
        if reply is not None:
            span.set_attribute("gen_ai.output.messages", json.dumps([reply]))
        span.end()

    def flush(self) -> None:
        assert self.processor.force_flush()

    def end(self) -> dict[str, int]:
        """Close the recording; -> what was counted."""
        self.processor.recorder.shutdown()
        counts: dict[str, int] = self.processor.recorder.stats()
        assert counts["swallowed"] == 0
        return counts
