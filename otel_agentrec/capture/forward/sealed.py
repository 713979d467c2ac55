"""Which event a span that ended became, for whoever sends the span on.

It is noted on the span object itself, which every processor and exporter of the program is given: so it lives as long as the
span waits somewhere, and no longer. For spans that were copied on their way, ids are remembered for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from otel_agentrec.capture.opening import Key, OpenSpan, take_oldest
from otel_agentrec.capture.steps import StepEvent, header_of
from otel_agentrec.journal.draft import SealedAt
from otel_agentrec.journal.facts import Facts, Kind

__all__ = ["Sealed", "SealedSpans", "is_wanted_of_all", "want_all"]

Json = Any
REMEMBERED = 8_192
"""Spans whose place is known by their ids."""


class Sealed(NamedTuple):
    """Where a span's event went, and what it told.

    ``header``: ``{instructions, tools, parameters}`` of a model call; ``session``: the conversation, also as a step above told
    it; ``event`` is None once only its place is remembered.
    """

    at: SealedAt
    kind: str
    event: StepEvent | None
    header: dict[str, Json]
    session: str | None


_wanted_of_all = False


def want_all() -> None:
    """From now on every recorder of this process notes them: an exporter does not know which one it will meet."""
    global _wanted_of_all
    _wanted_of_all = True


def is_wanted_of_all() -> bool:
    """Whether there is such an exporter; it also counts what is lost."""
    return _wanted_of_all


class SealedSpans:
    """The sealed spans of one recorder. Nothing is noted before somebody wants it."""

    def __init__(self) -> None:
        self._wanted = False
        self._mark = f"_otel_agentrec_sealed_{id(self)}"
        self._places: dict[Key, Sealed] = {}
        self._answered: dict[Key, Mapping[str, Json]] = {}

    def want(self) -> None:
        self._wanted = True

    @property
    def is_wanted(self) -> bool:
        return self._wanted or _wanted_of_all

    def after_fork(self) -> None:
        """The places that are known are of the parent's stream: it sends those spans."""
        self._places, self._answered = {}, {}

    def note(self, span: Any, entry: OpenSpan, at: SealedAt, event: StepEvent, facts: Facts) -> None:
        """An event was written of a span."""
        session = (
            event.session or entry.session or next((one.session for one in entry.ancestors() if one.session), None)
        )
        sealed = Sealed(at, entry.kind or Kind.STEP, event, header_of(facts) or {}, session)
        try:
            setattr(span, self._mark, sealed)
        except AttributeError:  # a span class with slots
            pass
        self._places[entry.key] = sealed._replace(event=None, header={})
        if len(self._places) > REMEMBERED:
            take_oldest(self._places)

    def answered(self, event: StepEvent) -> None:
        """NODE_ANSWERED was written."""
        where, origin = event.trace or {}, event.payload.get("from")
        if self.is_wanted and isinstance(origin, Mapping) and "traceId" in where and "spanId" in where:
            self._answered[int(where["traceId"], 16), int(where["spanId"], 16)] = origin
            if len(self._answered) > REMEMBERED:
                take_oldest(self._answered)

    def origin_of(self, span: Any) -> Mapping[str, Json] | None:
        """Where the answer to a call came from that was not made: ``from`` of NODE_ANSWERED."""
        context = span.context
        return self._answered.get((context.trace_id, context.span_id)) if context is not None else None

    def of(self, span: Any) -> Sealed | None:
        """None for a span without an event."""
        noted: Sealed | None = getattr(span, self._mark, None)
        if noted is not None:
            return noted
        context = span.context
        return self._places.get((context.trace_id, context.span_id)) if context is not None else None
