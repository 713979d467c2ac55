"""Canonical bytes: how much faster than the pure-Python RFC 8785 library, on an event as it is sealed."""

from __future__ import annotations

from collections.abc import Iterator

import rfc8785

from benchmarks.measure import cpu_seconds
from benchmarks.samples import Json, event
from otel_agentrec.journal.canonical import canonical

ROWS = ("canonical 1 KB", "canonical 6 KB")


def rows(quick: bool) -> Iterator[tuple[str, float]]:
    rounds = 5 if quick else 15
    yield ROWS[0], times_as_fast(event(1_000), rounds)
    yield ROWS[1], times_as_fast(event(6_000), rounds)


def times_as_fast(value: Json, rounds: int) -> float:
    assert canonical(value) == rfc8785.dumps(value)
    took = cpu_seconds({"ours": lambda: canonical(value), "theirs": lambda: rfc8785.dumps(value)}, rounds=rounds)
    return took["theirs"] / took["ours"]
