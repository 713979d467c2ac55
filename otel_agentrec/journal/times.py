"""The two clocks of an event."""

from __future__ import annotations

import time

__all__ = ["boot_id", "not_before", "now"]

_floor = 0


def now() -> tuple[int, int]:
    """(milliseconds since the epoch, nanoseconds of the monotonic clock)."""
    return max(time.time_ns() // 1_000_000, _floor), time.monotonic_ns()


def not_before(ms: int) -> None:
    """What this process records from now on is told to have happened at ``ms`` (since the epoch) or later.

    For what goes on where another process stopped: events of several streams are ordered by their times, and its clock may have
    been set back since.
    """
    global _floor
    _floor = max(_floor, ms)


def boot_id() -> str | None:
    """An id of the machine's current boot: monotonic times compare only within one (Linux; elsewhere None)."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return f.read().strip() or None
    except OSError:
        return None
