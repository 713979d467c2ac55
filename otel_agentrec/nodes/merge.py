"""One call, one record: find the spans that several instrumentations made of the same call.

Spans are the same call when one of these holds: equal response id (of a tool: call id) and different scopes; one nested
in the other; one only tells the answer of the other (see :mod:`.afterwards`); different scopes, one interval inside the other, and nothing that both tell differs, with no doubt which is
meant. Equal response ids from spans of one scope that are not nested are two calls: some servers repeat ids.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.afterwards import answers_told_apart
from otel_agentrec.nodes.partners import partners
from otel_agentrec.nodes.skeleton import CONFLICT, ENDED, FAILED, MERGED, OPEN, OUTERMOST, PATH_TOLD, SAID, Span
from otel_agentrec.nodes.source import Source
from otel_agentrec.nodes.table import Table
from otel_agentrec.nodes.text import said_by_model, said_to_tool

__all__ = ["merge_calls"]

Json = Any
Say = Callable[[Span], Json]


def merge_calls(table: Table, source: Source) -> None:
    """Group the spans of each call: the leading span gets ``group``, the others are marked MERGED."""
    groups = _Groups()
    nodes = [s for s in table if s.is_node and not s.marks & CONFLICT and s.state != OPEN]
    for s in nodes:
        outer = _outer(s)
        if outer is not None:
            groups.join(s, outer)
    for call, answer in answers_told_apart(nodes, source):
        groups.join(call, answer)
    said: dict[Span, Json] = {}

    def say(s: Span) -> Json:
        if s not in said:
            said[s] = (said_by_model if s.kind == Kind.MODEL else said_to_tool)(source, s)
        return said[s]

    scopes = {kind: {s.scope for s in nodes if s.kind == kind} for kind in (Kind.MODEL, Kind.TOOL)}
    for kind in (Kind.MODEL, Kind.TOOL):
        if len(scopes[kind]) > 1:
            spans = sorted((s for s in nodes if s.kind == kind), key=_by_start)
            _by_ident(spans, groups)
            _by_interval(spans, groups, say)
    for members in groups.all():
        _lead(members)


class _Groups:
    """Disjoint sets of spans."""

    def __init__(self) -> None:
        self._members: dict[Span, list[Span]] = {}

    def of(self, s: Span) -> list[Span]:
        return self._members.get(s) or [s]

    def join(self, a: Span, b: Span) -> None:
        one, other = self.of(a), self.of(b)
        if one is other or a == b:
            return
        joined = [*one, *other]
        for s in joined:
            self._members[s] = joined

    def all(self) -> Iterable[list[Span]]:
        return {id(m): m for m in self._members.values()}.values()


def _by_start(s: Span) -> tuple[int, int, tuple[str, int]]:
    """Outer spans before inner ones."""
    start = s.start if s.start is not None else 0
    return start, -(s.end if s.end is not None else start), s.place


def _outer(s: Span) -> Span | None:
    """The span around ``s`` that tells of the same call: no agent and no other kind of node stands between."""
    for above in s.lineage():
        if above.kind == s.kind:
            if above.state == OPEN or above.marks & CONFLICT:
                return None
            if s.kind == Kind.TOOL and not _same_tool(s, above):
                return None
            return None if _is_later(s, above) else above
        if above.is_node or above.kind == Kind.AGENT:
            return None
    return None


def _is_later(s: Span, above: Span) -> bool:
    """Did a span begin after the one above it had ended? Some instrumentations leave a span current by mistake; what then
    comes below it from the same instrumentation is another call."""
    return s.scope == above.scope and s.start is not None and above.end is not None and s.start >= above.end


def _same_tool(a: Span, b: Span) -> bool:
    """Does nothing speak against two nested tool spans being one call? A tool may well call another tool."""
    if a.ident and b.ident:
        return a.ident == b.ident
    two_told = a.scope != b.scope or _is_served(a, b)
    if a.name and b.name:
        return same_name(a.name, b.name) and two_told
    return two_told


def _is_served(s: Span, above: Span) -> bool:
    """Does a span tell of the other side of the call above it: in another process, which was told of its caller (a server of
    tools whose client hands its context on)? What is below it there stands in that process too."""
    return s.stream != above.stream and s.parent == above.span and not s.marks & PATH_TOLD


def same_name(a: str, b: str) -> bool:
    """Tool names are equal, or one has a server's name in front (``server__tool``, ``server-tool``, ``server.tool``)."""
    if a == b:
        return True
    short, long = sorted((a, b), key=len)
    return bool(short) and long.endswith(short) and long[-len(short) - 1] in "-_./:"


