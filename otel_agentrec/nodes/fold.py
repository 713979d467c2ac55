"""The one fold: the events of a recording, in any order, to runs and node records.

Pass 1 reads all events without content and keeps a small skeleton per span; then duplicates are found, tools are paired
with the calls that asked for them, and everything is put in cause order. Pass 2 builds one record at a time, when it is
asked for. Any permutation of the same events gives the same view.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from otel_agentrec.journal.events import Event
from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.belonging import Belonging
from otel_agentrec.nodes.copies import mark_reexports, split_conflicts
from otel_agentrec.nodes.effects import Effect, fold_effects
from otel_agentrec.nodes.evaluations import Evaluations
from otel_agentrec.nodes.hearing import hear
from otel_agentrec.nodes.identity import record_id
from otel_agentrec.nodes.implied import Implied
from otel_agentrec.nodes.intercepted import Intercepted
from otel_agentrec.nodes.lanes import Lane
from otel_agentrec.nodes.lanesof import Lanes
from otel_agentrec.nodes.lineage import Lineages
from otel_agentrec.nodes.loops import Loops
from otel_agentrec.nodes.losses import Losses
from otel_agentrec.nodes.memo import Memo
from otel_agentrec.nodes.merge import merge_calls
from otel_agentrec.nodes.order import cause_order
from otel_agentrec.nodes.pairing import Pairing, agent_of, is_alone
from otel_agentrec.nodes.passed_on import PassedOn
from otel_agentrec.nodes.record import Builder, Heard, message_memo
from otel_agentrec.nodes.recovery import Recovery
from otel_agentrec.nodes.runs import Run, agents_alone, runs_of
from otel_agentrec.nodes.skeleton import MERGED, OPEN, REEXPORT, Span
from otel_agentrec.nodes.source import MemorySource, Place, RecordingSource, Source
from otel_agentrec.nodes.table import Table
from otel_agentrec.nodes.wires import Wire, Wires
from otel_agentrec.records import NodeIoRecord

__all__ = ["Earlier", "View", "fold"]


def fold(events: Iterable[Event] | Recording, *, live: Collection[str] | Callable[[str], bool] = ()) -> View:
    """Fold a recording, or events in memory.

    Args:
        events: a Recording, or events whose payloads hold their content already.
        live: of events in memory, the streams that are still being written; a recording's files tell it themselves.
    """
    if isinstance(events, Recording):
        return View(RecordingSource(events))
    return View(MemorySource(events, live))


@dataclass
class Earlier:
    """What folds over earlier windows of the same events found, for the next one."""

    dropped: OrderedDict[str, int] = field(default_factory=OrderedDict)
    """turn id -> number of its model calls that have left the window"""
    steps: dict[tuple[str, str], int] = field(default_factory=dict)
    """(trace id, span id) of a model call -> its step"""
    messages: Memo = field(default_factory=message_memo)


class View:
    """The merged view of a recording.

    Args:
        source: where the events are read from.
        earlier: what earlier folds found, when this one is made over a window of the events.
    """

    def __init__(self, source: Source, earlier: Earlier | None = None) -> None:
        earlier = earlier or Earlier()
        self._table = table = Table()
        for event in source.events():
            table.add(event)
        _resolve_record_ids(table, source)
        split_conflicts(table, source)
        table.link()
        table.settle(source.is_live)
        self._source = source = hear(table, source)
        merge_calls(table, source)
        self._belonging = belonging = Belonging(table)
        leading = [s for s in table if s.is_node and not s.marks & MERGED]
        repeats = mark_reexports(table, source, belonging.session)
        handoffs = [s for s in table if s.kind == Kind.STEP and s.name == "handoff"]
        self._pairing = Pairing(source, table.rows, leading, belonging.run, belonging.session, handoffs)
        implied = Implied(source, leading, belonging.run)
        for tool in leading:
            if tool.kind == Kind.TOOL and tool.asked is not None and is_alone(tool):
                belonging.join(tool, tool.asked)
        around = Loops(source, belonging.leader).around
        loops = {s: loop for s in leading if (loop := around(s)) is not None}
        order = cause_order(leading, loops, belonging.leader)
        _count_steps(order, belonging, repeats, loops, earlier)
        self._order = array("i", [s.row for s in order])
        self._evaluations = Evaluations(source, table.evaluations)
        passed_on = PassedOn(source, table)
        self._builder = Builder(
            source,
            belonging,
            self._pairing,
            implied,
            passed_on,
            self._evaluations,
            table.wires,
            Intercepted(source, table.ledger),
            earlier.messages,
        )

    @cached_property
    def runs(self) -> list[Run]:
        """All runs, the earliest first."""
        recovery = Recovery(self._source, self._belonging, self._pairing, self.leading)
        recovered: list[Span] = []
        for s in self.leading:
            if s.kind == Kind.MODEL:
                recovered.extend(model for model, *_ in recovery.passed(s))
        return runs_of(
            self._table, self._source, self._belonging, recovered, recovery.open_calls(), self.lineages, self.effects
        )

    @cached_property
    def lineages(self) -> Lineages:
        """Which run resumes which."""
        return self._table.ledger.lineages

    @cached_property
    def effects(self) -> list[Effect]:
        """The effects that were journalled, in the order in which they began (tool calls that have only a span are not here)."""
        source = self._source
        return fold_effects(
            self._table.ledger.events,
            self.lineages,
            lambda e: source.event(Place(e.stream, e.seq)).payload,
            source.is_live,
        )

    def records(self, run: str | Collection[str] | None = None) -> Iterator[NodeIoRecord]:
        """The records in cause order, each built when it is asked for.

        Calls that a live process has not finished are left out; a call whose process died is ``interrupted`` or
        ``partial``.

        Args:
            run: only records of the run with this id, or of the runs with these.
        """
        return (record for _, record in self.calls(run))

    def calls(
        self, run: str | Collection[str] | None = None, *, contents: bool = True
    ) -> Iterator[tuple[Span, NodeIoRecord]]:
        """:meth:`records`, each with its leading span; of a tool call without a span, the model call that asked for it.

        Args:
            run: only records of the run with this id, or of the runs with these.
            contents: also what was said; without it a record takes a small part of the time (see :meth:`Builder.build`).
        """
        recovery = Recovery(self._source, self._belonging, self._pairing, self.leading)
        runs = {run} if isinstance(run, str) else run
        for s in self.leading:
            wanted = runs is None or self._belonging.run(s) in runs
            record = self._builder.build(s, contents=contents) if wanted and s.state != OPEN else None
            if s.kind == Kind.MODEL:
                messages = record.inputs["messages"] if record is not None and contents else None
                for model, index, call_id, result in recovery.passed(s, messages):
                    if runs is None or self._belonging.run(model) in runs:
                        yield model, self._builder.recovered(model, index, call_id, result, s, contents=contents)
            if record is not None:
                yield s, record

    def told(self, s: Span) -> tuple[dict[str, Any], dict[str, Any]]:
        """All that the events of a call tell, by its leading span: its facts, and ``{instructions, tools, parameters}``."""
        return self._builder.told(s)

    def heard(self, s: Span) -> Heard:
        """What was said in a model call, by its leading span, and where in the journal it stands."""
        return self._builder.heard(s)

    def lane(self, s: Span) -> Lane:
        """The lane of a call, by its leading span."""
        return self._lanes.of(s)

    @cached_property
    def _lanes(self) -> Lanes:
        return Lanes(self._source, self._belonging, self._pairing)

    @property
    def agents_alone(self) -> list[Span]:
        """Agents that tell of their use but have no model call below them; of nested ones the outermost."""
        return agents_alone(self._table)

    @property
    def losses(self) -> Losses:
        """What the recording says of its own gaps."""
        return self._table.losses

    @property
    def evaluations(self) -> Evaluations:
        """The judgements of records, agents and steps."""
        return self._evaluations

    @property
    def wires(self) -> Wires:
        """The attempts of model calls that were seen on the wire, in the order of their requests."""
        return self._table.wires

    def run_of_wire(self, wire: Wire) -> str | None:
        """The run in which an attempt was made; None when nothing tells."""
        s = self._table.get(wire.trace, wire.span) if wire.span else None
        return wire.run if s is None else self._belonging.run(s)

    def lane_of_wire(self, wire: Wire) -> Lane | None:
        """The lane in which an attempt was made; None when nothing tells."""
        s = self._table.get(wire.trace, wire.span) if wire.span else None
        if s is not None:
            return self._lanes.of(s) if s.is_node else self._lanes.inside(s)
        return Lane(wire.run) if wire.run is not None else None

    def event(self, place: Place) -> Event:
        """One event, with all its content."""
        return self._source.event(place)

    # --- for live use: the fold is made again and again over a window of recent spans ---------------------------------

    def final(self, told: Callable[[Span], bool]) -> Iterator[tuple[Span, NodeIoRecord]]:
        """(leading span, record) of calls that have ended, with all spans around them that tell of the same call.

        Args:
            told: whether a call was handed out before, as it is now.
        """
        recovery = Recovery(self._source, self._belonging, self._pairing, self.leading)
        for s in self.leading:
            new = s.state != OPEN and not _is_inside_open(s) and not told(s)
            if s.kind == Kind.MODEL:  # what shows in the messages of an earlier call was found then
                for model, index, call_id, result in recovery.passed(s, None if new else []):
                    yield model, self._builder.recovered(model, index, call_id, result, s)
            if new:
                yield s, self._builder.build(s)

    @property
    def leading(self) -> Iterator[Span]:
        """The leading spans of all calls, in cause order."""
        return (Span(self._table.rows, row) for row in self._order)

    def spans(self) -> Iterator[Span]:
        """All spans."""
        return iter(self._table)

    def span(self, trace: str, span: str) -> Span | None:
        """The span with these ids; None when nothing tells of it."""
        return self._table.get(trace, span)

    def awaits(self, model: Span) -> bool:
        """Did a model call ask for a call that no tool span answers yet?"""
        return self._pairing.awaits(model)

    def run(self, s: Span) -> str:
        return self._belonging.run(s)

    def session(self, s: Span) -> str | None:
        return self._belonging.session(s)

    def turn(self, s: Span) -> str | None:
        return self._belonging.turn(s)


def _is_inside_open(s: Span) -> bool:
    """Is a span around this one still open that may tell of the same call?"""
    for above in s.lineage():
        if above.kind == s.kind or above.kind is None:
            return above.state == OPEN
        if above.is_node or above.kind == Kind.AGENT:
            return False
    return False


def _resolve_record_ids(table: Table, source: Source) -> None:
    """Hand events that name a record, or a span without its trace, to the span that is meant."""
    if not table.by_record:
        return
    by_id: dict[str, Span] = {}
    for s in table:
        by_id.setdefault(s.span, s)
        by_id[record_id(s)] = s
    for name, place in table.by_record:
        if name in by_id:
            table.amend(by_id[name], place, source.event(place))


def _count_steps(
    order: list[Span],
    belonging: Belonging,
    repeats: Mapping[Span, Span],
    loops: Mapping[Span, Span],
    earlier: Earlier,
) -> None:
    """Number the model calls of each turn from 1; a tool has the step of the call that asked for it.

    A tool that no call asked for has the step of the last model call of its agent before it.
    """
    count = dict(earlier.dropped)
    latest: dict[tuple[str | None, Span | None], int | None] = {}
    for s in order:
        given = next((m.extra.step for m in s.members() if m.extra is not None and m.extra.step is not None), None)
        turn = belonging.turn(s)
        if s.kind == Kind.MODEL and not s.marks & REEXPORT:
            key = turn or s.span
            count[key] = count.get(key, 0) + 1
            s.step = given if given is not None else earlier.steps.get((s.trace, s.span), count[key])
            latest[turn, agent_of(s)] = latest[turn, None] = s.step
        elif given is not None:
            s.step = given
        elif s.asked is not None:
            s.step = s.asked.step
        else:
            s.step = latest.get((turn, agent_of(s)), latest.get((turn, None)))
    for s in order:
        if s.kind == Kind.MODEL and s in repeats:
            s.step = repeats[s].step
        elif s.step is None and s in loops:
            s.step = loops[s].step
