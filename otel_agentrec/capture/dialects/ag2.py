"""AG2: the GenAI conventions, and ``ag2.span.type``. Usage is told once more, on spans beside the call."""

from __future__ import annotations

from collections.abc import Sequence

from otel_agentrec.capture.dialects import genai
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import text
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Kind

__all__ = ["DIALECT"]

NAME = "ag2"
_TYPE, _USAGE = "ag2.span.type", "ag2.usage."

_KINDS = {"llm": Kind.MODEL, "tool": Kind.TOOL, "agent": Kind.AGENT, "conversation": Kind.AGENT}
"""``ag2.span.type`` -> kind; any other type is a step."""


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of AG2 is, and its facts; None for a span of another convention."""
    own = text(span.attributes.get(_TYPE))
    if own is None and span.scope not in DIALECT.scopes:
        return None
    attributes = {key: v for key, v in span.attributes.items() if key != _TYPE}
    is_usage = span.name.startswith("record_usage") or any(key.startswith(_USAGE) for key in attributes)
    if is_usage:
        attributes["gen_ai.operation.name"] = "record_usage"
    elif own is not None and "gen_ai.operation.name" not in attributes:
        attributes["gen_ai.operation.name"] = _OPERATIONS.get(own, own)
    reading = genai.read(span._replace(attributes=attributes), logs)
    if reading is None:
        return None
    kind, facts = reading
    facts.dialect = NAME
    if own is not None:
        kind = _KINDS.get(own, Kind.STEP)
    return (Kind.STEP if is_usage else kind), facts


_OPERATIONS = {"llm": "chat", "tool": "execute_tool", "agent": "invoke_agent"}

DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=("opentelemetry.instrumentation.ag2",),
    key_prefixes=("ag2.",),
    joined_logs=genai.DIALECT.joined_logs,
    takes=genai.DIALECT.takes,
    versions="the documented attributes of ag2 1.2",
    unknown="instructions; reasoning; response ids; sessions; retries",
)
