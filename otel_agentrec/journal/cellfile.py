"""Reads single cells of a content file: on from where the last one ended, else found by bisecting."""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO

from otel_agentrec.errors import RecordingUnreadable
from otel_agentrec.journal.lines import MAX_LINE, bisect_lines, lines, open_lines

__all__ = ["CellFile"]

_SMALL = 16 << 10
_AHEAD = 128 << 10
"""How far a wanted cell may lie behind the last one that was read before it is searched for, in bytes."""
MAX_SCAN = 256 << 20
"""Largest content file that is searched from end to end for a cell that stands out of order."""
_HEAD = re.compile(rb'\{"i":(\d{1,9}),"salt":(?:"[0-9a-f]{32}"|null),"seq":(\d{1,16})[,}]')


class CellFile:
    """Cells of a content file by (seq, i). Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._next = 0
        self._scanned = -1
        self._offsets: dict[int, int] = {}

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def line(self, seq: int, i: int) -> bytes | None:
        """The line of a cell without its newline; None when the file does not have it."""
        if self._file is None:
            try:
                self._file = open_lines(self._path, _SMALL)
            except RecordingUnreadable:
                return None
        wanted = _number(seq, i)
        try:
            return self._from(self._next, wanted, _AHEAD) or self._found(wanted)
        except OSError:
            return None

    def _from(self, offset: int, wanted: int, ahead: int = 1) -> bytes | None:
        """The wanted cell's line, if it begins within ``ahead`` bytes from ``offset``; the next search begins behind it."""
        assert self._file is not None
        self._file.seek(offset)
        end = offset + ahead
        while offset < end and (line := self._file.readline(MAX_LINE)):
            number = _number_of(line)
            if number == wanted and line.endswith(b"\n"):
                self._next = offset + len(line)
                return line[:-1]
            if number is not None and number > wanted:
                break
            offset += len(line)
        return None

    def _found(self, wanted: int) -> bytes | None:
        assert self._file is not None
        size = self._file.seek(0, 2)
        line = self._from(bisect_lines(self._file, size, wanted, _number_of), wanted)
        if line is None and size <= MAX_SCAN:
            # a damaged number leads the bisection astray; where every cell stands is then looked up once
            if size != self._scanned:
                self._scanned = size
                self._file.seek(0)
                found = ((offset, _number_of(line)) for offset, line in lines(self._file, 0, size))
                self._offsets = {number: offset for offset, number in found if number is not None}
            if wanted in self._offsets:
                line = self._from(self._offsets[wanted], wanted)
        return line


def _number(seq: int, index: int) -> int:
    return seq << 32 | index


def _number_of(line: bytes) -> int | None:
    m = _HEAD.match(line)
    return _number(int(m[2]), int(m[1])) if m else None
