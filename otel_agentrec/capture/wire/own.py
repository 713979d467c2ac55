"""A span of our own for a model call that nobody else made one of: ``chat <model>``, marked ``agentrec.wire``."""

from __future__ import annotations

from typing import Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from otel_agentrec._version import __version__
from otel_agentrec.capture import handed
from otel_agentrec.capture.emit_block import SCOPE, on_span
from otel_agentrec.capture.opening import Key
from otel_agentrec.capture.spans import SpanView
from otel_agentrec.capture.wire.calls import Attempt
from otel_agentrec.journal.facts import Facts

__all__ = ["emit", "view_of"]

_CONTENT = {"messages": "gen_ai.input.messages", "output_messages": "gen_ai.output.messages"}
_ATTRIBUTES = {
    "operation": "gen_ai.operation.name",
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "response_model": "gen_ai.response.model",
    "response_id": "gen_ai.response.id",
    "finish_reasons": "gen_ai.response.finish_reasons",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "error_type": "error.type",
}


def emit(attempt: Attempt, facts: Facts, content: bool) -> Key | None:
    """Start and end the span, with the times of the call, below the span that was current when its request left.

    Returns:
        its key; None when it is not recorded (no SDK, or not sampled).
    """
    exchange = attempt.exchange
    assert exchange is not None
    attributes = {key: value for name, key in _ATTRIBUTES.items() if (value := getattr(facts, name)) is not None}
    span = trace.get_tracer(SCOPE, __version__).start_span(
        _name(facts),
        context=attempt.around,
        kind=SpanKind.CLIENT,
        attributes={**attributes, "server.address": attempt.request.host, "agentrec.wire": True},
        start_time=attempt.first.request.started_ns,
    )
    context = span.get_span_context()
    key = (context.trace_id, context.span_id)
    if not span.is_recording():
        return None
    if content:
        told = {name: value for name, value in _content(facts).items() if value is not None}
        handed.hand_over(key, told)
        for name, attribute in _CONTENT.items():
            span.set_attributes(on_span(attribute, getattr(facts, name)))
    rest = ("cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "calls", "streamed", "status", "dialect")
    handed.hand_over(key, {name: value for name in rest if (value := getattr(facts, name)) is not None})
    if facts.status == "error":
        span.set_status(Status(StatusCode.ERROR))
    span.end(exchange.ended_ns)
    return key


def _content(facts: Facts) -> dict[str, Any]:
    names = ("messages", "output_messages", "system_instructions", "tools", "parameters", "error_message")
    return {name: getattr(facts, name) for name in names}


def view_of(attempt: Attempt, facts: Facts, trace_id: str, span_id: str) -> SpanView:
    """The span as it would be, for a record without one."""
    exchange, above = attempt.exchange, attempt.request.span
    assert exchange is not None
    return SpanView(
        trace_id,
        span_id,
        above.span_id if above is not None else None,
        _name(facts),
        SpanKind.CLIENT.value + 1,
        SCOPE,
        start_ns=attempt.first.request.started_ns,
        end_ns=exchange.ended_ns,
    )


def _name(facts: Facts) -> str:
    return f"chat {facts.model}" if facts.model else "chat"
