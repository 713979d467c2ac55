"""File locks between processes. Advisory ``flock``: gone with the process, inherited but not lost by a fork.

``fcntl`` exists on Unix only; without it every lock counts as had (one process per recording then).
"""

from __future__ import annotations

import time

__all__ = ["try_lock"]


def try_lock(fd: int, wait: float = 0.0) -> bool:
    """Take the exclusive lock of an open file, trying for ``wait`` seconds. False: somebody else holds it.

    The lock goes when the last descriptor of this open file is closed. A file system without locks counts as had:
    recording goes on, and nobody can tell that the stream is alive.
    """
    try:
        import fcntl
    except ImportError:
        return True
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.002)
        except OSError:
            return True
