"""The log of logs: ``index.jsonl`` lists every stream that was opened and sealed, so that losing a whole file is seen.

It is the one file of a recording with many writers. Opening a stream waits at most 50 ms for its lock; what could not be
listed then is listed later, at most one try a second. A stream that was never listed is only a warning.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from otel_agentrec.errors import AgentRecError
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.gate import OWN_EVENTS
from otel_agentrec.journal.named import NamedStream, Tail
from otel_agentrec.journal.times import boot_id

__all__ = ["Index", "opening_payload"]

NAME = "index"
OPEN_WAIT = 0.05
RETRY_EVERY = 1.0


class Index:
    """The index of one recording directory, as one process writes it."""

    def __init__(self, directory: Path, origin: str) -> None:
        self._path = directory / f"{NAME}.jsonl"
        self._origin = origin
        self._owed: list[tuple[str, dict[str, Any]]] = []
        self._next_try = 0.0
        self.misses = 0
        """How often the lock was not had, or the index could not be written."""

    @property
    def owed(self) -> int:
        """Entries that still wait to be listed."""
        return len(self._owed)

    @contextlib.contextmanager
    def opening(self) -> Iterator[_Opening]:
        """Hold the index while a stream's first line is written: its tip goes into that line, OPENED follows it.

        Never raises for the index itself: without it, ``tip`` is None and the entries are owed.
        """
        with self._held(OPEN_WAIT) as had:
            opening = _Opening(had.tail if had else None)
            yield opening
            self._owed += opening.entries
            if had:
                self._append_owed(had)

    def list_later(self, type_: str, payload: dict[str, Any], wait: float = 0.0) -> None:
        """List an entry now if the lock is free (waiting up to ``wait`` seconds), else at one of the next tries."""
        self._owed.append((type_, payload))
        self.settle(wait, force=wait > 0)

    def settle(self, wait: float = 0.0, *, force: bool = False) -> None:
        """Write owed entries, at most one try a second unless forced."""
        if not self._owed or (not force and time.monotonic() < self._next_try):
            return
        self._next_try = time.monotonic() + RETRY_EVERY
        with self._held(wait) as had:
            if had:
                self._append_owed(had)

    @contextlib.contextmanager
    def _held(self, wait: float) -> Iterator[NamedStream | None]:
        """The index with its lock held and a tail to append to, or None (counted)."""
        try:
            stream = NamedStream(self._path, NAME, content=False, wait=wait, gate=OWN_EVENTS)
        except (OSError, AgentRecError):
            self.misses += 1
            yield None
            return
        with stream:
            try:
                if not stream.tail.size:
                    stream.append([NewEvent("STREAM_OPENED", opening_payload(self._origin, NAME))])
            except OSError:
                self.misses += 1
                yield None
                return
            yield stream

    def _append_owed(self, stream: NamedStream) -> None:
        try:
            stream.append([NewEvent(type_, payload) for type_, payload in self._owed])
        except OSError:
            self.misses += 1
            return
        self._owed.clear()


def opening_payload(origin: str, stream: str) -> dict[str, Any]:
    """The STREAM_OPENED payload that every stream has.

    ``nonce``: 128 random bits, so that no two streams start alike. ``host``: an ``origin`` of one's own stands for its name.
    """
    payload = {
        "origin": f"{origin}/agentrec/{stream}",
        "nonce": secrets.token_hex(16),
        "host": origin,
        "pid": os.getpid(),
        "bootId": boot_id(),
    }
    return {key: value for key, value in payload.items() if value is not None}


class _Opening:
    """What the opener of a stream sees: the tip to name, and a place for the entries to list."""

    def __init__(self, tail: Tail | None) -> None:
        self.tip: dict[str, Any] | None = {"size": tail.size, "hash": tail.hash} if tail else None
        self.entries: list[tuple[str, dict[str, Any]]] = []
