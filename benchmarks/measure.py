"""CPU time of several ways to do one thing, taken in turns."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping


def cpu_seconds(ways: Mapping[str, Callable[[], object]], *, rounds: int, at_least: float = 0.02) -> dict[str, float]:
    """Median CPU seconds of one call of each way, the ways interleaved.

    A call that is too short to time is repeated until a round takes ``at_least`` seconds of CPU. The first round of each
    way only warms up.
    """
    repeats = {name: _repeats(way, at_least) for name, way in ways.items()}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, way in ways.items():
                count = repeats[name]
                start = time.process_time()
                for _ in range(count):
                    way()
                taken[name].append((time.process_time() - start) / count)
    finally:
        gc.enable()
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def _repeats(way: Callable[[], object], at_least: float) -> int:
    count = 1
    while True:
        start = time.process_time()
        for _ in range(count):
            way()
        spent = time.process_time() - start
        if spent >= at_least or count >= 1_000_000:
            return count
        count = max(count * 2, int(count * at_least / spent * 1.2) if spent > 0.0005 else count * 10)
