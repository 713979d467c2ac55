"""RFC 8785 without shortcuts: any JSON value, however deep, one token at a time.

Numbers are laid out by the ``rfc8785`` package, strings are escaped by orjson (the same escapes; see
:func:`otel_agentrec.journal.canonical._is_plain`). An own loop, because a value may be nested deeper than Python can call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import rfc8785

__all__ = ["spell"]

Json = Any
_MAX_DEPTH = 100_000


def spell(value: Json) -> Iterator[bytes]:
    """The canonical bytes of a JSON value, in pieces.

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
            yield prefix + (_string(x) if kind is str else rfc8785.dumps(x))
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
        yield comma + _string(key) + b":", x[key]
        comma = b","


def _units(key: str) -> bytes:
    """The UTF-16 code units of a key: RFC 8785 orders by them."""
    if not isinstance(key, str):
        raise ValueError("object keys must be strings")
    return key.encode("utf-16-be", "surrogatepass")


def _string(x: str) -> bytes:
    try:
        return orjson.dumps(x)
    except TypeError as error:
        raise ValueError("a string with a lone surrogate is no JSON text") from error
