"""The fold while events are still coming: tells a recorder which records its sinks can have now."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import chain

from otel_agentrec.journal.events import Event
from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.fold import Earlier, View
from otel_agentrec.nodes.skeleton import ENDED, OPEN, REEXPORT, Span
from otel_agentrec.nodes.sound import where_of
from otel_agentrec.nodes.source import MemorySource
from otel_agentrec.nodes.table import nanos
from otel_agentrec.records import NodeIoRecord

__all__ = ["LiveFold"]

MAX_SAYINGS = 4_096
"""So many log records that may belong to a call are remembered."""
Key = tuple[str, str]
Shape = tuple[int, frozenset[str], int]
"""(state, span ids of the call, number of copies and amendments): what makes a record worth telling again when it grows"""
_ENDS = frozenset({"NODE_RECORDED", "NODE_INTERRUPTED", "NODE_AMENDED", "RUN_ENDED", "HANDOFF_ENDED", "STEP_ENDED"})
_TOLD_OF = (
    _ENDS
    | {"WIRE_RECORDED"}
    | {"NODE_STARTED", "RUN_STARTED", "HANDOFF_STARTED", "STEP_STARTED", "MODEL_RETRY", "NODE_ANSWERED"}
)


class LiveFold:
    """Fed with the events of one process as they are written, in the order of their seq.

    A model call is handed out when the outermost span that tells of it has ended, a tool call when its own has. When a
    later span proves to be the same call, the record is handed out again. The fold itself is the one of :mod:`fold`, made
    over a window of recent spans; what has left the window is not merged any more (reading the journal still does).

    Not thread-safe: the caller's lock around writing is meant to be around :meth:`feed`.

    Args:
        window: how many ended calls, and how many ended agents and steps, are remembered.
        also: told of each model or tool call that is handed out, with the view in which it stands.
    """

    def __init__(self, window: int = 16, also: Callable[[View, Span], None] | None = None) -> None:
        self._window = window
        self._also = also
        self._events: OrderedDict[Key, list[Event]] = OrderedDict()
        self._headers: OrderedDict[tuple[str, object], Event] = OrderedDict()
        self._links: list[Event] = []
        self._sayings: deque[Event] = deque(maxlen=MAX_SAYINGS)
        self._told: dict[Key, Shape] = {}
        self._recovered: OrderedDict[str, None] = OrderedDict()
        self._earlier = Earlier()

    def feed(self, event: Event) -> list[NodeIoRecord]:
        """Take one event, its payload with all content. Returns the records that can be handed out now, in cause order."""
        if event.type == "REQUEST_HEADER":
            self._headers[event.stream, event.seq] = event
            if len(self._headers) > self._window:
                self._headers.popitem(last=False)
        elif event.type == "LINKS":
            self._links = [*self._links[-self._window :], event]
        elif event.type == "LOG_RECORDED" and "facts" in event.payload:
            self._sayings.append(event)
        header = (event.stream, event.payload.get("header"))
        if header in self._headers:
            self._headers.move_to_end(header)
        if event.type not in _TOLD_OF:
            return []
        where = where_of(event)
        self._events.setdefault((where.trace, where.span), []).append(event)
        ends = event.type in _ENDS or (event.type == "WIRE_RECORDED" and "rung" in event.payload)
        return self._hand_out() if ends else []

    def close(self) -> list[NodeIoRecord]:
        """The records that were still waiting; calls that have not ended are handed out as interrupted."""
        return self._hand_out(closing=True)

    def _hand_out(self, *, closing: bool = False) -> list[NodeIoRecord]:
        events = chain(self._headers.values(), self._links, self._sayings, *self._events.values())
        view = View(MemorySource(events, live=lambda stream: not closing), self._earlier)
        records: list[NodeIoRecord] = []
        for s, record in view.final(self._is_told):
            if record.span_id is None and record.dialect == "recovered":
                if record.record_id in self._recovered:
                    continue
                self._recovered[record.record_id] = None
                if len(self._recovered) > 16 * self._window:
                    self._recovered.popitem(last=False)
            else:
                if self._also is not None:
                    self._also(view, s)
                self._told[_key(s)] = _shape(s)
                if s.kind == Kind.MODEL and s.step is not None:
                    self._earlier.steps[_key(s)] = s.step
            records.append(record)
        self._forget(view)
        return records

    def _is_told(self, s: Span) -> bool:
        before, now = self._told.get(_key(s)), _shape(s)
        return before is not None and before[0] == now[0] and before[1] >= now[1] and before[2] >= now[2]

    def _forget(self, view: View) -> None:
        """Let go of the oldest calls that were handed out, and of the oldest ended agents and steps."""
        if len(self._events) <= self._window + 8:
            return
        open_spans = [s for s in view.spans() if s.state == OPEN]
        needed = {above for s in open_spans for above in s.lineage()}
        ended = [s for s in view.leading if s.state != OPEN and s not in needed and self._is_told(s)]
        waiting = [s for s in ended if s.kind == Kind.MODEL and view.awaits(s)][-self._window :]
        for s in ended[: -self._window or None]:
            if s in waiting:
                continue
            if s.kind == Kind.MODEL and not s.marks & REEXPORT and (turn := view.turn(s)) is not None:
                dropped = self._earlier.dropped
                dropped[turn] = dropped.get(turn, 0) + 1
                dropped.move_to_end(turn)
                if len(dropped) > 16 * self._window:
                    dropped.popitem(last=False)
            self._earlier.steps.pop(_key(s), None)
            for member in s.members():
                self._events.pop(_key(member), None)
                self._told.pop(_key(member), None)
        held = {above for s in ended[-self._window :] for above in s.lineage()} | needed
        around = [s for s in view.spans() if not s.is_node and s.state == ENDED and s not in held]
        around.sort(key=lambda s: s.seq)
        for s in around[: -self._window or None]:
            self._events.pop(_key(s), None)
        while len(self._events) > 64 * self._window:  # spans that never end
            self._events.popitem(last=False)
        models = [s for s in view.spans() if s.kind == Kind.MODEL and _key(s) in self._events]
        since = min((s.start for s in models if s.start is not None), default=0)
        while self._sayings and (nanos(self._sayings[0].payload.get("observedAt")) or 0) < since:
            self._sayings.popleft()


def _key(s: Span) -> Key:
    return s.trace, s.span


def _shape(s: Span) -> Shape:
    extra = s.extra
    further = len(extra.copies) + len(extra.amended) if extra is not None else 0
    return s.state, frozenset(m.span for m in s.members()), further
