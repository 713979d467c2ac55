"""The ids of records: the same span always gives the same id, in every fold and every process."""

from __future__ import annotations

from otel_agentrec.nodes.skeleton import OTHER_EXPORT, Span
from otel_agentrec.records import record_id_of_span

__all__ = ["record_id"]


def record_id(s: Span) -> str:
    """The id of a span's record: as given, else made of the span's. An export that contradicts the first one is told apart
    by its place."""
    if s.extra is not None and s.extra.given and not s.marks & OTHER_EXPORT:
        return s.extra.given
    return record_id_of_span(s.trace, f"{s.span}/{s.stream}#{s.seq}" if s.marks & OTHER_EXPORT else s.span)
