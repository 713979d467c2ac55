"""One stream being written: ``<stream>.jsonl`` and its content file.

``StreamWriter`` is not thread-safe and raises; :class:`otel_agentrec.journal.Journal` gives it a lock and catches.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from otel_agentrec.journal.chain import GENESIS, seal
from otel_agentrec.journal.draft import ContentMode, Draft, Envelope, SealedAt, make_draft
from otel_agentrec.journal.gate import OWN_EVENTS
from otel_agentrec.journal.index import Index, opening_payload
from otel_agentrec.journal.lines import MAX_LINE
from otel_agentrec.journal.lists import ListCache
from otel_agentrec.journal.named import write_whole
from otel_agentrec.journal.ownfile import OwnFile
from otel_agentrec.journal.times import now

__all__ = ["StreamWriter", "Told", "new_stream_name"]

Told = Callable[[bytes, SealedAt], None]

CELL_FRAME = 128
"""More bytes than a cell's line has around its value."""


def new_stream_name() -> str:
    """``20261130T075500Z-<pid>-<random>``: sorts by time."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{os.getpid()}-{secrets.token_hex(4)}"


class StreamWriter:
    """A stream of this process. Opening writes its first line and lists it in the index.

    Args:
        directory: the recording; it must exist.
        opened: further keys of the STREAM_OPENED payload.
        told: called with every line once it is written, and where that was; it must be quick, and raise nothing.

    Raises:
        OSError: the files can't be made or written.
    """

    def __init__(
        self,
        directory: Path,
        *,
        origin: str,
        index: Index,
        mode: ContentMode = "detached",
        opened: dict[str, Any],
        told: Told | None = None,
    ) -> None:
        self.name = new_stream_name()
        self.cache = ListCache()
        self.mode: ContentMode = mode
        self._told = told
        self._index = index
        self._seq = 0
        self._hash = GENESIS
        self._end = 0
        self._content_end = 0
        self._content: OwnFile | None = None
        self._content_path = directory / f"{self.name}.content.jsonl"
        path = directory / f"{self.name}.jsonl"
        self._events = OwnFile(path, locked=True)
        try:
            with index.opening() as opening:
                payload = {**opening_payload(origin, self.name), **opened}
                if opening.tip:
                    payload["indexTip"] = opening.tip
                first = self.append(make_draft("STREAM_OPENED", payload, Envelope(), self.cache, OWN_EVENTS, "inline"))
                opening.entries.append(("OPENED", {"stream": self.name, "hash": first.hash}))
        except BaseException:
            self._events.close()
            with contextlib.suppress(OSError):
                if not self._seq:
                    path.unlink()
            raise

    @property
    def size(self) -> int:
        """Events written so far."""
        return self._seq

    @property
    def length(self) -> int:
        """Bytes written so far, both files."""
        return self._end + self._content_end

    @property
    def is_locked(self) -> bool:
        """Whether readers are told that this stream's writer is alive (always, where the file system has no locks)."""
        return self._events.has_lock

    def append(self, draft: Draft) -> SealedAt:
        """Write one event and its cells: content first, so that no event ever names a cell that is not there.

        Ask :meth:`gone` before: it makes sure that the descriptors still are the stream's.

        Raises:
            OSError: nothing was written; both files are as before.
        """
        assert draft.epoch is self.cache
        ts, mono = now()
        seq, prev = self._seq, self._hash
        line, digest = seal(prev, draft.event(self.name, seq, ts, mono))
        longest = max(len(line), *(len(value) + CELL_FRAME for _, value in draft.cells)) if draft.cells else len(line)
        if longest > MAX_LINE:
            raise OSError(errno.EFBIG, f"a line of {longest} bytes is longer than readers take ({MAX_LINE})")
        cells = draft.cell_lines(seq)
        if cells:
            self._write_content(cells)
        try:
            write_whole(self._events.fd, line, self._end)
        except OSError:
            if cells and self._content is not None:
                os.ftruncate(self._content.fd, self._content_end)
            raise
        self._seq, self._hash = seq + 1, digest
        self._end += len(line)
        self._content_end += len(cells)
        if draft.lists:
            self.cache.add(draft.key, seq, draft.lists)
        done = SealedAt(self.name, seq, digest, prev, ts)
        if self._told is not None:
            self._told(line, done)
        return done

    def gone(self) -> bool:
        """Whether somebody deleted the file under us: what is written now would be lost.

        Raises:
            OSError: the program closed our files, and they can't be opened again.
        """
        return self._events.gone() or (self._content is not None and self._content.gone())

    def sync_state(self) -> tuple[int, list[int]]:
        """(events written, descriptors to sync in this order: content before the events that name it).

        Raises:
            OSError: a descriptor is not the stream's any more.
        """
        size, files = self._seq, [file for file in (self._content, self._events) if file is not None]
        if not all(file.is_open() for file in files):
            raise OSError(errno.EBADF, "a file of the stream was closed before it was synced")
        return size, [file.fd for file in files]

    def seal(self, counters: dict[str, int] | None = None, *, sync: bool = False) -> SealedAt:
        """Write STREAM_SEALED, list it in the index, and close.

        Args:
            counters: what the process counted, for whoever reads the stream.
            sync: wait until all is on disk.

        Raises:
            OSError: the last line could not be written; the stream is closed all the same.
        """
        try:
            payload = {"count": self._seq, **({"counters": counters} if counters else {})}
            done = self.append(make_draft("STREAM_SEALED", payload, Envelope(), self.cache, OWN_EVENTS))
            if sync:
                for fd in self.sync_state()[1]:
                    os.fsync(fd)
            self._index.list_later("SEALED", {"stream": self.name, "size": self._seq, "hash": done.hash}, wait=0.05)
            return done
        finally:
            self.close()

    def close(self) -> None:
        """Close the files without sealing: the stream then reads as cut off. Also what a forked child does first."""
        for file in (self._events, self._content):
            if file is not None:
                file.close()
        self._content = None

    def _write_content(self, cells: bytes) -> None:
        if self._content is None:
            self._content = OwnFile(self._content_path)
        write_whole(self._content.fd, cells, self._content_end)
