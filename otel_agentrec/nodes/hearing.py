"""Log records that tell what was said in a call but do not name its span, brought to the call.

Some instrumentations emit such records while no span is current, or the one around the call is. Which model call is meant
shows in three things: the scope, which is that of the call's span; the span that is named, which is the one around the call,
or none where there is none around it; and the time: what a model is asked is told right after its span began, what it answered
right before it ends. Which tool call is meant shows in its call id.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from otel_agentrec.journal.events import Event
from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.sayings import Saying
from otel_agentrec.nodes.skeleton import FAILED, PUT_OUT, SAID, Span, mark
from otel_agentrec.nodes.sound import facts_of, record_of, text_or_none
from otel_agentrec.nodes.source import Place, Source
from otel_agentrec.nodes.table import Table

__all__ = ["hear"]

Json = Any
Facts = dict[str, Json]

_LISTS = ("messages", "outputMessages", "calls", "finishReasons")
_FURTHER = (
    "model",
    "responseModel",
    "responseId",
    "provider",
    "inputTokens",
    "outputTokens",
    "cacheReadTokens",
    "cacheWriteTokens",
    "reasoningTokens",
    "outputText",
)
"""Facts that a log record may tell as well; the first one counts."""
_OF_TOOL = ("arguments", "result", "toolName", "status", "errorType", "errorMessage")
"""Further facts that it may tell of a tool call."""
_SIDES = ("events", "tracing")
"""How a program may call its two scopes, that of its log records and that of its spans."""
_LOOK = 256
"""So many calls that began before a log record are looked at."""


def hear(table: Table, source: Source) -> Source:
    """Find the call of each log record; spans are marked with what they now tell.

    Args:
        table: its spans are linked.

    Returns:
        a source in which the events of those calls tell what the log records tell, where they don't themselves.
    """
    told = _assign(table, source)
    if not told:
        return source
    for s, places in told.items():
        _tell(s, [facts_of(source.outline(place)) for place in places])
    return _Hearing(source, {s.place: places for s, places in told.items()})


def _tell(s: Span, told: list[Facts]) -> None:
    joined = _joined(told)
    if s.kind == Kind.TOOL and joined.get("status") == "error":
        s.marks |= FAILED
    s.marks |= SAID | PUT_OUT if any("finishReasons" in facts or "calls" in facts for facts in told) else SAID
    if s.calls_count < 0 and "calls" in joined:
        s.calls = [(mark(c.get("id")), text_or_none(c.get("name"))) for c in joined["calls"]]


# --- whose is it --------------------------------------------------------------------------------------------------------


def _assign(table: Table, source: Source) -> dict[Span, list[Place]]:
    """Span of a call -> the log records that tell of it, in the order in which they were emitted."""
    sayings = table.sayings
    said = [Saying(sayings, row) for row in range(sayings.size)]
    said.sort(key=lambda x: (x.time or 0, x.place))
    calls = _Calls(table, {_program(x.scope) for x in said})
    tools = _tools(table, {x.ident for x in said if x.ident})
    said = list(_once(said, source))
    meant: dict[Saying, Span | None] = {x: tools.get((x.trace, x.ident)) for x in said if x.ident}
    meant.update(calls.meant_by([x for x in said if not x.ident and not x.is_answer]))
    meant.update(calls.meant_by([x for x in said if not x.ident and x.is_answer][::-1]))
    told: dict[Span, list[Place]] = defaultdict(list)
    for x in said:
        s = meant.get(x)
        if s is not None:
            told[s].append(x.place)
    return told


def _tools(table: Table, idents: Collection[int]) -> dict[tuple[str, int | None], Span]:
    """(trace id, mark of the call id) -> the outermost span of that tool call"""
    spans = [s for s in table if s.kind == Kind.TOOL and s.ident in idents] if idents else []
    spans.sort(key=lambda s: (s.start or 0, -_end(s), s.place), reverse=True)
    return {(s.trace, s.ident): s for s in spans}


def _program(scope: str | None) -> str | None:
    head, _, side = (scope or "").rpartition(".")
    return head if side in _SIDES else scope


def _once(said: Sequence[Saying], source: Source) -> Iterator[Saying]:
    """Without what was exported twice: equal records of the same nanosecond."""
    same: list[Saying] = []
    for x in said:
        if same and same[0].time != x.time:
            same = []
        if not any(_equal(x, other, source) for other in same):
            yield x
        same.append(x)


def _equal(a: Saying, b: Saying, source: Source) -> bool:
    if (a.scope, a.trace, a.span, a.is_answer) != (b.scope, b.trace, b.span, b.is_answer):
        return False
    return facts_of(source.event(a.place)) == facts_of(source.event(b.place))


class _Open:
    """Model calls by the time in which they were open."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = sorted(spans, key=lambda s: (s.start or 0, s.place))
        self._starts = [s.start or 0 for s in self._spans]
        self._longest = max((_end(s) - (s.start or 0) for s in self._spans), default=0)

    def at(self, time: int) -> list[Span]:
        """The calls that were open at a time, the latest first."""
        found: list[Span] = []
        last = bisect.bisect_right(self._starts, time)
        for i in range(last - 1, max(-1, last - 1 - _LOOK), -1):
            if self._starts[i] < time - self._longest:
                break
            if _end(self._spans[i]) >= time:
                found.append(self._spans[i])
        return found


