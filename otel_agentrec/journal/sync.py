"""Group commit: many threads wait for one ``fsync``.

Content is synced before the events that name it, and the directory once for each new file, so that no crash of the machine
leaves an event whose cells are gone. On an event-loop thread nobody waits: a thread of ours syncs within ``LINGER``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable

__all__ = ["LINGER", "GroupCommit", "on_event_loop", "sync_directory"]

LINGER = 0.02
"""Seconds within which a deferred sync is done."""


class GroupCommit:
    """Syncs one stream. ``state`` gives (events written so far, descriptors in sync order); called without any lock.

    Args:
        failed: told of an OSError of a sync; it must not raise.
    """

    def __init__(self, state: Callable[[], tuple[int, list[int]]], failed: Callable[[OSError], None]) -> None:
        self._state = state
        self._failed = failed
        self._syncing = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.synced = 0
        """Events that are safe on disk."""
        self.syncs = 0

    def wait(self, size: int) -> None:
        """Return when the first ``size`` events are on disk, whoever synced them; on an event loop, at once."""
        if size <= self.synced:
            return
        if on_event_loop():
            self.soon()
            return
        with self._syncing:
            if size > self.synced:
                self._sync()

    def soon(self) -> None:
        """Have our thread sync within LINGER."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="agentrec-sync", daemon=True)
            self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """Sync what is left."""
        self._closed = True
        self._wake.set()
        with self._syncing:
            self._sync()

    def _sync(self) -> None:
        size, descriptors = self._state()
        try:
            for fd in descriptors:
                os.fsync(fd)
        except OSError as e:
            self._failed(e)
            return
        self.synced = max(self.synced, size)
        self.syncs += 1

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait()
            threading.Event().wait(LINGER / 2)  # let others join
            self._wake.clear()
            with self._syncing:
                if not self._closed:
                    self._sync()


def on_event_loop() -> bool:
    """Whether this thread runs an asyncio event loop right now, which a blocking call would hold up."""
    return asyncio._get_running_loop() is not None


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Make new file names durable. Best effort: some systems can't sync a directory."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
