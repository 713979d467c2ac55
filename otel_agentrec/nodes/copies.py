"""The same call exported twice: under its own ids (copies, conflicts), or under new ones (probable re-exports)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from otel_agentrec.journal.events import Event
from otel_agentrec.nodes.skeleton import CONFLICT, ENDED, MERGED, REEXPORT, Span
from otel_agentrec.nodes.sound import facts_of
from otel_agentrec.nodes.source import Place, Source
from otel_agentrec.nodes.table import Table

__all__ = ["mark_reexports", "split_conflicts"]

Json = Any
_PLACED = ("header", "provider", "via")
"""Payload keys that depend on the place in the stream, not on the span."""


def split_conflicts(table: Table, source: Source) -> None:
    """Compare the copies of each span: equal ones stay copies, others become spans of their own, both flagged."""
    for row, extra in list(table.rows.extras.items()):
        s = Span(table.rows, row)
        if extra.copies and s.is_node:
            _compare(table, source, s)


def _compare(table: Table, source: Source, s: Span) -> None:
    more = s.more()
    groups: dict[str, list[Place]] = {_content(source.event(s.place)): [s.place]}
    for place in sorted(more.copies):
        groups.setdefault(_content(source.event(place)), []).append(place)
    (_, *more.copies), *others = groups.values()
    for places in others:
        s.marks |= CONFLICT
        other = table.add_apart(source.event(places[0]), s)
        other.marks |= CONFLICT
        other.more().copies = places[1:]


def _content(e: Event) -> str:
    """What an export says, in a form that can be compared; the order of keys does not count."""
    payload = {k: v for k, v in e.payload.items() if k not in _PLACED}
    said = [payload, e.session, e.run, e.turn, e.step, (e.trace or {}).get("parentSpanId")]
    return json.dumps(said, sort_keys=True, ensure_ascii=True, default=repr)


def mark_reexports(table: Table, source: Source, session_of: Callable[[Span], str | None]) -> dict[Span, Span]:
    """Mark spans with new ids that repeat a call: same session, call id (of a model: response id), start and content.

    Returns:
        marked span -> the span that it repeats, which is the one that was journalled first.
    """

    def key(s: Span) -> tuple[object, ...] | None:
        if not s.is_node or s.state != ENDED or not s.ident or s.start is None or s.marks & (MERGED | CONFLICT):
            return None
        session = session_of(s)
        return None if session is None else (s.kind, session, s.ident, s.scope, s.start, s.end)

    seen = sorted(hash(k) for s in table if (k := key(s)) is not None)
    twice = {one for one, other in pairwise(seen) if one == other}
    alike: dict[tuple[object, ...], list[Span]] = defaultdict(list)
    for s in table if twice else ():
        k = key(s)
        if k is not None and hash(k) in twice:
            alike[k].append(s)
    repeats: dict[Span, Span] = {}
    for spans in alike.values():
        if len(spans) < 2:
            continue
        first: dict[str, Span] = {}
        for s in sorted(spans, key=lambda s: s.place):
            facts = facts_of(source.event(s.place))
            same = first.setdefault(json.dumps([s.kind, facts], sort_keys=True, default=repr), s)
            if same != s:
                s.marks |= REEXPORT
                repeats[s] = same
    return repeats
