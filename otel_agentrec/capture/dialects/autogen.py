"""AutoGen's runtime: messages between agents, one span for each that is handled (``autogen process …``).

AutoGen's tool spans speak the GenAI conventions but tell neither arguments nor results: those stand in the messages in which
agents tell each other of them, by call id. Only such messages are read; all others repeat what was said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import outcome
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import loaded, text
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind

__all__ = ["DIALECT"]

Json = Any

NAME = "autogen"

_LISTS = (list, tuple)
_MESSAGE, _CONTEXT, _OPERATION = "message", "message_context", "messaging.operation"
_REQUEST, _EXECUTION = "ToolCallRequestEvent", "ToolCallExecutionEvent"
MAX_DEPTH = 8


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """A handled message that tells of tool calls, as a step; None for any other span."""
    held = span.attributes.get(_MESSAGE)
    if not span.name.startswith("autogen ") or not isinstance(held, str):
        return None
    if _REQUEST not in held and _EXECUTION not in held:
        return None
    told = list(_told(loaded(held), 0))
    if not told:
        return None
    rest = {key: v for key, v in span.attributes.items() if key not in (_MESSAGE, _CONTEXT)}
    parts = [part for message in told for part in message["parts"]]
    facts = Facts(dialect=NAME, operation=text(rest.get(_OPERATION)) or "message", messages=told)
    facts.calls = [{"id": text(p.get("id")), "name": text(p.get("name"))} for p in parts]
    outcome.fail(span, facts)
    outcome.keep(span, rest, facts)
    return Kind.STEP, facts


def _told(value: Json, depth: int) -> Iterator[Json]:
    """The events of tools in a message, wherever they stand in it, as messages in the schema."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, _LISTS):
        for inner in value:
            yield from _told(inner, depth + 1)
    elif isinstance(value, Mapping):
        content = value.get("content")
        made = _READERS.get(value["type"]) if isinstance(value.get("type"), str) else None
        if made is not None and isinstance(content, _LISTS):
            role, part = made
            parts = [part(told) for told in content if isinstance(told, Mapping)]
            if parts:
                yield {"role": role, "parts": parts}
            return
        for inner in value.values():
            yield from _told(inner, depth + 1)


def _call(told: Mapping[str, Json]) -> dict[str, Json]:
    return _present(type="tool_call", id=told.get("id"), name=told.get("name"), arguments=told.get("arguments"))


def _result(told: Mapping[str, Json]) -> dict[str, Json]:
    return _present(
        type="tool_call_response", id=told.get("call_id"), name=told.get("name"), response=told.get("content")
    )


def _present(**told: Json) -> dict[str, Json]:
    return {key: value for key, value in told.items() if value is not None}


_READERS = {_REQUEST: ("assistant", _call), _EXECUTION: ("tool", _result)}

DIALECT = Dialect(
    name=NAME,
    read=read,
    key_prefixes=(_CONTEXT,),
    span_names=("autogen",),
    versions="autogen-core 0.7",
    unknown="model calls, all of them, without an instrumentation of the model's client; arguments and results of tools "
    "outside teams",
)