class _Calls:
    """The model calls of a recording that a log record may be about."""

    def __init__(self, table: Table, scopes: Collection[str | None]) -> None:
        below: dict[tuple[str | None, str, str], list[Span]] = defaultdict(list)
        within: dict[tuple[str | None, str], list[Span]] = defaultdict(list)
        self._table = table
        for s in table:
            scope = _program(s.scope)
            if s.kind == Kind.MODEL and scope in scopes and s.start is not None:
                below[scope, s.trace if s.parent else "", s.parent].append(s)
                within[scope, s.trace].append(s)
                within[scope, ""].append(s)
        self._below = {key: _Open(spans) for key, spans in below.items()}
        self._within = {key: _Open(spans) for key, spans in within.items()}

    def meant_by(self, said: Iterable[Saying]) -> Iterator[tuple[Saying, Span]]:
        """(log record, the call that it tells of), of those that leave no doubt.

        Args:
            said: questions in the order in which they were told, or answers the last one first.
        """
        known: set[Span] = set()
        for x in said:
            found = self._open_around(x)
            if not found:
                continue
            best, *others = sorted(found, key=_end) if x.is_answer else found
            # that two calls began (or will end) and neither has been told of: it may be either
            if not any(s not in known and _expects(s, x) for s in others):
                known.add(best)
                yield x, best

    def _open_around(self, x: Saying) -> list[Span]:
        """The calls that were open when a log record was emitted and fit what it names, the latest first."""
        scope, time = _program(x.scope), x.time or 0
        direct = self._below.get((scope, x.trace, x.span))
        found = direct.at(time) if direct is not None else []
        if found:
            return found
        within = self._within.get((scope, x.trace))
        near = within.at(time) if within is not None else []
        named = self._table.get(x.trace, x.span) if x.span else None
        return [s for s in near if named is not None and named in s.lineage()] or near[: len(near) == 1]


def _expects(s: Span, x: Saying) -> bool:
    """Is a log record to be expected that tells the like of a call?"""
    if x.is_answer:
        return not s.marks & (PUT_OUT | FAILED) and s.tokens_out is not None
    return not s.marks & SAID


def _end(s: Span) -> int:
    return s.end if s.end is not None else 1 << 62


# --- what it tells ------------------------------------------------------------------------------------------------------


def _joined(told: Iterable[Mapping[str, Json]]) -> Facts:
    """The facts of several log records as those of one call. An answer without a role goes on where the last one stopped."""
    out: Facts = {}
    for facts in told:
        for key in _LISTS:
            value = facts.get(key)
            if not isinstance(value, list):
                if value is not None and key not in out:
                    out[key] = value  # the mark of what was left out
                continue
            before = out.get(key)
            before = before if isinstance(before, list) else []
            if key == "outputMessages" and before and _goes_on(value):
                last = before[-1]
                value = [{**last, "parts": [*_parts(last), *(p for m in value for p in _parts(m))]}]
                before = before[:-1]
            out[key] = [*before, *value]
        for key in (*_FURTHER, *_OF_TOOL) if "toolCallId" in facts else _FURTHER:
            if facts.get(key) is not None:
                out.setdefault(key, facts[key])
    return out


def _goes_on(messages: list[Json]) -> bool:
    return all(isinstance(m, dict) and "parts" in m and "role" not in m for m in messages)


def _parts(message: Json) -> list[Json]:
    parts = message.get("parts") if isinstance(message, dict) else None
    return parts if isinstance(parts, list) else []


class _Hearing:
    """A source in which some events tell what log records tell of them."""

    def __init__(self, source: Source, told: Mapping[Place, Sequence[Place]]) -> None:
        self._source = source
        self._told = told

    def events(self) -> Iterator[Event]:
        return self._source.events()

    def event(self, place: Place) -> Event:
        return self._filled(place, self._source.event)

    def outline(self, place: Place) -> Event:
        return self._filled(place, self._source.outline)

    def facts(self, place: Place, keys: Collection[str]) -> Facts:
        facts = self._source.facts(place, keys)
        wanted = [key for key in keys if facts.get(key) is None]
        if wanted and place in self._told:
            joined = _joined(self._source.facts(at, keys) for at in self._told[place])
            facts.update({key: joined[key] for key in wanted if key in joined})
        return facts

    def holds(self, place: Place, key: str) -> bool:
        return self._source.holds(place, key)

    def payload(self, place: Place, keys: Collection[str]) -> Facts:
        return self._source.payload(place, keys)

    def is_live(self, stream: str) -> bool:
        return self._source.is_live(stream)

    def _filled(self, place: Place, read: Callable[[Place], Event]) -> Event:
        event = read(place)
        if place not in self._told:
            return event
        logs = [read(at) for at in self._told[place]]
        record, own = record_of(event), facts_of(event)
        joined = _joined(facts_of(log) for log in logs)
        facts = {**own, **{key: value for key, value in joined.items() if own.get(key) is None}}
        filled = {**record, "facts": facts}
        if record.get("header") is None:
            headers = [log.payload.get("header") for log in logs if log.stream == event.stream]
            filled["header"] = next((seq for seq in headers if isinstance(seq, int)), None)
        payload = {**event.payload, "record": filled} if event.type == "NODE_INTERRUPTED" else filled
        return dataclasses.replace(event, payload=payload)
