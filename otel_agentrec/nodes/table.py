"""Pass 1 of the fold: one small skeleton per span, made from all events that tell of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from otel_agentrec.journal.events import Event
from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.effects import LEDGER, EffectEvents
from otel_agentrec.nodes.losses import Losses
from otel_agentrec.nodes.sayings import Sayings
from otel_agentrec.nodes.skeleton import (
    ENDED,
    FAILED,
    INTERRUPTED,
    OPEN,
    OTHER_EXPORT,
    PATH_TOLD,
    PUT_OUT,
    ROOT_MISSING,
    SAID,
    Rows,
    Span,
    mark,
)
from otel_agentrec.nodes.sound import facts_of, given_of, record_of, text_or_none, where_of
from otel_agentrec.nodes.source import Place
from otel_agentrec.nodes.spanindex import SpanIndex
from otel_agentrec.nodes.wires import Wires

__all__ = ["Table"]

Json = Any

_STARTS = {"NODE_STARTED": None, "RUN_STARTED": Kind.AGENT, "HANDOFF_STARTED": Kind.AGENT, "STEP_STARTED": Kind.STEP}
_ENDS = {"NODE_RECORDED": None, "RUN_ENDED": Kind.AGENT, "HANDOFF_ENDED": Kind.AGENT, "STEP_ENDED": Kind.STEP}
_OUTPUTS = ("outputMessages", "outputText", "reasoningText", "outputRaw", "result")
_INPUTS = ("messages", "arguments")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Table:
    """All skeletons of a recording, by trace id and span id, and the parents of spans that are not journalled."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.by_record: list[tuple[str, Place]] = []
        """(record id or span id, place) of later events whose span was not known when they were read."""
        self.evaluations: dict[str, list[Place]] = {}
        """record id -> where EVALUATED events stand that name it"""
        self.losses = Losses()
        self.ledger = EffectEvents()
        """Effects, and which run resumes which."""
        self.sayings = Sayings()
        """What log records tell of model calls whose spans they do not name."""
        self.wires = Wires()
        """The attempts that were seen on the wire."""
        self.unusable = 0
        """Events whose payload has not the shape of its type."""
        self._index = SpanIndex(self.rows)
        self._links: dict[str, dict[str, str]] = {}
        """trace id -> foreign span -> its parent, or "" for a root."""
        self._live: set[str] = set()
        """Streams that were written as spans started; they name every ancestor that is in the journal."""
        self._next_segment: dict[str, str] = {}
        self._unsealed: set[str] = set()
        """Streams of processes that recorded themselves, as far as nothing tells of their end."""
        self.cut_off: set[str] = set()
        """Streams of processes that are gone and did not say so; set by :meth:`settle`."""

    def __iter__(self) -> Iterator[Span]:
        rows = self.rows
        return (Span(rows, row) for row in range(rows.size))

    def __len__(self) -> int:
        return self.rows.size

    def get(self, trace: str, span: str) -> Span | None:
        return self._index.find(trace, span)

    def add(self, e: Event) -> Span | None:
        """Take one event; events of one stream come in the order of their seq. Returns the span it tells of."""
        try:
            return self._add(e)
        except (TypeError, AttributeError, ValueError, OverflowError):  # a hostile payload; what it tells is not used
            self.unusable += 1
            return None

    def add_apart(self, e: Event, like: Span) -> Span:
        """Another export of a span, with other content: a row of its own."""
        s = Span(self.rows, self.rows.grow())
        s.trace, s.span, s.parent, s.session = like.trace, like.span, like.parent, like.session
        s.marks = OTHER_EXPORT | like.marks & PATH_TOLD
        self._tell_end(s, e)
        return s

    def _add(self, e: Event) -> Span | None:
        if e.type in _ENDS:
            return self._ended(e)
        if e.type in _STARTS:
            return self._started(e)
        if e.type == "LINKS":
            self._links_of(e.payload.get("links"))
        elif e.type == "STREAM_OPENED":
            previous = e.payload.get("prevStream")
            if isinstance(previous, dict) and isinstance(previous.get("id"), str):
                self._next_segment[previous["id"]] = e.stream
            if "configDigest" in e.payload:
                self._unsealed.add(e.stream)
        elif e.type == "NODE_INTERRUPTED":
            return self._interrupted(e)
        elif e.type in ("NODE_AMENDED", "NODE_ANSWERED", "MODEL_RETRY"):
            return self._amended(e)
        elif e.type == "EVALUATED":
            judged = e.payload.get("recordId")
            if isinstance(judged, str) and isinstance(e.payload.get("name"), str):
                self.evaluations.setdefault(judged, []).append(Place(e.stream, e.seq))
        elif e.type == "LOG_RECORDED":
            self.sayings.add(e)
        elif e.type == "WIRE_RECORDED":
            self.wires.add(e)
        elif e.type in LEDGER:
            self.ledger.add(e)
        elif e.type in ("DROPPED", "STREAM_SEALED"):
            if e.type == "STREAM_SEALED":
                self._unsealed.discard(e.stream)
            self.losses.add(e)
        return None

    # --- the events of one span ---------------------------------------------------------------------------------------

    def _started(self, e: Event) -> Span:
        s = self._span(e)
        if s.seq < 0:
            s.stream, s.seq = e.stream, e.seq
        if s.started_seq < 0 and s.stream == e.stream:
            s.started_seq = e.seq
        self._live.add(e.stream)
        self._fill(s, e, _STARTS[e.type], lead=False)
        return s

    def _ended(self, e: Event) -> Span:
        s = self._span(e)
        if s.state == ENDED:
            s.more().copies.append(Place(e.stream, e.seq))
        else:
            self._tell_end(s, e)
        return s

    def _tell_end(self, s: Span, e: Event) -> None:
        s.state = ENDED
        self._moved(s, e)
        self._fill(s, e, _ENDS[e.type], lead=True)

    def _interrupted(self, e: Event) -> Span:
        s = self._span(e)
        if s.state != ENDED:
            s.state = INTERRUPTED
            if s.extra is None or s.extra.interrupted is None:
                s.more().interrupted = Place(e.stream, e.seq)
                self._moved(s, e)
        self._fill(s, e, None, lead=False)
        return s

    def _moved(self, s: Span, e: Event) -> None:
        """From now on this event leads. A start counts only within one stream."""
        if s.started_seq >= 0 and s.stream != e.stream:
            s.started_seq = -1
        s.stream, s.seq = e.stream, e.seq

    def _amended(self, e: Event) -> Span | None:
        where, place = where_of(e), Place(e.stream, e.seq)
        span = (where.trace and where.span) or text_or_none(e.payload.get("spanId"))
        s = self.get(where.trace, span) if where.trace and span else None
        if s is None:
            named = text_or_none(e.payload.get("recordId")) or text_or_none(e.payload.get("node")) or span
            if named:
                self.by_record.append((named, place))
            return None
        self.amend(s, place, e)
        return s

    def amend(self, s: Span, place: Place, e: Event) -> None:
        """Keep what a later event says of a span that is known."""
        if e.type == "NODE_ANSWERED":
            told = e.payload.get("from")
            s.more().answered = told if isinstance(told, dict) else None
        elif e.type == "MODEL_RETRY":
            s.more().retries += 1
        else:
            s.more().amended.append(place)
            self.wires.assign(s, e.payload)
            self._facts(s, facts_of(e), lead=False)

    # --- filling ------------------------------------------------------------------------------------------------------

    def _span(self, e: Event) -> Span:
        where = where_of(e)
        s = self._index.find_or_add(where.trace, where.span)
        if where.parent:
            s.parent = s.parent or where.parent
            if where.path:
                s.marks |= PATH_TOLD
            for child, above in zip([where.parent, *where.path], where.path, strict=False):
                if child != above:
                    self._link(where.trace, child, above)
        return s

    def _fill(self, s: Span, e: Event, kind: str | None, *, lead: bool) -> None:
        payload = record_of(e)
        kind = kind or (payload.get("type") if payload.get("type") in (Kind.MODEL, Kind.TOOL) else None)
        if kind and (lead or s.kind is None):
            s.kind = kind
        for attribute, value in (
            ("start", nanos(payload.get("startedAt"))),
            ("end", nanos(payload.get("endedAt"))),
            ("scope", payload.get("scope")),
            ("provider", payload.get("provider")),
            ("session", e.session),
        ):
            if value is not None and (lead or getattr(s, attribute) is None):
                setattr(s, attribute, value)
        if e.run is not None or e.turn is not None or e.step is not None:
            more = s.more()
            more.run = text_or_none(e.run) or more.run
            more.turn = text_or_none(e.turn) or more.turn
            more.step = e.step if type(e.step) is int else more.step
        if "given" in payload:
            s.more().given = text_or_none(given_of(e).get("recordId"))
        self._facts(s, facts_of(e), lead=lead)
        if s.kind == Kind.STEP:
            s.name = payload.get("kind")
        elif s.name is None and s.kind == Kind.AGENT:
            s.name = _label(payload.get("name"))

    def _facts(self, s: Span, facts: dict[str, Json], *, lead: bool) -> None:
        if s.kind == Kind.TOOL:
            ident, name = facts.get("toolCallId"), facts.get("toolName")
        elif s.kind == Kind.AGENT:
            ident, name = None, facts.get("agentName")
            if facts.get("userId"):
                s.more().user = facts["userId"]
        else:
            ident, name = facts.get("responseId"), facts.get("model") or facts.get("responseModel")
        calls = facts.get("calls")
        if calls is not None:
            if lead or s.calls_count < 0:
                s.calls = [(mark(c.get("id")), text_or_none(c.get("name"))) for c in calls]
        elif s.calls_count < 0 and has(facts, "outputMessages"):
            s.calls = ()
        if ident and (lead or s.ident is None):
            s.ident = mark(ident)
        if name and (lead or s.name is None):
            s.name = name
        if s.tokens_in is None and s.tokens_out is None:
            s.tokens_in, s.tokens_out = facts.get("inputTokens"), facts.get("outputTokens")
        if any(has(facts, key) for key in _OUTPUTS):
            s.marks |= SAID | PUT_OUT
        elif any(has(facts, key) for key in _INPUTS):
            s.marks |= SAID
        if facts.get("status") == "error":
            s.marks |= FAILED

    def _links_of(self, links: Json) -> None:
        for trace, parents in links.items() if isinstance(links, dict) else ():
            for child, parent in parents.items() if isinstance(parents, dict) else ():
                self._link(trace, child, text_or_none(parent) or "")

    def _link(self, trace: str, child: str, parent: str) -> None:
        links = self._links.setdefault(trace, {})
        links[child] = links.get(child) or parent

    def settle(self, is_live: Callable[[str], bool]) -> None:
        """A span that was started by a process that is gone is interrupted, if nothing tells of its end."""
        for s in self:
            if s.state == OPEN and not self._goes_on(s.stream, is_live):
                s.state = INTERRUPTED
        self.cut_off = {stream for stream in self._unsealed if not self._goes_on(stream, is_live)}

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
        for s in self:
            s.up, missing = self._above(s)
            if missing and s.stream in self._live and not s.marks & PATH_TOLD:
                missing = ""  # a foreign parent, which a live stream does not journal
            s.marks = s.marks | ROOT_MISSING if missing else s.marks & ~ROOT_MISSING
        self._cut_loops()
        named = {key: found for key in self.wires.keys if (found := self.get(*key)) is not None}
        self.wires.link(named)

    def _above(self, s: Span) -> tuple[Span | None, str]:
        """(nearest ancestor in the journal, or None; id of the ancestor that is unknown, or "")"""
        links, at = self._links.get(s.trace, {}), s.parent
        for _ in range(1000):
            if not at:
                break
            found = self._index.find(s.trace, at)
            if found is not None:
                return (found if found != s else None), ""
            if at not in links:
                return None, at
            at = links[at]
        return None, ""

    def missing_parent(self, s: Span) -> str | None:
        """The id of the ancestor that is not known, of a span marked ROOT_MISSING."""
        return self._above(s)[1] or None

    def foreign_below(self) -> Iterator[tuple[str, Span]]:
        """(id of a span that is not journalled, its nearest ancestor that is)"""
        for trace, links in self._links.items():
            for child in links:
                at, found = child, self._index.find(trace, child)
                for _ in range(1000):
                    if found is not None or at not in links:
                        break
                    at = links[at]
                    found = self._index.find(trace, at)
                if found is not None and at != child:
                    yield child, found

    def _cut_loops(self) -> None:
        """Parent links that run in a circle are cut at the smallest span id."""
        settled = bytearray(len(self))
        for s in self:
            walk: dict[Span, None] = {}
            at: Span | None = s
            while at is not None and not settled[at.row]:
                if at in walk:
                    circle = list(walk)
                    min(circle[circle.index(at) :], key=lambda x: x.span).up = None
                    break
                walk[at] = None
                at = at.up
            for passed in walk:
                settled[passed.row] = 1


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


def _label(name: Json) -> str | None:
    """What an agent is called that has no name but its span's; None where that holds only an id, which nobody gave it."""
    if not isinstance(name, str):
        return None
    operation, _, named = name.partition(" ")
    return None if operation == "invoke_agent" and (not named or _UUID.fullmatch(named)) else name
