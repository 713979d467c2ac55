"""The two clocks of an event."""

from __future__ import annotations

import time

__all__ = ["boot_id", "now"]


def now() -> tuple[int, int]:
    """(milliseconds since the epoch, nanoseconds of the monotonic clock)."""
    return time.time_ns() // 1_000_000, time.monotonic_ns()


def boot_id() -> str | None:
    """An id of the machine's current boot: monotonic times compare only within one (Linux; elsewhere None)."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return f.read().strip() or None
    except OSError:
        return None
