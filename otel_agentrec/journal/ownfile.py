"""A file that this process made and alone appends to, by a descriptor that is not safe from the program.

A program may close every descriptor (daemons do) and open files of its own, which then get our numbers. So each use asks
the kernel first whether the descriptor still is this file; where it is not, the file is opened again by its path.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from otel_agentrec.journal.locks import try_lock

__all__ = ["OwnFile", "identity"]

_FLAGS = os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)


class OwnFile:
    """A new file (0600), open for appending.

    Args:
        locked: hold its lock as long as it is open: tells readers that its writer is alive.

    Raises:
        OSError: it can't be made, or is there already.
    """

    __slots__ = ("_identity", "_locked", "_path", "fd", "has_lock")

    def __init__(self, path: Path, *, locked: bool = False) -> None:
        self._path = path
        self._locked = locked
        self.has_lock = False
        self.fd = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        self._identity = identity(self.fd)
        self._lock()

    def gone(self) -> bool:
        """Whether somebody deleted the file under us. Otherwise ``fd`` is this file, opened again if need be.

        Raises:
            OSError: the program closed the descriptor, and the file can't be opened again.
        """
        links = self._links()
        if links is None:
            self.fd = -1
            try:
                self.fd = os.open(self._path, _FLAGS | getattr(os, "O_NONBLOCK", 0))
            except (FileNotFoundError, NotADirectoryError):
                return True
            links = self._links()
            if links is None:  # another file stands at our path
                os.close(self.fd)
                self.fd = -1
                return True
            self._lock()
        return links == 0

    def is_open(self) -> bool:
        """Whether ``fd`` still is this file."""
        return self._links() is not None

    def close(self) -> None:
        """Close the descriptor, unless it belongs to somebody else by now."""
        fd, ours = self.fd, self._links() is not None
        self.fd = -1
        if ours:
            with contextlib.suppress(OSError):
                os.close(fd)

    def _links(self) -> int | None:
        """How many names the file has; None: the descriptor is not this file."""
        if self.fd < 0:
            return None
        try:
            stat = os.fstat(self.fd)
        except OSError:
            return None
        return stat.st_nlink if (stat.st_dev, stat.st_ino) == self._identity else None

    def _lock(self) -> None:
        if self._locked:
            self.has_lock = try_lock(self.fd, 0.05)


def identity(fd: int) -> tuple[int, int] | None:
    """Which file a descriptor is: (device, inode); None: it is closed."""
    try:
        stat = os.fstat(fd)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
