"""Answers that come as a span of their own: a point in time after the call, made by the same instrumentation.

Where the span of a streamed call ends when its stream begins, some instrumentations tell what came out of it in a second span
that lasts no time at all (Logfire's logs are such spans). Alone they stand beside the call, or in a trace of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.skeleton import ENDED, FAILED, PUT_OUT, SAID, Span
from otel_agentrec.nodes.source import Source

__all__ = ["answers_told_apart", "is_point"]

Json = Any


def answers_told_apart(spans: Iterable[Span], source: Source) -> Iterator[tuple[Span, Span]]:
    """(call, span that only tells its answer): both of one scope below one span, with the same model and the same messages.

    Where several calls fit, the earliest that has no answer yet.
    """
    models = [s for s in spans if s.kind == Kind.MODEL and s.state == ENDED and not s.marks & FAILED]
    points = [s for s in models if is_point(s) and s.marks & PUT_OUT]
    if not points:
        return
    calls: dict[tuple[Json, ...], list[Span]] = defaultdict(list)
    for s in models:
        if s.marks & SAID and not s.marks & PUT_OUT and not s.ident and s.tokens_out is None and not is_point(s):
            calls[_beside(s)].append(s)
    for point in sorted(points, key=_ended):
        waiting = calls.get(_beside(point), [])
        before = [s for s in waiting if _ended(s) <= _ended(point) and s.name == point.name]
        asked = _messages(source, point) if before else None
        call = next((s for s in sorted(before, key=_ended) if asked and _messages(source, s) == asked), None)
        if call is not None:
            waiting.remove(call)
            yield call, point


def is_point(s: Span) -> bool:
    """Does a span last no time?"""
    return s.start is not None and s.start == s.end


def _beside(s: Span) -> tuple[Json, ...]:
    """Equal for spans of one scope of one process that stand below the same span, or below none."""
    return s.stream, s.provider, s.scope, (s.trace, s.parent) if s.parent else None


def _ended(s: Span) -> tuple[int, tuple[str, int]]:
    return s.end or 0, s.place


def _messages(source: Source, s: Span) -> Json:
    return source.facts(s.place, ("messages",)).get("messages")
