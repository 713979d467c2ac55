"""Canonical bytes: the bytes of RFC 8785 for any JSON value, fast, and for any Python object at all.

``canonical`` takes a normal form (see :mod:`otel_agentrec.journal.normal`), ``canonical_any`` takes anything. orjson is some
fifty times faster than RFC 8785 in Python, but does not write the same bytes for every value: it is used where
:func:`_is_plain` proves that it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from otel_agentrec.journal.jcs import spell
from otel_agentrec.journal.normal import BYTES_PER_MEMBER, MAX_BYTES, MAX_DEPTH, denormalise, normalise, restore

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "canonical",
    "canonical_any",
    "denormalise",
    "fast_path_taken",
    "normalise",
    "restore",
]

Json = Any

_MAX_INT = 2**53 - 1
_ORJSON_DEPTH = 250
"""orjson refuses more than 254 levels."""
_ANY = 1 << 62


def canonical(value: Json) -> bytes:
    """The RFC 8785 bytes of a JSON value: a normal form, with the journal's own ``$`` keys where it put some in.

    Raises:
        ValueError: it is no normal form: NaN, an integer beyond ±(2^53−1), an object that is no JSON, a cycle.
    """
    fast = _fast(value, _ORJSON_DEPTH, _ANY, dollars=True)
    return b"".join(spell(value)) if fast is None else fast


def canonical_any(value: object, *, cell: bool = False, signed_zero: bool = True) -> bytes:
    """``canonical(normalise(value))`` of any Python object, with one walk when the value is plain JSON already.

    Never raises. No other thread may change the value meanwhile.
    """
    fast = _fast(value, MAX_DEPTH, MAX_BYTES, dollars=False)
    if fast is not None and len(fast) <= MAX_BYTES:
        return fast
    return canonical(normalise(value, cell=cell, signed_zero=signed_zero))


def fast_path_taken(value: Json) -> bool:
    """Whether orjson writes this normal form in :func:`canonical`."""
    return _fast(value, _ORJSON_DEPTH, _ANY, dollars=True) is not None


def _fast(value: object, depth: int, room: int, *, dollars: bool) -> bytes | None:
    """The canonical bytes as orjson writes them; None where it is not proven that RFC 8785 wants the same ones."""
    try:
        if _is_plain(value, depth, room, dollars):
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, RuntimeError):  # a key that is no string, a lone surrogate; a dict that grew under the walk
        pass
    return None


def _is_plain(value: object, depth: int, room: int, dollars: bool) -> bool:
    r"""Whether sorted orjson writes the RFC 8785 bytes (or raises TypeError) and normalising would change nothing.

    The proof, by kind of value. Only the exact types of JSON, and tuple, pass: no subclass is asked for its own idea.
    Strings: both escape ``"``, ``\`` and U+0000 to U+001F, alike, and nothing else; orjson raises at a lone surrogate.
    Keys: by code point (orjson) and by UTF-16 unit (RFC 8785) is the same order below U+D800. Integers: the same digits
    within ±(2^53−1). Floats: both print the shortest digits that read back, and lay them out alike from 1e-5 upwards
    where there is a fraction (so below 2^53); whole, tiny and huge ones differ, or did in some version of orjson.

    Args:
        depth: levels of containers that may lie inside one another; a cycle ends here too.
        room: bytes the value may take, counted low.
        dollars: whether keys may hold a ``$``.
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
                    if not -_MAX_INT <= x <= _MAX_INT:
                        return False
                elif kind is float:
                    if not 1e-5 <= abs(x) <= _MAX_INT or x.is_integer():
                        return False
                elif x is not None and kind is not bool:
                    return False
            if room < 0:
                return False
        if not below:
            return True
        level = below
    return False
