"""Durations: exact while there are few, within one per cent beyond, and never dependent on order."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_agentrec.nodes.durations import ERROR, EXACT, Durations

SHARES = (0.0, 0.01, 0.5, 0.95, 0.999, 1.0)


def of(values: list[int]) -> Durations:
    found = Durations()
    for value in values:
        found.add(value)
    return found


def right(values: list[int], share: float) -> int:
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50), st.sampled_from(SHARES))
def test_few_are_exact(values: list[int], share: float) -> None:
    found = of(values)
    assert found.exact
    assert found.quantile(share) == right(values, share)
    assert (found.count, found.max, found.mean) == (len(values), max(values), sum(values) / len(values))


@pytest.mark.parametrize(
    "draw",
    [lambda r: int(r.lognormvariate(7, 2)), lambda r: r.randint(0, 3), lambda r: r.choice((0, 1, 10**15))],
    ids=["spread", "tiny", "far apart"],
)
def test_many_are_within_one_per_cent(draw: Callable[[random.Random], int]) -> None:
    source = random.Random(7)
    values = [draw(source) for _ in range(20 * EXACT)]
    found = of(values)
    assert not found.exact
    for share in SHARES:
        got, want = found.quantile(share), right(values, share)
        assert got is not None
        assert abs(got - want) <= ERROR * want + 0.5, share
    assert found.quantile(1.0) == max(values)
    assert found.mean == sum(values) / len(values)


@settings(max_examples=20)
@given(st.integers())
def test_order_does_not_matter(seed: int) -> None:
    source = random.Random(seed)
    values = [source.randrange(5_000) for _ in range(EXACT + 50)]
    shuffled = list(values)
    source.shuffle(shuffled)
    assert of(values).to_json() == of(shuffled).to_json()


def test_memory_is_bounded() -> None:
    found = of([2**n for n in range(63)] * (EXACT // 10))
    found.add(10**30)
    found.add(-5)
    assert found._values is None
    assert len(found._buckets) <= 65
    assert (found.min, found.max) == (0, 2**63 - 1)


def test_nothing_is_told_of_nothing() -> None:
    assert Durations().to_json() == {"count": 0, "mean": None, "p50": None, "p95": None, "max": None, "exact": True}
