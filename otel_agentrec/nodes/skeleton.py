"""Pass 1 of the fold: one small skeleton per span, made from all events that tell of it.

A skeleton holds what is needed to find duplicates, pair calls and results, and order records. What people, models and
tools said stays on disk until a record is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from otel_agentrec.journal.events import Event
from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.source import Place, facts_of

__all__ = ["ENDED", "INTERRUPTED", "OPEN", "Call", "Extra", "Span", "Table"]

Json = Any
Call = tuple[str | None, str | None]
"""A call that a model asked for: (call id, tool name)."""

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

_STARTS = {"NODE_STARTED": None, "RUN_STARTED": Kind.AGENT, "HANDOFF_STARTED": Kind.AGENT, "STEP_STARTED": Kind.STEP}
_ENDS = {"NODE_RECORDED": None, "RUN_ENDED": Kind.AGENT, "HANDOFF_ENDED": Kind.AGENT, "STEP_ENDED": Kind.STEP}
_OUTPUTS = ("outputMessages", "outputText", "reasoningText", "outputRaw", "result")
_INPUTS = ("messages", "arguments")


class Extra:
    """What only few spans have: ids given by the span itself, further events, the caller's user."""

    __slots__ = ("amended", "answered", "copies", "interrupted", "retries", "run", "step", "turn", "user")

    def __init__(self) -> None:
        self.run: str | None = None
        self.turn: str | None = None
        self.step: int | None = None
        self.user: str | None = None
        self.copies: list[Place] = []
        """Further NODE_RECORDED events of the same span."""
        self.amended: list[Place] = []
        self.interrupted: Place | None = None
        self.answered: dict[str, Json] | None = None
        self.retries = 0
        """MODEL_RETRY events."""


class Span:
    """The skeleton of one span. Times are nanoseconds since the epoch."""

    __slots__ = (
        "asked",
        "call_no",
        "calls",
        "end",
        "extra",
        "group",
        "ident",
        "kind",
        "marks",
        "name",
        "parent",
        "provider",
        "scope",
        "seq",
        "session",
        "span",
        "start",
        "started_seq",
        "state",
        "step",
        "stream",
        "tokens_in",
        "tokens_out",
        "trace",
        "up",
    )

    def __init__(self, trace: str, span: str) -> None:
        self.trace = trace
        self.span = span
        self.parent: str | None = None
        self.up: Span | None = None
        """The nearest ancestor that is in the journal; set by :meth:`Table.link`."""
        self.kind: str | None = None
        self.scope: str | None = None
        self.provider: int | None = None
        """Number of the PROVIDER_SEEN in its stream: the resource that the span came from."""
        self.name: str | None = None
        """Model, tool or agent name; of a STEP its kind."""
        self.ident: str | None = None
        """Of a TOOL the call id, of a MODEL the response id."""
        self.calls: tuple[Call, ...] | None = None
        self.stream = ""
        self.seq = -1
        """The event that leads: the first NODE_RECORDED, else what else told of the span."""
        self.started_seq = -1
        self.start: int | None = None
        self.end: int | None = None
        self.session: str | None = None
        self.state = OPEN
        self.marks = 0
        self.tokens_in: int | None = None
        self.tokens_out: int | None = None
        self.step: int | None = None
        self.asked: Span | None = None
        """Of a TOOL: the model call that asked for it."""
        self.call_no = -1
        """Index of that call in ``asked.calls``; -1: paired by its id alone."""
        self.group: list[Span] | None = None
        """Of a leading span: the other spans of the same call, outermost first."""
        self.extra: Extra | None = None

    @property
    def place(self) -> Place:
        return Place(self.stream, self.seq)

    @property
    def is_node(self) -> bool:
        return self.kind == Kind.MODEL or self.kind == Kind.TOOL

    def more(self) -> Extra:
        if self.extra is None:
            self.extra = Extra()
        return self.extra

    def lineage(self) -> Iterator[Span]:
        """The ancestors in the journal, nearest first."""
        at = self.up
        while at is not None:
            yield at
            at = at.up

    def members(self) -> list[Span]:
        """All spans of this call, the leading one first."""
        return [self, *(self.group or ())]

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} {self.span}>"


