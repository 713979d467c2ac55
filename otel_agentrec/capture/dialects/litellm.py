"""LiteLLM's own OTel callback: the GenAI conventions in older spellings.

``litellm_request`` is the model call. A child ``raw_gen_ai_request`` repeats the provider's request and answer as
``llm.<provider>.*``; the proxy's own spans are no model calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from otel_agentrec.capture.dialects import flattened, genai, messages, raw
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import loaded, text
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Kind

__all__ = ["DIALECT"]

NAME = "litellm"
SCOPE = "litellm"

_OPERATION = "gen_ai.operation.name"
_REQUEST, _RAW = "litellm_request", "raw_gen_ai_request"
_OPERATIONS = {"completion": "chat", "acompletion": "chat", "embedding": "embeddings", "aembedding": "embeddings"}


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of LiteLLM is, and its facts; None for a span of another scope."""
    if span.scope != SCOPE:
        return None
    attributes = dict(span.attributes)
    asked, said = _take_raw(attributes) if span.name == _RAW else (None, None)
    if span.name in (_REQUEST, _RAW):
        told = text(attributes.get("llm.request.type"))
        attributes.setdefault(_OPERATION, _OPERATIONS.get(told or "completion", told or "chat"))
    prompts, answers = flattened.take(attributes, "gen_ai.prompt"), flattened.take(attributes, "gen_ai.completion")
    streamed = attributes.pop("llm.is_streaming", None)
    reading = genai.read(span._replace(attributes=attributes), logs)
    if reading is None:
        return None
    kind, facts = reading
    facts.dialect = NAME
    if kind == Kind.MODEL:
        if facts.messages is None:
            facts.messages = asked if asked is not None else _listed(prompts)
        if facts.output_messages is None:
            told_output = said if said is not None else _listed(answers)
            facts.output_messages = told_output
            facts.calls = messages.calls_of(told_output) if told_output is not None else facts.calls
        facts.finish_reasons = facts.finish_reasons or messages.finish_reasons_of(answers) or None
        if str(streamed).lower() in ("true", "false"):
            facts.streamed = str(streamed).lower() == "true"
    return kind, facts


def _listed(told: list[Any] | None) -> list[Any] | None:
    return [messages.message(m) for m in told] if told else None


def _take_raw(attributes: dict[str, Any]) -> tuple[list[Any] | None, list[Any] | None]:
    """(messages, output messages) in ``llm.<provider>.messages`` and ``llm.<provider>.choices``."""
    asked = said = None
    for key in [k for k in attributes if k.startswith("llm.") and k.count(".") == 2]:
        name = key.rpartition(".")[2]
        if name == "messages" and asked is None:
            asked = raw.listed(loaded(attributes[key]))
            if asked is not None:
                del attributes[key]
        elif name == "choices" and said is None:
            answer = raw.said({"choices": loaded(attributes[key])})
            if answer is not None and answer.messages:
                said = answer.messages
                del attributes[key]
    return asked, said


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    span_names=(_REQUEST, _RAW),
    joined_logs=genai.DIALECT.joined_logs,
    takes=genai.DIALECT.takes,
    versions="the documented attributes of litellm 1.110",
    unknown="reasoning in the older spellings; retries",
)
