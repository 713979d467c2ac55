"""Cause order: what came before what, without trusting clocks more than needed.

A tool call comes after the model call that asked for it, a span after the span around it, the last answer of a loop that
is told as one model call after the tools in it. Beyond that: within a live
stream the order in which spans started, elsewhere the start time, then arrival. The same spans always give the same order.
"""

from __future__ import annotations

import heapq
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from otel_agentrec.nodes.skeleton import Span

__all__ = ["cause_order"]

Key = tuple[int, str, int]


def cause_order(nodes: Iterable[Span], loops: Mapping[Span, Span], leader: Mapping[Span, Span]) -> list[Span]:
    """Sort the leading spans of calls.

    Args:
        nodes: leading spans.
        loops: tool call -> the model call that it ran in, where that answered after the tool had ended.
        leader: merged span -> the span that leads its call.
    """
    spans = list(nodes)
    late = _times_that_ran_backwards(spans)

    def key(s: Span) -> Key:
        time = late.get(s.row, s.since)
        return time, s.stream, s.started_seq if s.started_seq >= 0 else s.seq

    spans.sort(key=key)
    rank = array("i", [-1]) * (max((s.row for s in spans), default=0) + 1)
    for i, s in enumerate(spans):
        rank[s.row] = i

    def edges() -> Iterator[tuple[int, int]]:
        for cause, effect in _edges(spans, loops, leader):
            pair = rank[cause.row], rank[effect.row]
            if min(pair) >= 0:
                yield pair

    if all(cause < effect for cause, effect in edges()):  # mostly
        return spans
    return [spans[i] for i in _sorted(len(spans), list(edges()))]


def _edges(spans: list[Span], loops: Mapping[Span, Span], leader: Mapping[Span, Span]) -> Iterator[tuple[Span, Span]]:
    """(cause, effect)"""
    for s in spans:
        if s in loops:
            yield s, loops[s]
            continue
        above = next((leader.get(a, a) for a in s.lineage() if a.is_node), None)
        for cause in (s.asked, above):
            if cause is not None and cause != s:
                yield cause, s


def _sorted(size: int, edges: list[tuple[int, int]]) -> list[int]:
    """The numbers below ``size`` in their order, as far as each cause stands before its effects. Circles are broken."""
    after: dict[int, list[int]] = defaultdict(list)
    waits = [0] * size
    for cause, effect in edges:
        after[cause].append(effect)
        waits[effect] += 1
    ready = [i for i in range(size) if not waits[i]]
    order: list[int] = []
    done = bytearray(size)
    first = 0
    while len(order) < size:
        if not ready:  # causes in a circle: the earliest of them goes first
            while done[first]:
                first += 1
            ready.append(first)
        i = heapq.heappop(ready)
        if done[i]:
            continue
        done[i] = 1
        order.append(i)
        for later in after[i]:
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(ready, later)
    return order


def _times_that_ran_backwards(spans: list[Span]) -> dict[int, int]:
    """Row -> time to sort by, of spans that started before a span that stands earlier in their live stream.

    The clock may be set back; the order in which spans started may not.
    """
    live: dict[str, list[Span]] = defaultdict(list)
    for s in spans:
        if s.started_seq >= 0:
            live[s.stream].append(s)
    late: dict[int, int] = {}
    for started in live.values():
        started.sort(key=lambda s: s.started_seq)
        latest = 0
        for s in started:
            if (s.since) < latest:
                late[s.row] = latest
            else:
                latest = s.since
    return late
