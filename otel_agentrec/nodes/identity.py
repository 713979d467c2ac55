"""The ids of records: the same span always gives the same id, in every fold and every process."""

from __future__ import annotations

import uuid

from otel_agentrec.nodes.skeleton import OTHER_EXPORT, Span

__all__ = ["RECORD_NAMESPACE", "record_id", "record_id_of_span"]

RECORD_NAMESPACE = uuid.UUID("6b1f8c2e-0f5d-5a57-9a4e-3f0d8e6f7a10")
"""Namespace of all record ids that are not given: UUIDv5 of ``<traceId>/<spanId>`` in it."""


def record_id_of_span(trace: str, span: str) -> str:
    """The id of the record that a span gives, by its ids in hex."""
    return str(uuid.uuid5(RECORD_NAMESPACE, f"{trace}/{span}" if trace else span))


def record_id(s: Span) -> str:
    """The id of a span's record: as given, else made of the span's. An export that contradicts the first one is told apart
    by its place."""
    if s.extra is not None and s.extra.given and not s.marks & OTHER_EXPORT:
        return s.extra.given
    return record_id_of_span(s.trace, f"{s.span}/{s.stream}#{s.seq}" if s.marks & OTHER_EXPORT else s.span)
