"""What log records tell of calls whose spans they do not name: kept small until the calls are known."""

from __future__ import annotations

from otel_agentrec.journal.events import Event
from otel_agentrec.nodes.columns import Columns, Count, Id, Label, Mark, Number, Row, Text
from otel_agentrec.nodes.skeleton import mark
from otel_agentrec.nodes.sound import facts_of, text_or_none
from otel_agentrec.nodes.source import Place

__all__ = ["OUTPUTS", "Saying", "Sayings"]

OUTPUTS = ("outputMessages", "outputText", "calls", "finishReasons")


class Saying(Row):
    """One log record. ``trace`` and ``span``: the ids that it names, "" where it names none."""

    __slots__ = ()

    stream = Label()
    seq = Count("i", -1)
    scope = Text()
    trace = Label()
    span = Id()
    time = Number()
    """When it was emitted, in nanoseconds since the epoch."""
    ident = Mark()
    """Of a record that tells of a tool call: its call id."""
    is_answer = Count("b")
    """1 for what a model answered, 0 for what it was asked."""

    @property
    def place(self) -> Place:
        return Place(self.stream, self.seq)


class Sayings(Columns):
    """All of them, in the order in which they were read."""

    def __init__(self) -> None:
        super().__init__(Saying)

    def add(self, e: Event) -> None:
        """Take a LOG_RECORDED event. One without facts or without a time is passed over: nothing tells what it belongs to."""
        facts, emitted = facts_of(e), e.payload.get("observedAt")
        if (
            not (facts or "header" in e.payload)
            or not isinstance(emitted, str)
            or not emitted.isdecimal()
            or len(emitted) > 19
        ):
            return
        where = e.trace if isinstance(e.trace, dict) else {}
        trace, span = text_or_none(where.get("traceId")), text_or_none(where.get("spanId"))
        saying = Saying(self, self.grow())
        saying.stream, saying.seq, saying.time = e.stream, e.seq, int(emitted)
        saying.scope = text_or_none(e.payload.get("scope"))
        if trace and span:
            saying.trace, saying.span = trace, span
        saying.ident = mark(facts.get("toolCallId"))
        saying.is_answer = int(any(facts.get(key) is not None for key in OUTPUTS))
