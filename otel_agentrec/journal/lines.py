"""Lines of a recording file, in bounded memory: in order, and by bisecting on their sequence number."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from otel_agentrec.errors import RecordingUnreadable

__all__ = ["BUFFER", "MAX_LINE", "bisect_lines", "last_start_before", "lines", "open_lines", "size_of"]

BUFFER = 1 << 20
MAX_LINE = 64 << 20
"""Longest line that is read, in bytes. Two values of the largest size that is recorded (32 MiB) fit."""


def open_lines(path: Path, buffering: int = BUFFER) -> BinaryIO:
    """Open a recording file for reading; only regular files (a pipe would block for ever).

    Raises:
        RecordingUnreadable: it is not there, not a file, or may not be read.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
            raise RecordingUnreadable(f"{path} is {kind}", "a stream of a recording is a regular .jsonl file")
        return open(path, "rb", buffering=buffering)
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        raise RecordingUnreadable(f"{path} can't be read: {reason}", "check the path and who may read it") from e


def lines(file: BinaryIO, offset: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
    """(byte offset, line) from where ``file`` stands, which is ``offset``, up to ``stop``.

    A line ends with its newline, except the last one of a torn file, one cut by ``stop``, and pieces of a line longer
    than MAX_LINE.
    """
    for line in iter(partial(file.readline, MAX_LINE), b""):
        if stop is not None and offset + len(line) > stop:
            if stop > offset:
                yield offset, line[: stop - offset]
            return
        yield offset, line
        offset += len(line)


def size_of(path: Path) -> int:
    """Size in bytes; 0 when the file is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def bisect_lines(
    file: BinaryIO, stop: int, wanted: int, seq_of: Callable[[bytes], int | None], low: int = 0, high: int | None = None
) -> int:
    """Offset of the first line whose number is not below ``wanted``; ``stop`` when there is none.

    Lines that state no number (damaged ones) are passed over. Numbers must not fall from line to line.

    Args:
        stop: where the file ends.
        seq_of: the number that a line states, or None.
        low: the start of a line that is known to lie at or before the wanted one.
        high: the start of a line that is known to lie at or after it (default: ``stop``).
    """
    answer = high = stop if high is None else high
    while low < high:
        middle = (low + high) // 2
        found = _numbered(file, _line_start(file, middle, low), high, seq_of)
        if found is None:  # no numbered line begins from the middle on: the one at low, if any, decides
            high = middle
            found = _numbered(file, low, high, seq_of)
            if found is None:
                break
        if found[2] < wanted:
            low = found[1]
        else:
            answer, high = found[0], min(middle, found[0])
    return answer


def last_start_before(
    file: BinaryIO, stop: int, wanted: int, seq_of: Callable[[bytes], int | None], low: int, at: int
) -> int:
    """The start of the first numbered line from ``at`` on, where its number is not above ``wanted``; else ``low``."""
    found = _numbered(file, _line_start(file, at, low), stop, seq_of)
    return found[0] if found is not None and found[2] <= wanted else low


def _line_start(file: BinaryIO, at: int, low: int) -> int:
    """The first start of a line that is not before ``at``; ``low`` is one."""
    if at <= low:
        return low
    file.seek(at - 1)
    while (piece := file.readline(BUFFER)) and not piece.endswith(b"\n"):
        pass
    return file.tell()


def _numbered(
    file: BinaryIO, start: int, high: int, seq_of: Callable[[bytes], int | None]
) -> tuple[int, int, int] | None:
    """(start, end, number) of the first line with a number that begins in [start, high)."""
    file.seek(start)
    for offset, line in lines(file, start):
        if offset >= high:
            break
        seq = seq_of(line)
        if seq is not None:
            return offset, offset + len(line), seq
    return None
