"""Named streams: files that outlive a process and that several processes append to (the index, chat sessions).

Each append takes the file's lock, reads the tail again, and writes once. A torn tail (a crash in the middle of a write) is
cut off under the lock and a RECOVERED event says so; damage before the tail is never repaired.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from otel_agentrec.errors import RecordingBusy, RecordingTampered
from otel_agentrec.journal.chain import GENESIS, seal, split
from otel_agentrec.journal.content import parse_cell
from otel_agentrec.journal.draft import ContentMode, NewEvent, SealedAt, make_draft
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.lists import ListCache
from otel_agentrec.journal.locks import try_lock
from otel_agentrec.journal.times import now

__all__ = ["BrokenTail", "NamedStream", "Tail", "lines_backward", "read_tail", "write_whole"]

_BLOCK = 1 << 16
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a stream: ``size`` events, the ``hash`` of the last one, and ``end`` = bytes up to its newline.

    ``torn``: bytes after that newline.
    """

    size: int
    hash: str
    end: int
    torn: int


def lines_backward(fd: int) -> Iterator[tuple[int, bytes]]:
    """(offset, line with its newline) from the end of a file; a torn last line comes first, without newline."""
    start = os.fstat(fd).st_size
    data = b""
    while start > 0 or data:
        at = data.rfind(b"\n", 0, -1) if data else -1
        if at < 0 and start > 0:
            step = min(_BLOCK, start)
            start -= step
            os.lseek(fd, start, os.SEEK_SET)
            data = os.read(fd, step) + data
            continue
        yield start + at + 1, data[at + 1 :]
        data = data[: at + 1]


def read_tail(fd: int) -> Tail:
    """The tail of an open stream file, reading backwards only as far as its last whole line.

    Raises:
        RecordingTampered: the last whole line is no sealed event.
    """
    torn = 0
    for offset, line in lines_backward(fd):
        if not line.endswith(b"\n"):
            torn = len(line)
            continue
        parts = split(line[:-1])
        try:
            seq = json.loads(parts[0])["seq"] if parts else None
        except (ValueError, KeyError, TypeError):
            seq = None
        if parts is None or type(seq) is not int:
            raise RecordingTampered(f"the last line of the stream (byte {offset}) is no sealed event")
        return Tail(seq + 1, parts[1], offset + len(line), torn)
    return Tail(0, GENESIS, 0, torn)


class NamedStream:
    """A named stream with its lock held: reads the tail, repairs it, appends. Use as a context manager.

    Args:
        path: the events file; made (0600) if it is not there.
        name: the stream's name in its events.
        content: keep content cells in a file beside it (the index has none).
        gate: what its events pass before they are written; default: the default rules.
        mode: where content goes; default: into cells where there is a content file, else into the events.

    Raises:
        OSError: the file can't be opened or repaired.
        RecordingBusy: the lock was not had within ``wait`` seconds.
        RecordingTampered: the last whole line is damaged.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        *,
        content: bool,
        wait: float,
        gate: Gate | None = None,
        mode: ContentMode | None = None,
    ) -> None:
        self.name = name
        self._gate = gate or Gate()
        self._content_path = path.with_name(path.name.removesuffix(".jsonl") + ".content.jsonl") if content else None
        self._content_fd: int | None = None
        self._mode: ContentMode = mode or ("detached" if content else "inline")
        self._cache = ListCache()
        self._fd = os.open(path, _FLAGS, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(self._fd).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", str(path))
            if not try_lock(self._fd, wait):
                raise RecordingBusy(f"{path} is being written by another process")
            if self._content_path is not None and self._content_path.exists():
                self._content_fd = os.open(self._content_path, _FLAGS, 0o600)
            self.tail = self._recovered()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> NamedStream:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the lock back."""
        for fd in (self._content_fd, self._fd):
            if fd is not None and fd >= 0:
                os.close(fd)
        self._fd, self._content_fd = -1, None

    def append(self, events: Sequence[NewEvent], gate: Gate | None = None) -> list[SealedAt]:
        """Seal events after the tail in one write per file.

        Args:
            gate: what these pass, where it is not that of the stream.

        Raises:
            OSError: nothing was written.
        """
        lines, cells, done = bytearray(), bytearray(), []
        seq, prev = self.tail.size, self.tail.hash
        for event in events:
            ts, mono = now()
            draft = make_draft(event.type, event.payload, event.where, self._cache, gate or self._gate, self._mode)
            ts = ts if event.ts is None else event.ts
            line, digest = seal(prev, draft.event(self.name, seq, ts, mono, event.id, event.copy_of))
            lines += line
            cells += draft.cell_lines(seq)
            done.append(SealedAt(self.name, seq, digest, prev, ts))
            seq, prev = seq + 1, digest
        content_end = 0
        if cells:
            content_end = self._write_content(bytes(cells))
        try:
            write_whole(self._fd, bytes(lines), self.tail.end)
        except OSError:
            if cells and self._content_fd is not None:
                os.ftruncate(self._content_fd, content_end)
            raise
        self.tail = Tail(seq, prev, self.tail.end + len(lines), 0)
        return done

    def _write_content(self, cells: bytes) -> int:
        if self._content_fd is None:
            assert self._content_path is not None
            self._content_fd = os.open(self._content_path, _FLAGS, 0o600)
        end = os.fstat(self._content_fd).st_size
        write_whole(self._content_fd, cells, end)
        return end

    def _recovered(self) -> Tail:
        """Cut off a torn tail, and cells that no event owns; a RECOVERED event says so."""
        tail = read_tail(self._fd)
        cells, orphaned = _orphans(self._content_fd, tail.size) if self._content_fd is not None else (0, 0)
        if not tail.torn and not orphaned:
            return tail
        if self._content_fd is not None and orphaned:
            os.ftruncate(self._content_fd, os.fstat(self._content_fd).st_size - orphaned)
        if tail.torn:
            os.ftruncate(self._fd, tail.end)
        self.tail = Tail(tail.size, tail.hash, tail.end, 0)
        if tail.size:  # else nothing whole was ever written: the stream starts anew
            self.append([NewEvent("RECOVERED", {"bytes": tail.torn + orphaned, "cells": cells})])
        return self.tail


def write_whole(fd: int, data: bytes, end: int) -> None:
    """Append to a file that ends at ``end``; a short or failed write is cut back.

    Raises:
        BrokenTail: it could not be cut back either: the file must not be appended to.
        OSError: nothing was written.
    """
    try:
        written = os.write(fd, data)
        if written != len(data):
            raise OSError(errno.ENOSPC, "short write: the disk is full or a quota is reached")
    except OSError as e:
        try:
            if os.fstat(fd).st_size > end:
                os.ftruncate(fd, end)
        except OSError:
            raise BrokenTail(e.errno, e.strerror) from e
        raise


class BrokenTail(OSError):
    """A failed write could not be cut back."""


def _orphans(fd: int, size: int) -> tuple[int, int]:
    """(cells, bytes) at the end of a content file that belong to no event: seq >= size, or torn."""
    cells = length = 0
    for _, line in lines_backward(fd):
        cell = parse_cell(line[:-1]) if line.endswith(b"\n") else None
        if cell is not None and cell.seq < size:
            break
        cells += cell is not None
        length += len(line)
    return cells, length
