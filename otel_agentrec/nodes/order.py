"""Cause order: what came before what, without trusting clocks more than needed.

A tool call comes after the model call that asked for it, a span after the span around it, the last answer of a loop that
is told as one model call after the tools in it. Beyond that: within a live
stream the order in which spans started, elsewhere the start time, then arrival. The same spans always give the same order.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping

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
    keys = _keys(spans)
    after: dict[Span, list[Span]] = defaultdict(list)
    waits: dict[Span, int] = dict.fromkeys(spans, 0)
    for s in spans:
        edges = [(s, loops[s])] if s in loops else [(cause, s) for cause in _causes(s, leader)]
        for cause, effect in edges:
            if cause in waits and effect in waits and cause is not effect:
                after[cause].append(effect)
                waits[effect] += 1
    ready = [(keys[s], i, s) for i, s in enumerate(spans) if not waits[s]]
    heapq.heapify(ready)
    left = None
    order: list[Span] = []
    done: set[Span] = set()
    while len(order) < len(spans):
        if not ready:  # causes in a circle: the earliest of them goes first
            if left is None:
                left = iter(sorted(spans, key=keys.__getitem__))
            ready.append((keys[s := next(s for s in left if s not in done)], 0, s))
        _, i, s = heapq.heappop(ready)
        if s in done:
            continue
        done.add(s)
        order.append(s)
        for later in after[s]:
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(ready, (keys[later], i, later))
    return order


def _causes(s: Span, leader: Mapping[Span, Span]) -> list[Span]:
    above = next((leader.get(a, a) for a in s.lineage() if a.is_node), None)
    return [cause for cause in (s.asked, above) if cause is not None]


def _keys(spans: list[Span]) -> dict[Span, Key]:
    """(time, stream, seq) of each span. In a live stream times never run backwards: the clock may, the order may not."""
    keys: dict[Span, Key] = {}
    live: dict[str, list[Span]] = defaultdict(list)
    for s in spans:
        if s.started_seq >= 0:
            live[s.stream].append(s)
        else:
            keys[s] = (s.start or 0, s.stream, s.seq)
    for stream, started in live.items():
        started.sort(key=lambda s: s.started_seq)
        latest = 0
        for s in started:
            latest = max(latest, s.start or 0)
            keys[s] = (latest, stream, s.started_seq)
    return keys
