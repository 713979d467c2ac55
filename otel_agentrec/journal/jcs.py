"""RFC 8785, the JSON Canonicalization Scheme, twice: ``spell`` for every JSON value, ``spell_fast`` where orjson will do.

orjson is some fifty times faster than RFC 8785 in Python, but does not write the same bytes for every value. The fast one
is used where :func:`is_plain` proves that it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson
import rfc8785

__all__ = ["BYTES_PER_MEMBER", "MAX_INT", "is_plain", "spell", "spell_each_fast", "spell_fast"]

Json = Any

MAX_INT = 2**53 - 1
"""The largest integer that every reader of JSON numbers keeps apart from its neighbours."""
BYTES_PER_MEMBER = 16
"""What a member of a container counts against a limit in bytes. A list that is shared over and over unfolds to any number
of members; this bounds them."""
_MAX_DEPTH = 100_000


def spell_fast(value: object, depth: int, room: int, *, dollars: bool) -> bytes | None:
    """The RFC 8785 bytes as orjson writes them; None where it is not proven that they are.

    Args:
        depth: levels of containers that may lie inside one another, at most 250 (orjson's own limit is 254).
        room: bytes that the value may take, counted low.
        dollars: whether keys may hold a ``$``.
    """
    try:
        if is_plain(value, depth, room, dollars):
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (
        TypeError,
        RuntimeError,
        MemoryError,
    ):  # no string as key, a lone surrogate; a dict that grew under the walk
        pass
    return None


def spell_each_fast(values: list[Any], depth: int, room: int) -> list[bytes] | None:
    """:func:`spell_fast` of each value, when all of them together are plain and take less than ``room``."""
    try:
        if is_plain(values, depth + 1, room, False):
            return [orjson.dumps(value, option=orjson.OPT_SORT_KEYS) for value in values]
    except (TypeError, RuntimeError, MemoryError):
        pass
    return None


def is_plain(value: object, depth: int, room: int, dollars: bool) -> bool:
    r"""Whether sorted orjson writes the RFC 8785 bytes of this value, or else raises TypeError.

    The proof, by kind of value. Only the exact types of JSON, and tuple, pass: no subclass is asked for its own idea.
    Strings: both escape ``"``, ``\`` and U+0000 to U+001F, alike, and nothing else; orjson raises at a lone surrogate.
    Keys: by code point (orjson) and by UTF-16 unit (RFC 8785) is the same order below U+D800. Integers: the same digits
    within ±(2^53−1). Floats: both print the shortest digits that read back, and lay them out alike from 1e-5 upwards
    where there is a fraction (so below 2^53); whole, tiny and huge ones differ, or did in some version of orjson.
    """
    level: list[Any] = [(value,)]
    for _ in range(depth + 1):  # one for the tuple around the value
        below: list[Any] = []
        for box in level:
            room -= BYTES_PER_MEMBER * len(box)
            members: Iterable[Any] = box
            if type(box) is dict:
                keys = "".join(box)
                if not dollars and "$" in keys:
                    return False
                if not keys.isascii() and max(keys) >= "\ud800":
                    return False
                room -= len(keys)
                members = box.values()
            for x in members:
                kind = type(x)
                if kind is str:
                    room -= len(x)
                elif kind is dict or kind is list or kind is tuple:
                    below.append(x)
                elif kind is int:
                    if not -MAX_INT <= x <= MAX_INT:
                        return False
                elif kind is float:
                    if not 1e-5 <= abs(x) <= MAX_INT or x.is_integer():
                        return False
                elif x is not None and kind is not bool:
                    return False
            if room < 0:
                return False
        if not below:
            return True
        level = below
    return False


def spell(value: Json) -> Iterator[bytes]:
    """The RFC 8785 bytes of any JSON value, in pieces. Its own stack: a value may be nested deeper than Python can call.

    Raises:
        ValueError: NaN or an infinity, an integer beyond ±(2^53−1), a lone surrogate, an object that is no JSON, a cycle.
    """
    open_: list[tuple[Iterator[tuple[bytes, Json]], bytes]] = [(iter([(b"", value)]), b"")]
    while open_:
        members, close = open_[-1]
        for prefix, x in members:
            kind = type(x)
            if kind is dict:
                yield prefix + b"{"
                open_.append((_pairs(x), b"}"))
                break
            if kind is list or kind is tuple:
                yield prefix + b"["
                open_.append((_items(x), b"]"))
                break
            yield prefix + _leaf(x)
        else:
            yield close
            open_.pop()
        if len(open_) > _MAX_DEPTH:
            raise ValueError("the value contains itself, or is nested more than 100,000 deep")


def _items(x: list[Json] | tuple[Json, ...]) -> Iterator[tuple[bytes, Json]]:
    comma = b""
    for member in x:
        yield comma, member
        comma = b","


def _pairs(x: dict[str, Json]) -> Iterator[tuple[bytes, Json]]:
    comma = b""
    for key in sorted(x, key=_units):
        yield comma + _leaf(key) + b":", x[key]
        comma = b","


def _units(key: str) -> bytes:
    """The UTF-16 code units of a key: RFC 8785 orders by them."""
    if not isinstance(key, str):
        raise ValueError(f"a key of an object must be a string, not {type(key).__name__}")
    return key.encode("utf-16-be", "surrogatepass")


def _leaf(x: Json) -> bytes:
    kind = type(x)
    if kind is str or x is None or kind is bool or (kind is int and -MAX_INT <= x <= MAX_INT):
        try:
            return orjson.dumps(x)
        except TypeError as error:
            raise ValueError("a string with a lone surrogate is no JSON text") from error
    return rfc8785.dumps(x)  # floats; raises at what is no JSON
