"""Where snapshots of sessions are kept between processes (ai4j section 4).

A snapshot store and a resume cache are two things: this one lets a session outlive its process, the cache spares a run
the calls that it has made.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable
from urllib.parse import quote, unquote

from otel_agentrec.errors import AgentRecError, RecordingBusy, RecordingUnreadable, UsageError
from otel_agentrec.journal.locks import try_lock
from otel_agentrec.journal.wholefile import replace_file
from otel_agentrec.session.snapshot import AgentSessionSnapshot, from_bytes, to_bytes

__all__ = ["AgentSessionStore", "FileAgentSessionStore", "StaleSnapshot"]

ENDING = ".session.json"
LOCK_WAIT = 5.0


class StaleSnapshot(AgentRecError):
    """The store holds a later snapshot of the session than the one that was to be saved."""

    default_hint = "load the session, restore it, and go on from there"


@runtime_checkable
class AgentSessionStore(Protocol):
    """Keeps the newest snapshot of each session."""

    def save(self, snapshot: AgentSessionSnapshot) -> None:
        """Keep it in place of an older one. After a crash the old or the new one is there, never neither.

        Raises:
            StaleSnapshot: a later one is there; nothing was changed.
            UsageError: it has no session id.
        """
        ...

    def load(self, session_id: str) -> AgentSessionSnapshot | None:
        """None: the store has none of that session.

        Raises:
            RecordingUnreadable: what it has can't be read.
        """
        ...

    def delete(self, session_id: str) -> bool:
        """Whether there was one."""
        ...

    def list_session_ids(self) -> list[str]:
        """Sorted."""
        ...


class FileAgentSessionStore:
    """One JSON file per session, no dependencies.

    Args:
        directory: made (0700) with the first snapshot.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)

    def save(self, snapshot: AgentSessionSnapshot) -> None:
        path = self._path(snapshot.session_id)
        with self._locked():
            try:
                before = self.load(snapshot.session_id)
            except RecordingUnreadable:
                before = None  # a damaged file is no reason to lose the session
            refuse_stale(before, snapshot)
            replace_file(path, to_bytes(snapshot))

    def load(self, session_id: str) -> AgentSessionSnapshot | None:
        path = self._path(session_id)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            snapshot = from_bytes(data)
        except RecordingUnreadable as e:
            raise RecordingUnreadable(
                f"{path} is damaged: {e}", "take it from a backup, or delete it to begin the session anew"
            ) from None
        if snapshot.session_id != session_id:
            raise RecordingUnreadable(f"{path} holds session {snapshot.session_id!r}, not {session_id!r}")
        return snapshot

    def delete(self, session_id: str) -> bool:
        try:
            self._path(session_id).unlink()
        except FileNotFoundError:
            return False
        return True

    def list_session_ids(self) -> list[str]:
        try:
            names = [entry.name for entry in os.scandir(self.directory)]
        except FileNotFoundError:
            return []
        ids = [n.removesuffix(ENDING) for n in names if n.endswith(ENDING) and not n.startswith(".")]
        return sorted(unquote(n, errors="surrogatepass") for n in ids)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Look and replace as one step, also beside other processes."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self.directory / ".lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            if not try_lock(fd, LOCK_WAIT):
                raise RecordingBusy(f"{self.directory} is being written by another process")
            yield
        finally:
            os.close(fd)

    def _path(self, session_id: str) -> Path:
        if not isinstance(session_id, str) or not session_id:
            raise UsageError("a session needs an id", "give any text: a user, a chat, a ticket")
        name = quote(session_id, safe="", errors="surrogatepass")
        name = "%2E" + name[1:] if name.startswith(".") else name
        if len(name) > 200:
            raise UsageError(f"session id {session_id[:40]!r}… is too long for a file name", "give a shorter one")
        return self.directory / f"{name}{ENDING}"


def refuse_stale(before: AgentSessionSnapshot | None, snapshot: AgentSessionSnapshot) -> None:
    """Raises StaleSnapshot if ``before`` is later than ``snapshot``."""
    if before is not None and before.version > snapshot.version:
        raise stale(snapshot, before.version)


def stale(snapshot: AgentSessionSnapshot, version: int) -> StaleSnapshot:
    """The error of saving a snapshot over a later one of that version."""
    return StaleSnapshot(
        f"session {snapshot.session_id} was saved with {version} events, this snapshot has {snapshot.version}"
    )
