"""Finds the row of a span by its trace and its id, in a few bytes per row."""

from __future__ import annotations

from array import array

from otel_agentrec.nodes.columns import id_number
from otel_agentrec.nodes.skeleton import Rows, Span

__all__ = ["SpanIndex"]

_FREE = -1


class SpanIndex:
    """A hash table of row numbers with open addressing; what is compared stands in the rows themselves."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._slots = array("i", [_FREE]) * 64
        self._used = 0

    def find(self, trace: str, span: str) -> Span | None:
        row = self._slots[self._slot(trace, span)]
        return None if row == _FREE else Span(self._rows, row)

    def find_or_add(self, trace: str, span: str) -> Span:
        slot = self._slot(trace, span)
        if self._slots[slot] != _FREE:
            return Span(self._rows, self._slots[slot])
        s = Span(self._rows, self._rows.grow())
        s.trace, s.span = trace, span
        self._slots[slot] = s.row
        self._used += 1
        if 2 * self._used > len(self._slots):
            self._widen()
        return s

    def _slot(self, trace: str, span: str) -> int:
        """The slot that holds a span's row, or the free one where it belongs."""
        rows, slots = self._rows, self._slots
        ids, number = rows.data[Span.column_of["span"]], id_number(span)
        last = len(slots) - 1
        slot = hash((trace, number or span)) & last
        while (row := slots[slot]) != _FREE:
            if ids[row] == number and Span(rows, row).trace == trace and (number or Span(rows, row).span == span):
                break
            slot = (slot + 1) & last
        return slot

    def _widen(self) -> None:
        old = self._slots
        self._slots = array("i", [_FREE]) * (2 * len(old))
        for row in old:
            if row != _FREE:
                s = Span(self._rows, row)
                self._slots[self._slot(s.trace, s.span)] = row
