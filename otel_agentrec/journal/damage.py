"""What exactly is wrong with a line that does not fit the chain. Only called after a check has failed, so it may be slow.

It reads the whole file a second time at most, one line at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import orjson

from otel_agentrec.journal.canonical import canonical
from otel_agentrec.journal.chain import split
from otel_agentrec.journal.lines import lines

__all__ = ["Fault", "diagnose"]

_PREFIX = b'{"event":'


@dataclass(frozen=True, slots=True)
class Fault:
    """The first thing in a file that is not as it was written.

    Args:
        kind: one of the kinds of docs/format.md, e.g. ``hash_mismatch``.
        index: 0-based line of the file.
        offset: byte offset at which that line begins.
        seq: sequence number of the event concerned, where known.
        in_content: the file is the content file.
        salvageable: how many later lines are whole in themselves.
    """

    kind: str
    index: int
    offset: int
    hint: str
    seq: int | None = None
    expected: str | None = None
    actual: str | None = None
    in_content: bool = False
    salvageable: int = 0


@dataclass(slots=True)
class _Surroundings:
    """What the other lines say about a broken one."""

    twin: int | None = None
    """Earlier line with the same hash."""
    successor: int | None = None
    """Later line that continues the chain where it broke."""
    named_later: bool = False
    """A later line has the hash that the broken line names as its predecessor."""
    next_prev: str | None = None
    whole: int = 0
    reformatted: int = 0


def diagnose(file: BinaryIO, index: int, offset: int, line: bytes, prev: str, before: bytes) -> Fault:
    """Name the fault of the first line that failed.

    Args:
        file: the stream's file, seekable.
        index: number of the line; offset: where it begins.
        line: its bytes, newline included if there is one.
        prev: hash of the line before it (64 zeros for the first).
        before: E of the line before it, or empty.
    """
    body = line[:-1] if line.endswith(b"\n") else line
    parts = split(body)
    own = _hash(parts[2], parts[0]) if parts else None
    around = _look_around(file, index, offset, len(line), prev, parts)
    whole = around.whole
    fused = _fused(body)
    if fused:
        return Fault("frame", index, offset, fused, salvageable=whole + 1)
    if parts is None:
        return _unframed(index, offset, body, prev, around)
    e, stated, named = parts
    seq = _seq(e)
    actual = _hash(prev, e)
    if index == 0 and named != prev and own == stated:
        hint = "the first line names a predecessor: the beginning of the stream is gone" + _jump(seq, None)
        return Fault("genesis_missing", index, offset, hint, seq, prev, named, salvageable=whole)
    if named != prev and own == stated:
        hint = _order_hint(index, around, seq, _seq(before) if before else -1)
        return Fault("prev_hash_mismatch", index, offset, hint, seq, prev, named, salvageable=whole)
    if named != prev and actual == stated:
        hint = "only the prevHash field was changed: event and hash fit the line before"
        return Fault("prev_hash_mismatch", index, offset, hint, seq, prev, named, salvageable=whole)
    intact = _intact(index, offset, body, prev, around)
    if intact is not None:
        return intact
    if around.next_prev is not None and around.next_prev == actual:
        hint = "only the hash field was changed: the next line fits the event"
    else:
        hint = "the event was changed after it was sealed"
    return Fault("hash_mismatch", index, offset, hint, seq, stated, actual, salvageable=whole)


def _unframed(index: int, offset: int, body: bytes, prev: str, around: _Surroundings) -> Fault:
    intact = _intact(index, offset, body, prev, around)
    if intact is not None:
        return intact
    hint = "the line is not framed as a sealed event"
    if not around.whole:
        hint += ", nor is any line after it"
    return Fault("frame", index, offset, hint, salvageable=around.whole)


def _fused(body: bytes) -> str:
    """What to say of a line that ends with another whole line; empty when it does not."""
    at = body.rfind(_PREFIX, 1)
    tail = split(body[at:]) if at > 0 else None
    if tail is None or _hash(tail[2], tail[0]) != tail[1]:
        return ""
    if split(body[:at]) or split(body[: at - 1]):
        return "two lines stand on one: the newline between them is gone"
    return "a torn line and a whole one stand on one line; the whole one and what follows can be read"


def _intact(index: int, offset: int, body: bytes, prev: str, around: _Surroundings) -> Fault | None:
    """The fault of a line that says the same as the sealed one in other bytes; None when it does not."""
    found = _reformatted(body)
    if found is None or found[0] is None or found[2] != prev or _hash(prev, found[0]) != found[1]:
        return None
    stated, extra = found[1], found[3]
    parts = split(body)
    if extra:
        hint = f"fields that no hash covers were added: {', '.join(extra)[:200]}; the event is intact"
    elif split(body):
        hint = (
            "the event was re-written (whitespace, doubled keys, key order or number spelling), its content is intact"
        )
    else:
        hint = (
            f"re-formatted (as jq -c or an editor does), content intact, and so are {around.reformatted} of the lines after "
            "it: verify the original file"
        )
    actual = _hash(prev, parts[0]) if parts else None
    return Fault("noncanonical_bytes", index, offset, hint, _seq(found[0]), stated, actual, salvageable=around.whole)


def _order_hint(index: int, around: _Surroundings, seq: int | None, before: int | None) -> str:
    if around.twin is not None:
        return f"duplicate of {around.twin}"
    if around.successor is not None and around.named_later:
        return f"swapped with {around.successor}"
    if around.successor is not None:
        between = around.successor - index
        return f"{between} line{'s' * (between > 1)} inserted: line {around.successor} continues the chain"
    if seq is not None and before is not None and seq > before + 1:
        return _missing(seq - before - 1)
    return "it follows another line than the one before it, which was put in or sealed anew"


def _jump(seq: int | None, before: int | None) -> str:
    start = -1 if before is None else before
    return f" ({_missing(seq - start - 1)})" if seq is not None and seq > start + 1 else ""


def _missing(count: int) -> str:
    return f"{count} record{'s' * (count > 1)} missing"


def _look_around(
    file: BinaryIO, index: int, offset: int, length: int, prev: str, parts: tuple[bytes, str, str] | None
) -> _Surroundings:
    """Read every line before the broken one (for a twin) and after it (for what is whole)."""
    around = _Surroundings()
    if parts is not None:
        for i, (_, line) in enumerate(_between(file, 0, offset)):
            if (other := split(line[:-1])) and other[1] == parts[1]:
                around.twin = i
                break
    for i, (_, line) in enumerate(_between(file, offset + length, None), index + 1):
        other = split(line[:-1]) if line.endswith(b"\n") else None
        if other is None:
            found = _reformatted(line)
            if found and found[0] is not None and _hash(found[2], found[0]) == found[1]:
                around.reformatted += 1
            continue
        e, stated, named = other
        if i == index + 1:
            around.next_prev = named
        if around.successor is None and named == prev:
            around.successor = i
        if parts is not None and stated == parts[2]:
            around.named_later = True
        around.whole += _hash(named, e) == stated
    return around


def _between(file: BinaryIO, start: int, stop: int | None) -> Iterator[tuple[int, bytes]]:
    file.seek(start)
    yield from lines(file, start, stop)


def _reformatted(body: bytes) -> tuple[bytes | None, str, str, list[str]] | None:
    """(canonical event, hash, prevHash, other keys) of a line that is the right JSON in the wrong bytes."""
    try:
        value = orjson.loads(body)
    except ValueError:
        return None
    if not isinstance(value, dict) or "event" not in value:
        return None
    stated, named = value.get("hash"), value.get("prevHash")
    if not isinstance(stated, str) or not isinstance(named, str):
        return None
    extra = [repr(key) for key in value if key not in ("event", "hash", "prevHash")]
    try:
        return canonical(value["event"]), stated, named, extra
    except (ValueError, TypeError, RecursionError):
        return None, stated, named, extra


def _seq(e: bytes) -> int | None:
    try:
        seq = orjson.loads(e).get("seq")
    except (ValueError, AttributeError):
        return None
    return seq if type(seq) is int else None


def _hash(prev: str, e: bytes) -> str:
    return hashlib.sha256(prev.encode("utf-8", "surrogatepass") + b"|" + e).hexdigest()