def _by_ident(spans: list[Span], groups: _Groups) -> None:
    """Equal response or call id, different scopes."""
    alike: dict[int, dict[str | None, list[Span]]] = defaultdict(lambda: defaultdict(list))
    for s in spans:
        if s.ident:
            alike[s.ident][s.scope].append(s)
    for by_scope in alike.values():
        if len(by_scope) < 2:
            continue
        (_, first), *others = sorted(by_scope.items(), key=lambda item: (-len(item[1]), item[0] or ""))
        for _, spans_of_scope in others:
            if len(first) == len(spans_of_scope) == 1:
                if _may_share(first[0], spans_of_scope[0]):
                    groups.join(first[0], spans_of_scope[0])
                continue
            free = list(first)
            for s in spans_of_scope:  # an id that a server repeats: the call at the same time
                fits = [o for o in free if _overlap(s, o) and _may_share(s, o)]
                best = max(fits, key=lambda o: (o in groups.of(s), _overlap(s, o)), default=None)
                if best is not None:
                    groups.join(s, best)
                    free.remove(best)


def _may_share(a: Span, b: Span) -> bool:
    """Tool call ids are only unique within a run, so the tools must agree in name and session as well."""
    if a.kind == Kind.MODEL:
        return True
    if a.name and b.name and not same_name(a.name, b.name):
        return False
    return a.trace == b.trace or bool(_overlap(a, b))


def _overlap(a: Span, b: Span) -> int:
    """Nanoseconds that two spans share, at least 1 when they touch."""
    if a.start is None or b.start is None or a.end is None or b.end is None:
        return 0
    shared = min(a.end, b.end) - max(a.start, b.start)
    return max(1, shared) if shared >= 0 else 0


def _by_interval(spans: list[Span], groups: _Groups, say: Say) -> None:
    """Different scopes, one interval inside the other, nothing that both tell differs, and no doubt who belongs to whom."""
    timed = [s for s in spans if s.start is not None and s.end is not None and s.state == ENDED]
    starts = [s.start or 0 for s in timed]
    longest = max((s.end - s.start for s in timed if s.end and s.start), default=0)
    fits: list[tuple[Span, Span]] = []
    for i, inner in enumerate(timed):
        assert inner.start is not None and inner.end is not None
        low = bisect.bisect_left(starts, inner.start - longest)
        for outer in timed[low:i]:  # sorted: a span around this one stands before it
            if outer.end is None or outer.end < inner.end or outer.scope == inner.scope:
                continue
            if (
                not _are_settled(outer, inner, groups)
                and _compatible(outer, inner)
                and _same_content(outer, inner, say)
            ):
                fits.append((outer, inner))
    for outer, inner in list(partners(fits)):
        groups.join(outer, inner)


def _are_settled(a: Span, b: Span, groups: _Groups) -> bool:
    """Does another span of the one's scope tell of the other's call already?"""
    return any(s.scope == a.scope for s in groups.of(b)) or any(s.scope == b.scope for s in groups.of(a))


def _compatible(a: Span, b: Span) -> bool:
    """Could these be one call, by what the events tell?"""
    if a.ident and b.ident and a.ident != b.ident:
        return False
    if a.session and b.session and a.session != b.session:
        return False
    if a.trace == b.trace and a.up != b.up and (a in b.lineage() or b in a.lineage()):
        return False  # nested, yet not as the same call
    if a.kind == Kind.TOOL:
        return not (a.name and b.name) or same_name(a.name, b.name)
    if a.name and b.name and not _same_model(a.name, b.name):
        return False
    if a.calls_count > 0 and b.calls_count > 0 and a.calls_count != b.calls_count:
        return False
    return not (a.tokens_out and b.tokens_out and abs(a.tokens_out - b.tokens_out) > 1)


def _same_model(a: str, b: str) -> bool:
    """One may name the dated model, or put the provider in front."""
    a, b = a.rsplit("/", 1)[-1], b.rsplit("/", 1)[-1]
    return a.startswith(b) or b.startswith(a)


def _same_content(a: Span, b: Span, say: Say) -> bool:
    """What was said does not differ, and something speaks for one call: beside the clock, or one process that made both."""
    mine, other = say(a), say(b)
    both = [key for key in mine if mine[key] is not None and other.get(key) is not None]
    if any(mine[key] != other[key] for key in both):
        return False
    siblings = a.trace == b.trace and a.up == b.up
    one_process = a.provider is not None and (a.stream, a.provider) == (b.stream, b.provider)
    failed = bool(a.marks & b.marks & FAILED)
    return bool(both) or siblings or one_process or failed or _same_usage(a, b) or bool(a.ident and a.ident == b.ident)


def _same_usage(a: Span, b: Span) -> bool:
    """Equal output tokens, and input tokens that don't differ where both tell of any."""
    if not a.tokens_out or a.tokens_out != b.tokens_out:
        return False
    return not (a.tokens_in and b.tokens_in) or a.tokens_in == b.tokens_in


def _lead(members: list[Span]) -> None:
    """The outermost span with content leads; the others follow, outermost first."""
    order = _outermost_first(members)
    leader = next((s for s in order if s.marks & SAID), order[0])
    order[0].marks |= OUTERMOST
    leader.group = [s for s in order if s != leader]
    for s in leader.group:
        s.marks |= MERGED


def _outermost_first(members: list[Span]) -> list[Span]:
    """Ancestors before descendants, then the wider interval."""
    depth = {s: sum(1 for above in s.lineage() if above in members) for s in members}
    return sorted(members, key=lambda s: (depth[s], *_by_start(s)))
