"""``opentelemetry-instrumentation-openai-agents-v2``: the GenAI conventions, with answers as Python's repr text.

An answer that is no plain text stands as the repr of an item of the Responses API, of a whole response, or of a chat
message. Traceloop's instrumentation for the same framework has the same scope; its spans are read by ``traceloop``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import genai, messages, openai, pythonrepr
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import loaded, text
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Kind

__all__ = ["DIALECT", "message"]

Json = Any

NAME = "openai-agents-v2"
SCOPE = "opentelemetry.instrumentation.openai_agents"

_OPERATION = "gen_ai.operation.name"
_OUTPUT = "gen_ai.output.messages"
_RENAMED_OPERATIONS = {"agent_handoff": "handoff"}
_OPERATIONS = {*genai.KIND_OF_OPERATION, *_RENAMED_OPERATIONS, "unknown"}
_OF_AGENT = ("gen_ai.agent.name", "gen_ai.agent.id", "gen_ai.agent.description")
MAX_REPR = 4 << 20
"""Longer texts are not read as repr."""


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span is, and its facts; None when it is not one of these."""
    if span.scope != SCOPE or not _is_mine(span):
        return None
    rest = dict(span.attributes)
    operation = text(rest.get(_OPERATION))
    if operation in _RENAMED_OPERATIONS:
        rest[_OPERATION] = _RENAMED_OPERATIONS[operation]
    written = _written(loaded(rest.get(_OUTPUT)))
    response_id = _response_id(written)
    if response_id is not None:
        rest.setdefault("gen_ai.response.id", response_id)
    reading = genai.read_as(NAME, span._replace(attributes=rest), logs, message, own=True)
    if reading is None:
        return None
    kind, facts = reading
    kept = {_OUTPUT: rest[_OUTPUT]} if written else {}  # a message has no place for all that such a text holds
    if kind != Kind.AGENT:  # the agent is a constant of the instrumentation here, not the agent that runs
        facts.agent_name = facts.agent_id = None
        kept.update({key: rest[key] for key in _OF_AGENT if key in rest})
    facts.attributes = {**(facts.attributes or {}), **kept} or None
    return kind, facts


def _is_mine(span: SpanView) -> bool:
    if span.scope_version:
        return span.name.partition(" ")[0] in _OPERATIONS
    return not any(key.startswith("traceloop.") for key in span.attributes)


def message(value: Json) -> Json:
    """One message in the schema, what stands as repr text read."""
    made = messages.message(value)
    parts = made.get("parts") if isinstance(made, Mapping) else None
    if not isinstance(parts, list):
        return made
    answered = [p.get("response") for p in parts if isinstance(p, Mapping) and p.get("type") == "tool_call_response"]
    if answered:  # the text of a result is told twice
        parts = [p for p in parts if not (_text_of(p) is not None and p["content"] in answered)]
    else:
        parts = [read for p in parts for read in _read(p)]
    return {**made, "parts": parts}


def _text_of(part: Json) -> str | None:
    content = part.get("content") if isinstance(part, Mapping) and part.get("type") == "text" else None
    return content if isinstance(content, str) else None


def _read(part: Json) -> list[Json]:
    """The parts that a text part stands for."""
    found = _messages(_held(part))
    return [part] if found is None else [p for m in found for p in _parts(m)]


def _held(part: Json) -> Json:
    """The object that a text part is the repr of; None when it is none."""
    told = _text_of(part)
    if told is None or len(told) > MAX_REPR or told[-1:] not in ("}", ")"):
        return None
    if not told.startswith("{'") and not told.partition("(")[0].isidentifier():
        return None
    try:
        return pythonrepr.parse(told)
    except ValueError:
        return None


def _written(answers: Json) -> list[Json]:
    """The objects that stand as repr text in answers."""
    held = [(_held(p)) for m in _list(answers) for p in _parts(m)]
    return [h for h in held if _messages(h) is not None]


def _response_id(written: list[Json]) -> str | None:
    """The id that the model adapter of the chat API leaves with each item: ``provider_data: {response_id}``."""
    for held in written:
        for item in _list(held.get("output")) or [held]:
            data = item.get("provider_data") if isinstance(item, Mapping) else None
            told = text(data.get("response_id")) if isinstance(data, Mapping) else None
            if told is not None:
                return told
    return None


def _parts(value: Json) -> Sequence[Json]:
    return _list(value.get("parts")) if isinstance(value, Mapping) else ()


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, (list, tuple)) else ()


def _messages(held: Json) -> list[Json] | None:
    """Messages of what a repr stood for: an item, a response, a chat message; None for anything else."""
    if not isinstance(held, Mapping):
        return None
    said = openai.said(held)
    if said is not None:
        return said.messages
    if "role" in held and ("content" in held or "tool_calls" in held):
        return [messages.message(held)]
    return openai.listed([held]) if "type" in held else None


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    key_prefixes=("gen_ai.",),
    span_names=("agent_handoff",),
    joined_logs=genai.JOINED_LOGS,
    takes=genai.takes,
    tell=genai.tell,
    versions="opentelemetry-instrumentation-openai-agents-v2 0.1.0",
    unknown="over the Responses API: the requested model, the instructions, calls and results in the input, calls beside a text; "
    "call ids on tool spans; the session (group id); finish reasons; the request of a failed call",
)
