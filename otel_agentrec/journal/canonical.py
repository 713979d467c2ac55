"""Canonical bytes: what is hashed, and what stands on disk.

``normalise`` makes a JSON value of any Python object, ``canonical`` the RFC 8785 bytes of that, ``canonical_any`` does both
at once; ``denormalise`` and ``restore`` read a normal form back.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from otel_agentrec.journal.jcs import MAX_INT, is_plain, spell, spell_each_fast, spell_fast
from otel_agentrec.journal.normal import MAX_BYTES, MAX_DEPTH, denormalise, normalise, restore

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "canonical",
    "canonical_any",
    "canonical_each",
    "denormalise",
    "fast_path_taken",
    "from_canonical",
    "normal_form",
    "normalise",
    "quoted",
    "restore",
    "spell_plain",
]

Json = Any
_ORJSON_DEPTH = 250
_ANY = (1 << 30) - 1
"""A gigabyte: no normal form is larger. (Python is slower from 2^30 on.)"""


def canonical(value: Json) -> bytes:
    """The RFC 8785 bytes of a JSON value: a normal form, with the journal's own ``$`` keys where it put some in.

    Raises:
        ValueError: it is no normal form: NaN, an integer beyond ±(2^53−1), an object that is no JSON, a cycle.
    """
    fast = spell_fast(value, _ORJSON_DEPTH, _ANY, dollars=True)
    return b"".join(spell(value)) if fast is None else fast


def from_canonical(data: bytes) -> Json:
    """The normal form whose canonical bytes these are."""
    return json.loads(data, parse_int=_whole)


def _whole(digits: str) -> int | float:
    """A whole number of canonical JSON: beyond ±(2^53−1) it was a double, since integers are not written so there."""
    value = int(digits)
    return value if -MAX_INT <= value <= MAX_INT else float(value)


def canonical_any(value: object, *, cell: bool = False, signed_zero: bool = True) -> bytes:
    """``canonical(normalise(value))`` of any Python object, in one walk when the value is plain JSON already.

    Never raises. No other thread may change the value meanwhile.

    Args:
        cell, signed_zero: as for :func:`normalise`.
    """
    fast = spell_fast(value, MAX_DEPTH, MAX_BYTES, dollars=False)
    if fast is not None and len(fast) <= MAX_BYTES:
        return fast
    return canonical(normalise(value, cell=cell, signed_zero=signed_zero))


def canonical_each(values: list[Any]) -> list[bytes]:
    """``[canonical_any(v, cell=True) for v in values]``, with one walk over all of them when all are plain."""
    fast = spell_each_fast(values, MAX_DEPTH, MAX_BYTES)
    return [canonical_any(value, cell=True) for value in values] if fast is None else fast


def normal_form(value: Any) -> tuple[Json, bool]:
    """``(normalise(value), False)``, or ``(value, True)`` when it is plain: nothing is copied then.

    What is plain may get further plain members, with ``$`` keys of the journal's own, and be written by :func:`spell_plain`.
    """
    try:
        if is_plain(value, MAX_DEPTH, MAX_BYTES, False):
            return value, True
    except (TypeError, RuntimeError, MemoryError):
        pass
    return normalise(value), False


def spell_plain(value: Json) -> bytes | None:
    """:func:`canonical` of what :func:`normal_form` found plain, without a second look; None at a lone surrogate."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return None


def quoted(text: str) -> bytes:
    """:func:`canonical_any` of a string."""
    if type(text) is str:
        try:
            return orjson.dumps(text)
        except TypeError:  # a lone surrogate
            pass
    return canonical_any(text)


def fast_path_taken(value: Json) -> bool:
    """Whether :func:`canonical` writes this normal form with orjson."""
    return spell_fast(value, _ORJSON_DEPTH, _ANY, dollars=True) is not None
