"""What an event tells of its span, as far as it has the types that the names promise.

Capture writes nothing else; a recording that somebody made to do harm may hold anything, and must still read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from otel_agentrec.journal.events import Event

__all__ = ["facts_of", "given_of", "record_of", "text_or_none", "where_of"]

Json = Any

_STRINGS = "dialect operation provider model responseModel responseId toolName toolCallId status agentName agentId userId errorType"
_NUMBERS = "inputTokens outputTokens cacheReadTokens cacheWriteTokens reasoningTokens retryCount"
_TYPES: dict[str, type] = {
    **dict.fromkeys(_STRINGS.split(), str),
    **dict.fromkeys(_NUMBERS.split(), int),
    **dict.fromkeys(("finishReasons", "flags", "retries", "calls"), list),
    "otherTokens": dict,
    "keys": dict,
    "streamed": bool,
}
_ELEMENTS: dict[str, type] = {"finishReasons": str, "flags": str, "retries": dict, "calls": dict}


def facts_of(event: Event) -> dict[str, Json]:
    """The facts that an event tells of its span; of a NODE_INTERRUPTED, what was known by then.

    A fact that has not the type of its name is left out.
    """
    facts = record_of(event).get("facts")
    return {key: value for key, value in facts.items() if _is_sound(key, value)} if isinstance(facts, dict) else {}


def record_of(event: Event) -> dict[str, Json]:
    """The payload of an event; of a NODE_INTERRUPTED, the record in it."""
    payload = event.payload
    if event.type == "NODE_INTERRUPTED" and isinstance(payload, dict):
        payload = payload.get("record") or {}
    return payload if isinstance(payload, dict) else {}


def given_of(event: Event) -> dict[str, Json]:
    """The fields of a record that came as a record; empty for all that came as a span."""
    given = event.payload.get("given") if event.type == "NODE_RECORDED" and isinstance(event.payload, dict) else None
    return given if isinstance(given, dict) else {}


class Where(NamedTuple):
    """The envelope's ``trace``; "" for what it does not tell."""

    trace: str
    span: str
    parent: str
    path: list[str]


def where_of(event: Event) -> Where:
    """Which span an event tells of. An event that names none is told by its record, or by itself: its place is its identity."""
    told: dict[str, Json] = event.trace if isinstance(event.trace, dict) else {}
    trace, span, parent, path = told.get("traceId"), told.get("spanId"), told.get("parentSpanId"), told.get("path")
    if not (isinstance(span, str) and span):
        return Where("", text_or_none(given_of(event).get("recordId")) or f"{event.stream}#{event.seq}", "", [])
    return Where(
        trace if isinstance(trace, str) else "",
        span,
        parent if isinstance(parent, str) else "",
        [x for x in path if isinstance(x, str) and x] if isinstance(path, list) else [],
    )


def text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _is_sound(key: str, value: Json) -> bool:
    wanted = _TYPES.get(key)
    if wanted is None or value is None:
        return True
    if isinstance(value, list):
        return wanted is list and all(isinstance(x, _ELEMENTS[key]) for x in value)
    return type(value) is wanted  # a bool is no number here
