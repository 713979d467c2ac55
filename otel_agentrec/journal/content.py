"""Content cells: what people, models and tools said, kept beside the events and erasable without breaking a hash.

A cell is one line of ``<stream>.content.jsonl``::

    {"i":0,"salt":"<32 hex>","seq":17,"value":V}

It is owned by event ``seq``, is its ``i``-th cell in the order in which references stand in canonical(E), and is named
there by ``{"$c": commitment, "bytes": length of canonical(V)}``. An erased cell keeps its length: value and salt are gone,
blanks stand in their place. See docs/format.md.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from typing import NamedTuple

__all__ = ["REFERENCE", "Cell", "cell_line", "commit", "erased_line", "is_inline", "parse_cell", "reference"]

_DOMAIN = b"agentrec/content/1\0"

REFERENCE = re.compile(rb'\{"\$c":"([0-9a-f]{64})","bytes":(\d+)\}')
"""A reference in canonical bytes. It can't occur in a string (quotes are escaped there), nor as a user's key (a key that
starts with ``$`` is written with one more ``$``)."""

_CELL = re.compile(rb'\{"i":(0|[1-9]\d*),"salt":"([0-9a-f]{32})","seq":(0|[1-9]\d*),"value":(.*)\}', re.DOTALL)
_ERASED = re.compile(rb'\{"i":(0|[1-9]\d*),"salt":null,"seq":(0|[1-9]\d*)\} *')


class Cell(NamedTuple):
    """One parsed cell line. ``salt`` is None and ``value`` empty when the cell was erased."""

    i: int
    salt: bytes | None
    seq: int
    value: bytes


def commit(salt: bytes, value: bytes) -> str:
    """The commitment of a value: hex sha256 over domain, 16 salt bytes and canonical(V).

    The salt is random per cell, so that an erased value can't be guessed from what is left of it.
    """
    return hashlib.sha256(_DOMAIN + salt + value).hexdigest()


def reference(commitment: str, size: int) -> dict[str, object]:
    """The reference that stands in the event; ``size`` = bytes of canonical(V)."""
    return {"$c": commitment, "bytes": size}


def cell_line(index: int, salt: bytes, seq: int, value: bytes) -> bytes:
    return b'{"i":%d,"salt":"%s","seq":%d,"value":%s}\n' % (index, salt.hex().encode(), seq, value)


def erased_line(index: int, seq: int, length: int) -> bytes:
    """What stands in place of an erased cell line of ``length`` bytes (newline included)."""
    stub = b'{"i":%d,"salt":null,"seq":%d}' % (index, seq)
    return stub + b" " * (length - 1 - len(stub)) + b"\n"


def parse_cell(line: bytes) -> Cell | None:
    """The cell of a line without its newline, or None when the line is no cell. The value is sliced, not parsed."""
    m = _CELL.fullmatch(line)
    if m:
        return Cell(int(m[1]), bytes.fromhex(m[2].decode()), int(m[3]), m[4])
    m = _ERASED.fullmatch(line)
    if m:
        return Cell(int(m[1]), None, int(m[2]), b"")
    return None


_INLINE = b'{"$v":'
"""What an element of a list begins with that stands in the event itself. It can't occur otherwise, as a reference can't."""
_BLOCK = 1 << 20


def is_inline(path: str | os.PathLike[str]) -> bool:
    """Whether events of a stream hold what was said themselves (``content="inline"``), as far as lists of messages show it. A file
    that can't be read shows nothing.
    """
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as f:
        kept = b""
        while block := f.read(_BLOCK):
            block = kept + block
            if _INLINE in block:
                return True
            kept = block[-len(_INLINE) :]
    return False
