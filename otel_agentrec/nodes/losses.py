"""What a recording says of its own gaps: things that were dropped, and what its processes counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

from otel_agentrec.journal.events import Event

__all__ = ["Losses"]

Json = Any
MOST_REASONS = 1_000
REST = "(other)"


class Losses:
    """Sums over DROPPED and STREAM_SEALED events, in bounded memory. They count for the recording, not for a run."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        """reason -> things that should have been recorded and were not"""
        self.counters: Counter[str] = Counter()
        """what processes counted besides, as they told it when they closed their streams (``swallowed``, ``late`` …)"""

    def add(self, e: Event) -> None:
        if e.type == "DROPPED":
            _count(self.dropped, e.payload.get("reason"), e.payload.get("count"))
        elif e.type == "STREAM_SEALED" and isinstance(told := e.payload.get("counters"), dict):
            for name, count in told.items():
                _count(self.counters, name, count)


def _count(into: Counter[str], name: Json, count: Json) -> None:
    if type(count) is int and count > 0:
        key = str(name)[:200]
        into[key if key in into or len(into) < MOST_REASONS else REST] += count
