"""What a dialect is: the reader of one telemetry convention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts

__all__ = ["Dialect", "Reading"]

Reading = tuple[str, Facts]
"""A kind (``Kind.MODEL`` …) and the facts of the span."""


def _all(kind: str, log: LogView) -> bool:
    return True


def _nothing(log: LogView) -> Facts | None:
    return None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One telemetry convention.

    ``read`` is pure and total: it looks at one span (open or ended) and the log records that belong to it, and says what the
    span is, or None when it is no step of an agent in this convention.

    Args:
        name: as it stands in records (``dialect``).
        read: ``(span, logs) -> (kind, facts) | None``.
        scopes: instrumentation scopes of which every span is a step of an agent; one that ends in ``.`` is a prefix.
        key_prefixes: first parts of attribute names; a span of an unknown scope that has none of them, and no joined log
            record, is not read.
        span_names: first words of span names that this convention gives to steps.
        joined_logs: names of log events that ``read`` takes facts from.
        takes: whether ``read`` makes facts of a joined log record, given the kind of the span that the record names. What it
            leaves is recorded as it is.
        tell: what a log record tells of a model call whose span it does not name (pure, total); None for what tells nothing.
        kept_logs: first parts of names of log events that are recorded as they are.
        versions: what it was checked against, for the table in the documentation.
        unknown: what this telemetry does not tell, for the same table.
    """

    name: str
    read: Callable[[SpanView, Sequence[LogView]], Reading | None]
    scopes: tuple[str, ...] = ()
    key_prefixes: tuple[str, ...] = ()
    span_names: tuple[str, ...] = ()
    joined_logs: tuple[str, ...] = ()
    takes: Callable[[str, LogView], bool] = _all
    tell: Callable[[LogView], Facts | None] = _nothing
    kept_logs: tuple[str, ...] = ()
    versions: str = ""
    unknown: str = ""
