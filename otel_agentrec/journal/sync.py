"""Group commit: many threads wait for one ``fsync``.

Content is synced before the events that name it, and the directory once for each new file, so that no crash of the machine
leaves an event whose cells are gone. On an event-loop thread nobody waits for what may be lost: a thread of ours syncs within
``LINGER``. What must not be lost (the intent to run an effect) is waited for everywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

__all__ = ["LINGER", "GroupCommit", "NotSynced", "on_event_loop", "sync_directory"]

LINGER = 0.02
"""Seconds within which a deferred sync is done."""


class NotSynced(OSError):
    """What was written may not be on disk."""


class GroupCommit:
    """Syncs one stream. ``state`` gives (events written so far, descriptors in sync order); called without any lock.

    Args:
        failed: told of an OSError of a sync that nobody waits for; it must not raise.
        directory: where the stream's files stand.
    """

    def __init__(
        self,
        state: Callable[[], tuple[int, list[int]]],
        failed: Callable[[OSError], None],
        directory: str | os.PathLike[str] = ".",
    ) -> None:
        self._state = state
        self._failed = failed
        self._directory = directory
        self._files = 0
        self._owed = 0
        self._broken: OSError | None = None
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
                self._try()

    def owe(self, size: int) -> None:
        """The first ``size`` events must be synced before the files are closed; the caller goes on to :meth:`ensure`."""
        self._owed = max(self._owed, size)

    def ensure(self, size: int) -> None:
        """Return when the first ``size`` events are on disk, on an event loop too. :meth:`owe` must have been called.

        Raises:
            NotSynced: they may not be. After a failed sync the kernel forgets what it could not write and a later one
                succeeds, so this stream can never be trusted again.
        """
        if size <= self.synced:
            return
        with self._syncing:
            if size > self.synced:
                if self._broken is None and not self._closed:
                    self._try()
                if size > self.synced:
                    broken = self._broken or OSError(errno.EBADF, "the stream was closed before it was synced")
                    raise NotSynced(*broken.args)

    def soon(self) -> None:
        """Have our thread sync within LINGER."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="agentrec-sync", daemon=True)
            self._thread.start()
        self._wake.set()

    def close(self, *, only_owed: bool = False) -> None:
        """Sync what is left.

        Args:
            only_owed: and nothing when nobody waits for it.
        """
        self._wake.set()
        with self._syncing:
            if not only_owed or self._owed > self.synced:
                self._try()
            self._closed = True
        self._wake.set()

    def _try(self) -> None:
        try:
            self._sync()
        except OSError as e:
            self._failed(e)

    def _sync(self) -> None:
        try:
            size, descriptors = self._state()
            for fd in descriptors:
                os.fsync(fd)
            if len(descriptors) != self._files:
                sync_directory(self._directory)
                if not self._files:
                    sync_directory(Path(self._directory).absolute().parent)
                self._files = len(descriptors)
        except OSError as e:
            self._broken = e
            raise
        self.synced = max(self.synced, size)
        self.syncs += 1

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait()
            threading.Event().wait(LINGER / 2)  # let others join
            self._wake.clear()
            with self._syncing:
                if not self._closed:
                    self._try()


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
