"""LiteLLM's own OTel callback: the GenAI conventions in older spellings.

``litellm_request`` is the model call. Its messages have calls of tools beside their parts, and of an answer only the names and
arguments (``gen_ai.completion.N.function_call.*``, one N for each call). A child ``raw_gen_ai_request`` repeats the
provider's request and answer, unless it was a stream, as ``llm.<provider>.*``, lists as Python prints them; the proxy's own
spans are no model calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import flattened, genai, messages, pythonrepr, raw, traceloop_messages
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.exchange import Asked, Said
from otel_agentrec.capture.dialects.values import loaded, text
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind

__all__ = ["DIALECT"]

Json = Any

NAME = "litellm"
SCOPE = "litellm"

_OPERATION = "gen_ai.operation.name"
_REQUEST, _RAW = "litellm_request", "raw_gen_ai_request"
_OPERATIONS = {
    "completion": "chat",
    "acompletion": "chat",
    "responses": "chat",
    "aresponses": "chat",
    "atext_completion": "text_completion",
    "embedding": "embeddings",
    "aembedding": "embeddings",
}
_ASKED, _SAID = ("messages", "system", "tools", "input", "contents"), ("choices", "content")
_CALL = "function_call"


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of LiteLLM is, and its facts; None for a span of another scope."""
    if span.scope != SCOPE:
        return None
    attributes = dict(span.attributes)
    asked, said = _take_raw(attributes) if span.name == _RAW else (None, None)
    if span.name in (_REQUEST, _RAW):
        told = text(attributes.get(_OPERATION)) or text(attributes.get("llm.request.type")) or "completion"
        attributes[_OPERATION] = _OPERATIONS.get(told, told)
    prompts, answers = flattened.take(attributes, "gen_ai.prompt"), flattened.take(attributes, "gen_ai.completion")
    calls = [a[_CALL] for a in answers or () if isinstance(a, Mapping) and _CALL in a and "content" not in a]
    answers = None if calls else answers
    tools = traceloop_messages.take_tools(attributes)
    streamed = attributes.pop("llm.is_streaming", None)
    reading = genai.read(span._replace(attributes=attributes), logs)
    if reading is None:
        return None
    kind, facts = reading
    facts.dialect = NAME
    if kind == Kind.MODEL:
        if str(streamed).lower() in ("true", "false"):
            facts.streamed = str(streamed).lower() == "true"
        if facts.messages is None:
            facts.messages = asked.messages if asked is not None else _listed(prompts)
        if asked is not None:
            facts.system_instructions = facts.system_instructions or asked.instructions
            tools = tools or asked.tools
        facts.tools = facts.tools or tools
        if facts.output_messages is None:
            told_output = said.messages if said is not None else _listed(answers)
            facts.output_messages = told_output
            facts.calls = messages.calls_of(told_output) if told_output is not None else facts.calls
        if calls:
            _add_calls(calls, facts)
        facts.finish_reasons = facts.finish_reasons or messages.finish_reasons_of(answers) or None
    return kind, facts


def _add_calls(calls: list[Json], facts: Facts) -> None:
    """Calls of tools without their ids. Where nothing else was said they are left to the raw answer, which has them with ids."""
    said = facts.output_messages
    if not isinstance(said, list) or facts.calls:
        facts.attributes = {**(facts.attributes or {}), "gen_ai.completion": calls}
        return
    if not facts.streamed and not any(message.get("parts") for message in said):
        facts.output_messages = facts.calls = None
        facts.attributes = {**(facts.attributes or {}), "gen_ai.completion": calls}
        return
    last = said[-1] if said else {"role": "assistant", "parts": []}
    parts = [{"type": "tool_call", **call} if isinstance(call, Mapping) else call for call in calls]
    facts.output_messages = [*said[:-1], {**last, "parts": [*last.get("parts", ()), *parts]}]
    facts.calls = messages.calls_of(facts.output_messages)


def _listed(told: list[Any] | None) -> list[Any] | None:
    return [messages.message(m) for m in told] if told else None


def _take_raw(attributes: dict[str, Any]) -> tuple[Asked | None, Said | None]:
    """The provider's request and answer in ``llm.<provider>.*``."""
    keys = {k.rpartition(".")[2]: k for k in attributes if k.startswith("llm.") and k.count(".") == 2}
    told = {name: _parsed(attributes[key]) for name, key in keys.items()}
    asked = raw.asked({name: told[name] for name in _ASKED if name in told})
    said = raw.said({name: value for name, value in told.items() if name not in _ASKED})
    said = said if said is not None and said.messages else None
    for name in (*(_ASKED if asked is not None else ()), *(_SAID if said is not None else ())):
        if name in keys:
            del attributes[keys[name]]
    return asked, said


def _parsed(value: Json) -> Json:
    value = loaded(value)
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return pythonrepr.parse(value)
        except ValueError:
            return value
    return value


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    span_names=(_REQUEST, _RAW),
    joined_logs=genai.DIALECT.joined_logs,
    takes=genai.DIALECT.takes,
    versions="litellm 1.110",
    unknown="of streamed answers: the ids of calls, and reasoning; sessions; retries",
)
