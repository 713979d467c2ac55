"""Facts that reach the recorder beside the span: content of hand-written agents, by span id.

``agent_run`` knows prompts, answers and results whether or not OTel's content switch lets them onto the span. It hands them
over here; the recorder takes them when the span ends. Bounded: facts of spans that nobody records are thrown away, oldest
first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.journal.facts import Facts

__all__ = ["apply", "forget", "hand_over"]

MAX_SPANS = 4_096

_facts: dict[tuple[int, int], dict[str, Any]] = {}


def hand_over(key: tuple[int, int], facts: Mapping[str, Any]) -> None:
    """Add facts (names of :class:`Facts` fields) of an open span; said again, the later value counts."""
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
            setattr(facts, name, value)
