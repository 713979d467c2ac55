"""Is the process that writes a stream still alive? It holds ``flock`` on the stream's file for the stream's whole life.

``/proc/locks`` is looked at first, because looking does not disturb anybody. It shows nothing for file systems whose
device number differs from what ``stat`` says (overlay, btrfs) or for locks of another pid namespace; then a shared lock is
tried for an instant, which a writer that opens just then survives (it tries again for 50 ms).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["is_locked"]

_FLOCK = re.compile(rb"^\d+: FLOCK +ADVISORY +WRITE +\S+ +([0-9a-f]+):([0-9a-f]+):(\d+) ", re.MULTILINE)


def is_locked(path: str | os.PathLike[str], *, probe: bool = True) -> bool:
    """Whether another open file holds the exclusive lock of ``path``. Never raises; where nobody can tell: False.

    Args:
        probe: also try a shared lock for an instant when ``/proc/locks`` shows none.
    """
    try:
        stat = Path(path).stat()
    except (OSError, ValueError):
        return False
    listed = _listed()
    if listed and (os.major(stat.st_dev), os.minor(stat.st_dev), stat.st_ino) in listed:
        return True
    return probe and _probe(path)


def _listed() -> set[tuple[int, int, int]]:
    """(major, minor, inode) of every exclusive ``flock`` that this process may see (proc_locks(5))."""
    try:
        with open("/proc/locks", "rb") as f:
            text = f.read()
    except OSError:
        return set()
    return {(int(m[1], 16), int(m[2], 16), int(m[3])) for m in _FLOCK.finditer(text)}


def _probe(path: str | os.PathLike[str]) -> bool:
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(fd)
    return False
