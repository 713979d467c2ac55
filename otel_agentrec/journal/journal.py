"""The journal of one process: any thread may append, nothing ever raises, and what is lost is counted in the chain.

A stream is opened at the first event; a forked child opens its own; a stream that could not be written is tried again at
the next event, which is then preceded by DROPPED.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from otel_agentrec.journal.canonical import MAX_BYTES
from otel_agentrec.journal.draft import ContentMode, Draft, Envelope, SealedAt, make_draft
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.index import Index
from otel_agentrec.journal.lists import ListCache
from otel_agentrec.journal.named import BrokenTail
from otel_agentrec.journal.process import own_path
from otel_agentrec.journal.sync import GroupCommit
from otel_agentrec.journal.writer import StreamWriter, Told
from otel_agentrec.redaction import Redactor

__all__ = ["Durability", "Journal", "make_directory"]

Durability = Literal["written", "fsync"]

_NOWHERE = Envelope()


class StreamMoved(Exception):
    """The stream that an event points into is not the one that is written now."""


class Journal:
    """Append-only journal of a recording directory.

    Args:
        directory: made with mode 0700 when the first event comes.
        origin: name of who records; goes into every stream's first line.
        content: ``detached`` (content file), ``inline`` (no erasure) or ``off``.
        opened: further keys of each STREAM_OPENED payload, as they are when a stream is opened.
        durability: ``written``: in the kernel before ``append`` returns (survives the process); ``fsync``: on disk
            (survives the machine).
        segment_bytes: a stream that has grown to this size is sealed, and goes on in a new one.
        counted: gives what the process counted since it was asked last, for STREAM_SEALED.
        redactor: takes the secrets out of all that is written; default: the default rules.
        value_bytes: the large parts of a larger value are cut.
        told: called with each line that was written, in order and under the lock: see :class:`StreamWriter`.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        origin: str,
        content: ContentMode = "detached",
        opened: dict[str, Any] | None = None,
        durability: Durability = "written",
        segment_bytes: int = 256 << 20,
        counted: Callable[[], dict[str, int]] = dict,
        redactor: Redactor | None = None,
        value_bytes: int = MAX_BYTES,
        told: Told | None = None,
    ) -> None:
        self._lines_told = told
        self.gate = Gate(redactor, value_bytes)
        """What everything passes that is written or handed on."""
        self.directory = Path(directory)
        self.counters: Counter[str] = Counter()
        """``records``, ``bytes``, ``dropped``, ``index_misses``, ``pending`` (calls that came while their thread was writing)."""
        self._origin = origin
        self._mode: ContentMode = content
        self._opened = opened if opened is not None else {}
        self._fsync = durability == "fsync"
        self._segment_bytes = segment_bytes
        self._counted = counted
        self._prev_stream: dict[str, Any] | None = None
        self._writer: StreamWriter | None = None
        self._index: Index | None = None
        self._no_cache = ListCache()
        self._lost: Counter[str] = Counter()
        self._told: set[str] = set()
        self._parent_stream: str | None = None
        self._sealed = False
        self._reset_locks()
        own_path()  # what the process starts from now on stands below it
        _JOURNALS.add(self)

    def _reset_locks(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._commit: GroupCommit | None = None
        self._pending: deque[tuple[str, dict[str, Any], Envelope]] = deque()

    # --- appending ---

    def append(
        self, type_: str, payload: dict[str, Any], where: Envelope = _NOWHERE, *, only_in: str | None = None
    ) -> SealedAt | None:
        """Write one event before returning; values are copied to disk, no reference to them is kept.

        Returns where it went, or None when it was dropped (counted), or when this very thread is inside a write already
        (a finaliser or signal handler): then the outer call writes it before it returns.

        Args:
            only_in: the stream whose events the payload points at by their seq.

        Raises:
            StreamMoved: the event would go to another stream than ``only_in``; nothing was written.
        """
        if self._owner == threading.get_ident():
            self.counters["pending"] += 1
            self._pending.append((type_, payload, where))
            return None
        try:
            draft = make_draft(type_, payload, where, self._cache(), self.gate, self._mode)
        except Exception as e:  # a value that even the normaliser could not keep must not reach the agent
            self._failed(e, 1)
            return None
        with self._held():
            if only_in is not None and not self._goes_on(only_in):
                raise StreamMoved(only_in)
            done = self._write(draft, type_, payload, where)
            commit = self._commit
        self._drain()
        if done is not None and commit is not None and self._fsync:
            commit.wait(done.seq + 1)
        return done

    def append_durably(self, type_: str, payload: dict[str, Any], where: Envelope = _NOWHERE) -> SealedAt:
        """Write one event and have it on disk, with all that was written before it, whatever the durability is.

        Raises:
            Exception: it may not be on disk (no room, the stream's lock is lost, a sync failed, or this thread is inside a
                write already).
        """
        if self._owner == threading.get_ident():
            raise OSError(errno.EDEADLK, "called from inside a write of the same thread")
        draft = make_draft(type_, payload, where, self._cache(), self.gate, self._mode)
        with self._held():
            try:
                if not self._ready().is_locked:
                    raise OSError(errno.ENOLCK, "another process holds the lock of the stream")
            except Exception as e:
                self._failed(e, 1)
                raise
            done = self._write(draft, type_, payload, where, strict=True)
            commit = self._commit
            assert done is not None and commit is not None
            commit.owe(done.seq + 1)
        self._drain()
        commit.ensure(done.seq + 1)
        return done

    def seal(self) -> None:
        """Close the current stream for good (STREAM_SEALED). An event that comes later opens a new one, marked late."""
        with self._held():
            self._sealed = True
            if self._writer is not None:
                self._seal_stream(self._writer)
            if self._index is not None:
                self._index.settle(0.05, force=True)
        self._drain()

    @property
    def stream(self) -> str | None:
        """Name of the open stream that has room; None when the next event opens one."""
        writer = self._writer
        return writer.name if writer is not None and writer.length < self._segment_bytes else None

    def drop(self, count: int, reason: str) -> None:
        """Count something that could not be recorded; DROPPED goes into the chain with the next event."""
        self.counters["dropped"] += count
        self._lost[reason] += count

    # --- inside the lock ---

    @contextlib.contextmanager
    def _held(self) -> Any:
        with self._lock:
            self._owner = threading.get_ident()
            try:
                yield
                while self._pending:
                    self._write(None, *self._pending.popleft())
            finally:
                self._owner = None

    def _drain(self) -> None:
        """Write what came between the last look at the pending list and leaving the lock."""
        while self._pending and self._owner != threading.get_ident():
            with self._held():
                pass

    def _cache(self) -> ListCache:
        return self._writer.cache if self._writer else self._no_cache

    def _write(
        self, draft: Draft | None, type_: str, payload: dict[str, Any], where: Envelope, *, strict: bool = False
    ) -> SealedAt | None:
        """``strict``: what goes wrong is raised as well."""
        try:
            writer = self._ready()
            self._tell_lost(writer)
            if (
                draft is None or draft.epoch is not writer.cache
            ):  # a new stream: the lists it was compared with stand elsewhere
                draft = make_draft(type_, payload, where, writer.cache, self.gate, self._mode)
            before = writer.length
            done = writer.append(draft)
        except Exception as e:
            self._failed(e, 1)
            if isinstance(e, BrokenTail):
                self._forget(0, "")
            if strict:
                raise
            return None
        self.counters["records"] += 1
        self.counters["bytes"] += writer.length - before
        if self._index is not None and self._index.owed:
            self._index.settle()
            self.counters["index_misses"] = self._index.misses
        return done

    def _goes_on(self, stream: str) -> bool:
        """Whether the next event goes to this stream."""
        writer = self._writer
        if writer is None or writer.name != stream or writer.length >= self._segment_bytes:
            return False
        try:
            return not writer.gone()
        except OSError:
            return False

    def _seal_stream(self, writer: StreamWriter) -> SealedAt | None:
        """Seal and leave the open stream. Returns where its last event stands."""
        done = None
        self._leave()
        try:
            writer.gone()
            self._tell_lost(writer)
            done = writer.seal(self._counted(), sync=self._fsync)
        except OSError as e:
            self._failed(e, 0)
        finally:
            writer.close()
        return done

    def _leave(self) -> None:
        """No stream is open any more. Syncs first: the descriptors are about to be closed."""
        commit, self._writer, self._commit = self._commit, None, None
        if commit is not None:
            commit.close(only_owed=not self._fsync)

    def _ready(self) -> StreamWriter:
        """The open writer, its descriptors its own; a stream whose file was deleted is left, and a new one opened."""
        if self._writer is not None and self._writer.gone():
            self._forget(self._writer.size, "the recording was deleted while it was being written")
        if self._writer is not None and self._writer.length >= self._segment_bytes:
            last = self._seal_stream(self._writer)
            if last is not None:
                self._prev_stream = {"id": last.stream, "size": last.seq + 1, "hash": last.hash}
        if self._writer is None:
            make_directory(self.directory)
            if self._index is None:
                self._index = Index(self.directory, self._origin)
            opened = {**self._opened, "process": own_path()}
            if self._sealed:
                opened["late"] = True
            if self._parent_stream:
                opened["parentStream"] = self._parent_stream
            if self._prev_stream:
                opened["prevStream"] = self._prev_stream
            self._writer = StreamWriter(
                self.directory,
                origin=self._origin,
                index=self._index,
                mode=self._mode,
                opened=opened,
                told=self._lines_told,
            )
            self._prev_stream = None
            self._commit = GroupCommit(self._writer.sync_state, lambda e: self._failed(e, 0), self.directory)
        return self._writer

    def _forget(self, lost: int, reason: str) -> None:
        writer = self._writer
        self._leave()
        if writer is not None:
            writer.close()
        self._index = None
        if lost:
            self.drop(lost, reason)
            self._tell(reason, f"{lost} events are lost; recording goes on in {self.directory}")

    def _tell_lost(self, writer: StreamWriter) -> None:
        for reason, count in list(self._lost.items()):
            payload = {"count": count, "reason": reason}
            writer.append(make_draft("DROPPED", payload, _NOWHERE, writer.cache, self.gate))
            del self._lost[reason]

    def _failed(self, error: Exception, count: int) -> None:
        code = error.errno if isinstance(error, OSError) else None
        reason = errno.errorcode.get(code or 0, type(error).__name__)
        if count:
            self.drop(count, reason)
        what = os.strerror(code) if code else repr(error)
        self._tell(reason, f"{self.directory}: {what}; the program goes on, losses are counted")

    def _tell(self, kind: str, text: str) -> None:
        """One line on stderr, once per kind."""
        if kind not in self._told:
            self._told.add(kind)
            with contextlib.suppress(Exception):
                print(f"otel-agentrec: not recorded: {self.gate.redactor.text(text)}", file=sys.stderr)

    # --- fork ---

    def _after_fork_in_child(self) -> None:
        """The child leaves its parent's files alone (closing keeps the parent's lock) and opens its own stream."""
        writer, self._writer = self._writer, None
        if writer is not None:
            self._parent_stream = writer.name
            writer.close()
        self._index = self._prev_stream = None
        self._lost.clear()
        self.counters.clear()
        self._reset_locks()


_JOURNALS: weakref.WeakSet[Journal] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for journal in list(_JOURNALS):
        journal._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def make_directory(directory: Path) -> None:
    """Make a recording directory (0700) that version control leaves alone. Raises OSError."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    ignore = directory / ".gitignore"
    if not ignore.exists():
        with contextlib.suppress(OSError):
            ignore.touch(mode=0o600)
            ignore.write_text("*\n")
