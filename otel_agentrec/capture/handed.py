"""Facts that reach the recorder beside the span: content of hand-written agents, by span id.

``agent_run`` knows prompts, answers and results whether or not OTel's content switch lets them onto the span. It hands them
over here; the recorder takes them when the span ends. Bounded: facts of spans that nobody records are thrown away, oldest
first.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from otel_agentrec.journal.facts import Facts

__all__ = ["apply", "at_start", "forget", "hand_over", "left_by", "starting", "taken_by"]

MAX_SPANS = 1_024

_facts: dict[tuple[int, int], dict[str, Any]] = {}


_takers: weakref.WeakSet[Any] = weakref.WeakSet()


def taken_by(recorder: object) -> None:
    """From now on somebody takes what is handed over. While nobody does, nothing is kept."""
    _takers.add(recorder)


def left_by(recorder: object) -> None:
    _takers.discard(recorder)
    if not _takers:
        _facts.clear()


def hand_over(key: tuple[int, int], facts: Mapping[str, Any]) -> None:
    """Add facts (names of :class:`Facts` fields) of an open span; said again, the later value counts.

    A value may be a function without arguments: it is asked when the facts are taken.
    """
    if not _takers:
        return
    known = _facts.setdefault(key, {})
    known.update(facts)
    while len(_facts) > MAX_SPANS:
        try:
            del _facts[next(iter(_facts))]
        except (KeyError, StopIteration, RuntimeError):  # another thread took it
            continue


def forget(key: tuple[int, int]) -> None:
    """Forget the facts of a span."""
    _facts.pop(key, None)


def apply(key: tuple[int, int], facts: Facts) -> None:
    """Put what was handed over into ``facts``; it beats what the span says."""
    known = _facts.get(key)
    if known:
        for name, value in list(known.items()):
            setattr(facts, name, value() if isinstance(value, Callable) else value)  # type: ignore[arg-type]


_starting: ContextVar[Mapping[str, Any] | None] = ContextVar("otel_agentrec_starting", default=None)


@contextmanager
def starting(facts: Mapping[str, Any]) -> Iterator[None]:
    """The span that is started in this block has these facts: its start is journalled with them."""
    token = _starting.set(facts)
    try:
        yield
    finally:
        _starting.reset(token)


def at_start(key: tuple[int, int]) -> None:
    """Called when a span starts: take what :func:`starting` announced."""
    facts = _starting.get()
    if facts:
        hand_over(key, facts)
