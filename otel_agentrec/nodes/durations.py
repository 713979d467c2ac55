"""Statistics of durations in bounded memory: exact for the first thousand, to one per cent beyond."""

from __future__ import annotations

import math
from array import array
from typing import Any

__all__ = ["Durations"]

EXACT = 1_000
"""So many values are kept as they are."""
ERROR = 0.01
"""Largest relative error of a quantile beyond that."""
_GROWTH = (1 + ERROR) / (1 - ERROR)
_LOG = math.log(_GROWTH)


class Durations:
    """Count, mean, extremes and quantiles of durations in whole milliseconds.

    Beyond :data:`EXACT` values they are counted in buckets whose bounds grow by two per cent, at most about 2,200 of them.
    The order in which values come never matters.
    """

    __slots__ = ("_buckets", "_values", "count", "max", "min", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0
        self.min: int | None = None
        self.max: int | None = None
        self._values: array[int] | None = array("q")
        self._buckets: dict[int, int] = {}

    def add(self, ms: int) -> None:
        """Take one duration; a negative one counts as 0, one beyond 292 million years as that."""
        ms = min(max(ms, 0), 2**63 - 1)
        self.count += 1
        self.sum += ms
        self.min = ms if self.min is None else min(self.min, ms)
        self.max = ms if self.max is None else max(self.max, ms)
        if self._values is not None and self.count <= EXACT:
            self._values.append(ms)
            return
        for value in self._values or ():
            self._put(value)
        self._values = None
        self._put(ms)

    def _put(self, ms: int) -> None:
        bucket = 0 if ms == 0 else 1 + max(0, math.ceil(math.log(ms) / _LOG))
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1

    @property
    def exact(self) -> bool:
        """Are quantiles exact?"""
        return self._values is not None

    @property
    def mean(self) -> float | None:
        return self.sum / self.count if self.count else None

    def quantile(self, share: float) -> int | None:
        """The smallest value that at least ``share`` of all values do not exceed (nearest rank); None of nothing."""
        if not self.count or self.min is None or self.max is None:
            return None
        rank = max(1, math.ceil(share * self.count))
        if rank == self.count:
            return self.max
        if self._values is not None:
            return sorted(self._values)[rank - 1]
        passed = 0
        for bucket in sorted(self._buckets):
            passed += self._buckets[bucket]
            if passed >= rank:
                value = 0 if bucket == 0 else round(2 * _GROWTH ** (bucket - 1) / (1 + _GROWTH))
                return min(max(value, self.min), self.max)
        return self.max

    def to_json(self) -> dict[str, Any]:
        """``{count, mean, p50, p95, max, exact}`` in milliseconds; the mean to a tenth."""
        return {
            "count": self.count,
            "mean": None if self.mean is None else round(self.mean, 1),
            "p50": self.quantile(0.5),
            "p95": self.quantile(0.95),
            "max": self.max,
            "exact": self.exact,
        }
