"""Which spans of two scopes are one call, where only their intervals speak for it and several would fit.

Each edge is a pair (outer span, inner span) that may be one call. Calls that run side by side make many such pairs; who
belongs to whom then shows in what leaves every span one partner, or in who begins and ends closest.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator

from otel_agentrec.nodes.skeleton import Span

__all__ = ["partners"]

Pair = tuple[Span, Span]
Graph = dict[Span, dict[Span, None]]
"""span -> the spans that may be the same call, in a fixed order"""


def partners(edges: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs that are one call; those that leave doubt are left out.

    Args:
        edges: pairs of spans of different scopes.
    """
    by_scopes: dict[frozenset[str | None], list[Pair]] = defaultdict(list)
    for outer, inner in edges:
        by_scopes[frozenset((outer.scope, inner.scope))].append((outer, inner))
    for pairs in by_scopes.values():
        for part in _components(_without_siblings_of_others(_the_usual_way(pairs))):
            yield from _perfect(part) or _closest_pairs(part)


def _the_usual_way(pairs: list[Pair]) -> list[Pair]:
    """Of two instrumentations one is mostly the outer one. The other way round counts only for spans without such a pair."""
    ways = Counter(outer.scope for outer, _ in pairs)
    most = max(ways.values())
    usual = [pair for pair in pairs if ways[pair[0].scope] == most]
    known = {s for pair in usual for s in pair}
    return [*usual, *(pair for pair in pairs if known.isdisjoint(pair))]


def _without_siblings_of_others(pairs: list[Pair]) -> list[Pair]:
    """A span that may be one with another one below the same span is none with any other."""
    settled = {s for pair in pairs if _are_siblings(*pair) for s in pair}
    return [pair for pair in pairs if _are_siblings(*pair) or settled.isdisjoint(pair)]


def _are_siblings(a: Span, b: Span) -> bool:
    return a.up is not None and a.up == b.up


def _components(pairs: Iterable[Pair]) -> Iterator[Graph]:
    """The parts of the graph that are not connected with one another."""
    graph: Graph = defaultdict(dict)
    for a, b in pairs:
        graph[a][b] = graph[b][a] = None
    left = dict.fromkeys(graph)
    while left:
        first = next(iter(left))
        part: Graph = {}
        waiting = [first]
        while waiting:
            s = waiting.pop()
            if s not in part:
                part[s] = graph[s]
                waiting.extend(graph[s])
                left.pop(s, None)
        yield part


def _perfect(part: Graph) -> list[Pair]:
    """The only way to give every span one partner; empty when there is none, or more than one.

    Where it is the only one, there is always a span that has only one candidate left.
    """
    left = {s: dict(candidates) for s, candidates in part.items()}
    ready = deque(s for s, candidates in left.items() if len(candidates) == 1)
    found: list[Pair] = []
    while ready:
        s = ready.popleft()
        if s not in left:
            continue
        (other,) = left.pop(s)
        found.append((s, other))
        for third in left.pop(other):
            if third != s:
                del left[third][other]
                if not left[third]:
                    return []
                if len(left[third]) == 1:
                    ready.append(third)
    return [] if left else found


def _closest_pairs(part: Graph) -> Iterator[Pair]:
    """Pairs of which each begins and ends closest to the other."""
    for s, candidates in part.items():
        other = _closest(s, list(candidates))
        if other is not None and _closest(other, list(part[other])) == s:
            yield s, other


def _closest(s: Span, candidates: list[Span]) -> Span | None:
    """The candidate that begins and ends closest to ``s``; None when there is doubt."""
    if len(candidates) == 1:
        return candidates[0]
    first, second = sorted(candidates, key=lambda c: abs((c.start or 0) - (s.start or 0)))[:2]
    last, before = sorted(candidates, key=lambda c: abs((c.end or 0) - (s.end or 0)))[:2]
    alike = first.start == second.start or last.end == before.end
    return None if alike or first != last else first