class Table:
    """All skeletons of a recording, by trace id and span id, and the parents of spans that are not journalled."""

    def __init__(self) -> None:
        self.traces: dict[str, dict[str, Span]] = {}
        self.links: dict[str, dict[str, str]] = {}
        """trace id -> foreign span id -> its parent's span id, or "" for a root."""
        self.extra: list[Span] = []
        """Exports of a span with other content than the first one."""
        self.by_record: list[tuple[str, Place]] = []
        """(record id or span id, place) of later events whose span was not known when they were read."""
        self._names: dict[str, str] = {}
        self._live: set[str] = set()
        """Streams that were written as spans started; they name every ancestor that is in the journal."""
        self._next_segment: dict[str, str] = {}

    def __iter__(self) -> Iterator[Span]:
        for spans in self.traces.values():
            yield from spans.values()
        yield from self.extra

    def get(self, trace: str, span: str) -> Span | None:
        return self.traces.get(trace, {}).get(span)

    def add(self, e: Event) -> Span | None:
        """Take one event; events of one stream come in the order of their seq. Returns the span it tells of."""
        if e.type in _ENDS:
            return self._ended(e)
        if e.type in _STARTS:
            return self._started(e)
        if e.type == "LINKS":
            for trace, links in (e.payload.get("links") or {}).items():
                for child, parent in links.items():
                    self._link(trace, child, parent or "")
        elif e.type == "STREAM_OPENED":
            previous = (e.payload.get("prevStream") or {}).get("id")
            if previous:
                self._next_segment[previous] = e.stream
        elif e.type == "NODE_INTERRUPTED":
            return self._interrupted(e)
        elif e.type in ("NODE_AMENDED", "NODE_ANSWERED", "MODEL_RETRY"):
            return self._amended(e)
        return None

    # --- the events of one span ---------------------------------------------------------------------------------------

    def _started(self, e: Event) -> Span:
        s = self._span(e)
        if s.seq < 0:
            s.stream, s.seq = self._name(e.stream), e.seq
        if s.started_seq < 0 and s.stream == e.stream:
            s.started_seq = e.seq
        self._live.add(s.stream)
        self._fill(s, e, e.payload, _STARTS[e.type] or e.payload.get("type"), lead=False)
        return s

    def _ended(self, e: Event) -> Span:
        s = self._span(e)
        kind = _ENDS[e.type] or e.payload.get("type")
        if s.state == ENDED:
            s.more().copies.append(Place(self._name(e.stream), e.seq))
            return s
        s.state = ENDED
        self._moved(s, e)
        self._fill(s, e, e.payload, kind, lead=True)
        return s

    def _interrupted(self, e: Event) -> Span:
        s = self._span(e)
        record = e.payload.get("record") or {}
        if s.state != ENDED:
            s.state = INTERRUPTED
            if s.extra is None or s.extra.interrupted is None:
                s.more().interrupted = Place(self._name(e.stream), e.seq)
                self._moved(s, e)
        self._fill(s, e, record, record.get("type"), lead=False)
        return s

    def _moved(self, s: Span, e: Event) -> None:
        """From now on this event leads. A start counts only within one stream."""
        if s.started_seq >= 0 and s.stream != e.stream:
            s.started_seq = -1
        s.stream, s.seq = self._name(e.stream), e.seq

    def _amended(self, e: Event) -> Span | None:
        span_id = (e.trace or {}).get("spanId") or e.payload.get("spanId")
        trace = (e.trace or {}).get("traceId")
        place = Place(self._name(e.stream), e.seq)
        s = self.get(trace, span_id) if trace and span_id else None
        if s is None:
            named = e.payload.get("recordId") or e.payload.get("node") or span_id
            if named:
                self.by_record.append((named, place))
            return None
        self.amend(s, place, e)
        return s

    def amend(self, s: Span, place: Place, e: Event) -> None:
        """Keep what a later event says of a span that is known."""
        if e.type == "NODE_ANSWERED":
            s.more().answered = e.payload.get("from")
        elif e.type == "MODEL_RETRY":
            s.more().retries += 1
        else:
            s.more().amended.append(place)
            self._facts(s, facts_of(e), lead=False)

    # --- filling ------------------------------------------------------------------------------------------------------

    def _span(self, e: Event) -> Span:
        trace = e.trace or {}
        trace_id, span_id = trace.get("traceId") or "", trace.get("spanId") or ""
        if not span_id:  # told without a span: the event itself is the identity
            trace_id, span_id = "", f"{e.stream}#{e.seq}"
        spans = self.traces.setdefault(trace_id, {})
        s = spans.get(span_id)
        if s is None:
            known = next(iter(spans.values())).trace if spans else trace_id
            s = spans[span_id] = Span(known, span_id)
        parent = trace.get("parentSpanId")
        if parent:
            s.parent = s.parent or parent
            path = trace.get("path") or []
            if path:
                s.marks |= PATH_TOLD
            for child, above in zip([parent, *path], path, strict=False):
                if child != above:
                    self._link(trace_id, child, above)
        return s

    def _fill(self, s: Span, e: Event, payload: dict[str, Json], kind: str | None, *, lead: bool) -> None:
        if kind and (lead or s.kind is None):
            s.kind = self._name(kind)
        for attribute, value in (
            ("start", nanos(payload.get("startedAt"))),
            ("end", nanos(payload.get("endedAt"))),
            ("scope", self._name(payload.get("scope"))),
            ("provider", payload.get("provider")),
            ("session", self._name(e.session)),
        ):
            if value is not None and (lead or getattr(s, attribute) is None):
                setattr(s, attribute, value)
        if e.run is not None or e.turn is not None or e.step is not None:
            more = s.more()
            more.run = self._name(e.run) if e.run is not None else more.run
            more.turn = self._name(e.turn) if e.turn is not None else more.turn
            more.step = e.step if e.step is not None else more.step
        facts = payload.get("facts")
        if isinstance(facts, dict):
            self._facts(s, facts, lead=lead)
        if s.kind == Kind.STEP:
            s.name = self._name(payload.get("kind"))
        elif s.name is None and s.kind == Kind.AGENT:
            s.name = self._name(payload.get("name"))

    def _facts(self, s: Span, facts: dict[str, Json], *, lead: bool) -> None:
        if s.kind == Kind.TOOL:
            ident, name = facts.get("toolCallId"), facts.get("toolName")
        elif s.kind == Kind.AGENT:
            ident, name = None, facts.get("agentName")
            if facts.get("userId"):
                s.more().user = self._name(facts["userId"])
        else:
            ident, name = facts.get("responseId"), facts.get("model") or facts.get("responseModel")
        calls = facts.get("calls")
        if isinstance(calls, list):
            made = tuple((c.get("id"), self._name(c.get("name"))) for c in calls if isinstance(c, dict))
            s.calls = made if lead or s.calls is None else s.calls
        elif s.calls is None and has(facts, "outputMessages"):
            s.calls = ()
        if ident and (lead or s.ident is None):
            s.ident = ident
        if name and (lead or s.name is None):
            s.name = self._name(name)
        if s.tokens_in is None and s.tokens_out is None:
            s.tokens_in, s.tokens_out = facts.get("inputTokens"), facts.get("outputTokens")
        if any(has(facts, key) for key in _OUTPUTS):
            s.marks |= SAID | PUT_OUT
        elif any(has(facts, key) for key in _INPUTS):
            s.marks |= SAID
        if facts.get("status") == "error":
            s.marks |= FAILED

    def _name(self, text: str | None) -> Any:
        return None if text is None else self._names.setdefault(text, text)

    def _link(self, trace: str, child: str, parent: str) -> None:
        links = self.links.setdefault(trace, {})
        links[child] = max(links.get(child, ""), parent)

    def settle(self, is_live: Callable[[str], bool]) -> None:
        """A span that was started by a process that is gone is interrupted, if nothing tells of its end."""
        for s in self:
            if s.state == OPEN and not self._goes_on(s.stream, is_live):
                s.state = INTERRUPTED

    def _goes_on(self, stream: str, is_live: Callable[[str], bool]) -> bool:
        """Is the process still writing, to this stream or to a later segment of it?"""
        at: str | None = stream
        for _ in range(len(self._next_segment) + 1):
            if at is None or is_live(at):
                break
            at = self._next_segment.get(at)
        return at is not None and is_live(at)

    # --- ancestors ----------------------------------------------------------------------------------------------------

    def link(self) -> None:
        """Find each span's nearest ancestor in the journal; mark spans with an unknown one. Loops are cut."""
        for spans in self.traces.values():
            for s in spans.values():
                s.up, missing = self._above(s, spans)
                if missing and s.stream in self._live and not s.marks & PATH_TOLD:
                    missing = ""  # a foreign parent, which a live stream does not journal
                s.marks = s.marks | ROOT_MISSING if missing else s.marks & ~ROOT_MISSING
                if s.up is not None and s.up.span == s.parent:
                    s.parent = s.up.span
            _cut_loops(spans)
        for s in self.extra:
            s.up, _ = self._above(s, self.traces[s.trace])

    def _above(self, s: Span, spans: dict[str, Span]) -> tuple[Span | None, str]:
        links, at, seen = self.links.get(s.trace, {}), s.parent, 0
        while at:
            if at in spans:
                return (spans[at], "") if at != s.span else (None, "")
            if at not in links or seen > 1000:
                return None, at
            at, seen = links[at], seen + 1
        return None, ""

    def missing_parent(self, s: Span) -> str | None:
        """The id of the ancestor that is not known, of a span marked ROOT_MISSING."""
        return self._above(s, self.traces[s.trace])[1] or None


def _cut_loops(spans: dict[str, Span]) -> None:
    """Parent links that run in a circle are cut at the smallest span id."""
    settled: set[str] = set()
    for s in spans.values():
        walk: dict[str, Span] = {}
        at: Span | None = s
        while at is not None and at.span not in settled:
            if at.span in walk:
                ids = list(walk)
                walk[min(ids[ids.index(at.span) :])].up = None
                break
            walk[at.span] = at
            at = at.up
        settled.update(walk)


def nanos(text: Json) -> int | None:
    """Nanoseconds of a decimal string; None for anything else."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    try:
        return int(text) if isinstance(text, str) else None
    except ValueError:
        return None


def has(facts: dict[str, Json], key: str) -> bool:
    """Is this fact known, and not only that it was left out?"""
    value = facts.get(key)
    return value is not None and not (isinstance(value, dict) and "$off" in value)
