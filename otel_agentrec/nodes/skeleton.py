"""What is kept of a span while a recording is folded: what it takes to find duplicates, to pair calls and results, and to
order records. What people, models and tools said stays on disk until a record is printed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.columns import Columns, Count, Id, Label, Mark, Number, Ref, Row, Text
from otel_agentrec.nodes.source import Place

__all__ = ["ENDED", "INTERRUPTED", "OPEN", "Call", "Extra", "Rows", "Span", "mark"]

Json = Any
Call = tuple[int | None, str | None]
"""A call that a model asked for: (:func:`mark` of the call id, tool name)."""

OPEN, INTERRUPTED, ENDED = 0, 1, 2

# bits of Span.marks
SAID = 1  # inputs or outputs are known
PUT_OUT = 2  # some output is known
FAILED = 4  # status error
ROOT_MISSING = 8  # an ancestor is unknown
CONFLICT = 16  # another export of the same span has other content
REEXPORT = 32  # probably the same call, exported again under new ids
MERGED = 64  # another span of the same call leads
OUTERMOST = 128  # of several spans of one call, the one around the others
OTHER_EXPORT = 256  # contradicts an earlier export of the same span
PATH_TOLD = 512  # the event names ancestors that are in the journal


def mark(text: Json) -> int | None:
    """Stands for an id where it only has to be told from others: 8 bytes instead of 80. None for what is no text."""
    return (hash(text) or 1) if isinstance(text, str) and text else None


class Extra:
    """What only few spans have: ids given by the span itself, further events, the caller's user."""

    __slots__ = ("amended", "answered", "copies", "given", "interrupted", "retries", "run", "step", "turn", "user")

    def __init__(self) -> None:
        self.run: str | None = None
        self.turn: str | None = None
        self.step: int | None = None
        self.user: str | None = None
        self.given: str | None = None
        """The record's id, where it came as a record."""
        self.copies: list[Place] = []
        """Further NODE_RECORDED events of the same span."""
        self.amended: list[Place] = []
        self.interrupted: Place | None = None
        self.answered: dict[str, Json] | None = None
        self.retries = 0
        """MODEL_RETRY events."""


class Rows(Columns):
    """The columns of all spans, and what only few of them have."""

    def __init__(self) -> None:
        super().__init__(Span)
        self.extras: dict[int, Extra] = {}
        self.groups: dict[int, array[int]] = {}
        self.call_marks: array[int] = array("q")
        self.call_names: array[int] = array("i")


class Span(Row):
    """The skeleton of one span. Times are nanoseconds since the epoch.

    A handle: make as many as you like; spans are compared and hashed by what they stand for.
    """

    __slots__ = ()
    at: Rows

    trace = Label()
    span = Id()
    parent = Id()
    up: Ref[Span] = Ref()
    """The nearest ancestor that is in the journal; set by :meth:`Table.link`."""
    kind = Text()
    scope = Text()
    provider = Number("i")
    """Number of the PROVIDER_SEEN in its stream: the resource that the span came from."""
    name = Text()
    """Model, tool or agent name; of a STEP its kind."""
    ident = Mark()
    """Of a TOOL the call id, of a MODEL the response id."""
    session = Text()
    stream = Label()
    seq = Count("i", -1)
    """The event that leads: the first NODE_RECORDED, else what else told of the span."""
    started_seq = Count("i", -1)
    start = Number()
    end = Number()
    state = Count("b", OPEN)
    marks = Count("h")
    tokens_in = Number("i")
    tokens_out = Number("i")
    step = Number("i")
    asked: Ref[Span] = Ref()
    """Of a TOOL: the model call that asked for it."""
    call_no = Count("h", -1)
    """Index of that call in ``asked.calls``."""
    calls_from = Count("i")
    calls_count = Count("h", -1)

    @property
    def place(self) -> Place:
        return Place(self.stream, self.seq)

    @property
    def is_node(self) -> bool:
        return self.kind in (Kind.MODEL, Kind.TOOL)

    @property
    def since(self) -> int:
        """When it began; where nobody told that, when it had ended at the latest."""
        start = self.start
        return start if start is not None else self.end or 0

    @property
    def calls(self) -> tuple[Call, ...] | None:
        """The calls that a MODEL asked for; None: the telemetry does not tell."""
        start, count, rows = self.calls_from, self.calls_count, self.at
        if count < 0:
            return None
        marks, names = rows.call_marks[start : start + count], rows.call_names[start : start + count]
        return tuple((m or None, rows.texts[n] if n >= 0 else None) for m, n in zip(marks, names, strict=True))

    @calls.setter
    def calls(self, calls: Sequence[Call]) -> None:
        rows = self.at
        self.calls_from, self.calls_count = len(rows.call_marks), min(len(calls), 30_000)
        for number, name in calls[: self.calls_count]:
            rows.call_marks.append(number or 0)
            rows.call_names.append(-1 if name is None else rows.text_number(name))

    @property
    def extra(self) -> Extra | None:
        return self.at.extras.get(self.row)

    def more(self) -> Extra:
        return self.at.extras.setdefault(self.row, Extra())

    @property
    def group(self) -> list[Span]:
        """Of a leading span: the other spans of the same call, outermost first."""
        return [Span(self.at, row) for row in self.at.groups.get(self.row, ())]

    @group.setter
    def group(self, spans: Sequence[Span]) -> None:
        self.at.groups[self.row] = array("i", [s.row for s in spans])

    def lineage(self) -> Iterator[Span]:
        """The ancestors in the journal, nearest first."""
        at = self.up
        while at is not None:
            yield at
            at = at.up

    def members(self) -> list[Span]:
        """All spans of this call, the leading one first."""
        return [self, *self.group]

    @property
    def answered_from(self) -> dict[str, Json] | None:
        """Where the answer of a call came from that was answered from a recording, whichever of its spans tells it."""
        return next((m.extra.answered for m in self.members() if m.extra is not None and m.extra.answered), None)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} {self.span}>"
