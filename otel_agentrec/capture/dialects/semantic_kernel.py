"""Semantic Kernel: the GenAI conventions in an older form. Messages are log records; finish reasons are members of an enum."""

from __future__ import annotations

from collections.abc import Sequence

from otel_agentrec.capture.dialects import genai
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import text
from otel_agentrec.capture.spans import LogView, SpanView

__all__ = ["DIALECT"]

NAME = "semantic-kernel"
SCOPE = "semantic_kernel."

_OPERATION, _REASON = "gen_ai.operation.name", "gen_ai.response.finish_reason"
_OPERATIONS = {
    "chat.completions": "chat",
    "chat.streaming_completions": "chat",
    "text.completions": "text_completion",
    "text.streaming_completions": "text_completion",
}


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of Semantic Kernel is, and its facts; None for a span of another scope."""
    if not span.scope.startswith(SCOPE):
        return None
    attributes = dict(span.attributes)
    operation = text(attributes.get(_OPERATION))
    if operation in _OPERATIONS:
        attributes[_OPERATION] = _OPERATIONS[operation]
    reason = text(attributes.pop(_REASON, None))
    reading = genai.read(span._replace(attributes=attributes), logs)
    if reading is None:
        return None
    kind, facts = reading
    facts.dialect = NAME
    if reason is not None and not facts.finish_reasons:
        facts.finish_reasons = [reason]
    if facts.finish_reasons:
        facts.finish_reasons = [_member(told) for told in facts.finish_reasons]
    return kind, facts


def _member(told: str) -> str:
    """``FinishReason.TOOL_CALLS`` -> ``tool_calls``"""
    return told.rpartition(".")[2].lower() if told.startswith("FinishReason.") else told


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    joined_logs=genai.DIALECT.joined_logs,
    takes=genai.DIALECT.takes,
    versions="the documented attributes of semantic-kernel 1.45",
    unknown="response models; reasoning, and text beside a tool call; sessions; retries",
)
