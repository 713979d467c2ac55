"""The spans that Anthropic's Python SDK makes of itself, since 2.14, as soon as a tracer provider is set.

The GenAI conventions, with a few facts under names of its own. Most of these spans are the inner one of two that tell of the
same call. What was said needs ``ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import genai
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import loaded, text
from otel_agentrec.capture.spans import LogView, SpanView

__all__ = ["DIALECT"]

Json = Any

NAME = "anthropic-sdk"
SCOPE = "com.anthropic.sdk.python"

_REASON = "anthropic.message.stop_reason"
_RESULT = "anthropic.tool_result.content"
_THINKING = "anthropic.thinking."


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span is, and its facts; None when it is not one of these."""
    if span.scope != SCOPE:
        return None
    rest = dict(span.attributes)
    reason = text(rest.pop(_REASON, None))
    if reason is not None:
        rest.setdefault("gen_ai.response.finish_reasons", [reason])
    if _RESULT in rest:
        rest.setdefault("gen_ai.tool.call.result", _result(rest.pop(_RESULT)))
    for key in [key for key in rest if key.startswith(_THINKING)]:
        rest[f"gen_ai.request.thinking.{key[len(_THINKING) :]}"] = rest.pop(key)
    return genai.read_as(NAME, span._replace(attributes=rest), logs, own=True)


def _result(value: Json) -> Json:
    """The blocks of a tool's result; the text, where that is all: the API takes the one for the other."""
    blocks = loaded(value)
    only = blocks[0] if isinstance(blocks, (list, tuple)) and len(blocks) == 1 else None
    if isinstance(only, Mapping) and only.keys() == {"type", "text"} and only["type"] == "text":
        return only["text"]
    return value


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    joined_logs=genai.JOINED_LOGS,
    takes=genai.takes,
    tell=genai.tell,
    versions="anthropic 2.14.0",
    unknown="the answer of a raw stream (stream=True); the whole request of a tool runner, which sends only what is new; tool "
    "definitions; images",
)
