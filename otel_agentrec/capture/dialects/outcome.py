"""How a span ended, as any convention tells it: exception events, and what a limit threw away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from otel_agentrec.capture.dialects.values import text
from otel_agentrec.capture.spans import SpanView
from otel_agentrec.journal.facts import Facts

__all__ = ["note_losses", "thrown"]


def thrown(span: SpanView, also: Iterable[Mapping[str, Any]] = ()) -> tuple[str | None, str | None]:
    """(type, message) of the last exception that the span's events tell of, or the attributes of further ones in ``also``.

    An exception event alone makes no failure: it may have been handled.
    """
    kind = message = None
    for source in (*(e.attributes for e in span.events if e.name == "exception"), *also):
        kind, message = text(source.get("exception.type")), text(source.get("exception.message"))
    return kind, message


def note_losses(span: SpanView, rest: MutableMapping[str, Any], facts: Facts) -> None:
    """Flag what the SDK threw away because of its limits; the counts go to the other attributes."""
    if span.dropped.attributes:
        facts.flags.append("attributes_dropped")
        rest["otel.dropped_attributes_count"] = span.dropped.attributes
    if span.dropped.events:
        facts.flags.append("events_dropped")
        rest["otel.dropped_events_count"] = span.dropped.events
