"""How a span ended, as any convention tells it: exception events, and what a limit threw away."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, MutableMapping
from typing import Any

from otel_agentrec.capture.dialects.values import text
from otel_agentrec.capture.spans import ERROR, SpanView
from otel_agentrec.journal.facts import Facts

__all__ = ["fail", "keep", "note_losses", "thrown"]


def thrown(span: SpanView, also: Iterable[Mapping[str, Any]] = ()) -> tuple[str | None, str | None]:
    """(type, message) of the last exception that the span's events tell of, or the attributes of further ones in ``also``.

    An exception event alone makes no failure: it may have been handled.
    """
    kind = message = None
    for source in (*(e.attributes for e in span.events if e.name == "exception"), *also):
        kind, message = text(source.get("exception.type")), text(source.get("exception.message"))
    return kind, message


def fail(span: SpanView, facts: Facts) -> bool:
    """Whether the span's status is an error; its type and message are then facts.

    The status text often repeats the exception with its type or a traceback in it, so the exception's own message leads.
    """
    if span.status_code != ERROR:
        return False
    kind, message = thrown(span)
    facts.status, facts.error_type, facts.error_message = "error", kind, message or span.status_message
    return True


def keep(span: SpanView, rest: dict[str, Any], facts: Facts, read: Container[str] = ("exception",)) -> None:
    """Put what no fact was made of into ``facts.attributes``: attributes, and events whose names are not in ``read``."""
    note_losses(span, rest, facts)
    loose = [
        {"name": e.name, "time": str(e.ts_ns), "attributes": dict(e.attributes)}
        for e in span.events
        if e.name not in read and e.attributes
    ]
    if loose:
        rest["otel.events"] = loose
    if rest:
        facts.attributes = rest


def note_losses(span: SpanView, rest: MutableMapping[str, Any], facts: Facts) -> None:
    """Flag what the SDK threw away because of its limits; the counts go to the other attributes."""
    if span.dropped.attributes:
        facts.flags.append("attributes_dropped")
        rest["otel.dropped_attributes_count"] = span.dropped.attributes
    if span.dropped.events:
        facts.flags.append("events_dropped")
        rest["otel.dropped_events_count"] = span.dropped.events
