"""Spans as the official GenAI instrumentation makes them, on a provider whose processor is under measurement."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.trace import SpanKind, use_span

Json = Any
SCOPE = "opentelemetry.util.genai.handler"
FOREIGN = "opentelemetry.instrumentation.sqlalchemy"


class HeldBack(SpanProcessor):
    """Tells ``inner`` of starts at once and keeps ended spans, so that their ``on_end`` can be timed alone."""

    def __init__(self, inner: SpanProcessor | None = None) -> None:
        self.inner = inner
        self.ended: list[ReadableSpan] = []
        self.started: list[Span] = []
        """Held too: a span whose end comes is alive, as it is inside its ``end()``."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.started.append(span)
        if self.inner is not None:
            self.inner.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)


def provider(*processors: SpanProcessor) -> TracerProvider:
    made = TracerProvider(shutdown_on_exit=False)
    for processor in processors:
        made.add_span_processor(processor)
    return made


def model_call(
    tracers: TracerProvider,
    messages: Sequence[Json],
    reply: Json,
    *,
    conversation: str = "c1",
    context: Context | None = None,
    within: Callable[[], object] | None = None,
) -> None:
    """One ended ``chat`` span with its messages as JSON text.

    Args:
        within: called while it is the current span.
    """
    span = tracers.get_tracer(SCOPE).start_span(
        "chat gpt-5-mini",
        context=context,
        kind=SpanKind.CLIENT,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-5-mini",
            "gen_ai.conversation.id": conversation,
            "server.address": "127.0.0.1",
        },
    )
    if within is not None:
        with use_span(span):
            within()
    span.set_attributes(
        {
            "gen_ai.input.messages": json.dumps(messages, ensure_ascii=False),
            "gen_ai.output.messages": json.dumps([reply], ensure_ascii=False),
            "gen_ai.response.model": "gpt-5-mini-2026-01-01",
            "gen_ai.response.id": f"resp-{span.get_span_context().span_id:016x}",
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.usage.input_tokens": 812,
            "gen_ai.usage.output_tokens": 96,
        }
    )
    span.end()


def foreign_call(tracers: TracerProvider, scope: str) -> None:
    """One ended span that is no step of an agent."""
    tracers.get_tracer(scope).start_span(
        "SELECT", kind=SpanKind.CLIENT, attributes={"db.system": "postgresql", "db.statement": "SELECT 1"}
    ).end()
