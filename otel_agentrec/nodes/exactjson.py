"""JSON text read so exactly that different texts never become one key.

Python's parser makes infinity of ``1e400`` and refuses integers of thousands of digits; here such numbers keep their
digits, as bytes, which no JSON text can hold otherwise. What is no JSON at all stays as it is, as bytes, too.
"""

from __future__ import annotations

import json
import re
from typing import Any

from otel_agentrec.journal.canonical import canonical, canonical_any, normalise

__all__ = ["NoKey", "canonical_exact", "read_text"]

Json = Any
_DEPTH = 20_000
_TEXT_DEPTH = 200
"""The deepest JSON text that is parsed; the same everywhere, however much of Python's stack is taken already."""
_BYTES = 1 << 30
_CUT = b'{"$cut":'
"""Where a value was cut; in a string its quotes are escaped, and a user's own key has one more ``$``."""
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
"""Brackets, and whole strings, so that what stands in them is passed over."""
_INFINITE = (float("inf"), float("-inf"))


class NoKey(ValueError):
    """A value that can't be written out whole (cyclic, a gigabyte): it has no key, so nothing is found for it."""


def read_text(text: str | bytes) -> Json:
    """The value of a JSON text; of what is no JSON, or nested more than 200 deep, the text itself, as bytes.

    The last of two equal keys counts, as everywhere.

    Raises:
        NoKey: so much of Python's stack is taken that it can't be read.
    """
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    try:
        value = _DECODER.decode(text if isinstance(text, str) else raw.decode())
    except ValueError:
        return b"text\0" + raw
    except RecursionError:
        if _is_deep(raw.decode("utf-8", "surrogatepass")):
            return b"text\0" + raw
        raise NoKey("a JSON text could not be read: Python's stack is full") from None
    return b"text\0" + raw if _holds_deep(value) else value


def canonical_exact(value: object) -> bytes:
    """The canonical bytes of a whole value: nothing is cut for its size or depth.

    Raises:
        NoKey: it can't be written out whole.
    """
    data = canonical_any(value)
    if _CUT in data:
        data = canonical(normalise(value, max_depth=_DEPTH, max_bytes=_BYTES))
        if _CUT in data:
            raise NoKey(f"a value of type {type(value).__name__} is cyclic, or too large to make a key of")
    return data


def _holds_deep(value: Json) -> bool:
    """Whether a parsed value is nested deeper than what counts as a value."""
    level = [value]
    for _ in range(_TEXT_DEPTH):
        level = [
            x
            for held in level
            for x in (held.values() if type(held) is dict else held if type(held) is list else ())
            if type(x) is dict or type(x) is list
        ]
        if not level:
            return False
    return True


def _is_deep(text: str) -> bool:
    """The same of a text that could not be parsed for its depth."""
    depth = 0
    for token in _BRACKETS.finditer(text):
        char = token[0]
        depth += (char in "[{") - (char in "]}")
        if depth > _TEXT_DEPTH:
            return True
    return False


def _float(text: str) -> float | bytes:
    value = float(text)
    if value in _INFINITE or (value == 0 and any(c in "123456789" for c in text.lower().partition("e")[0])):
        return b"number\0" + text.encode()
    return value


def _int(text: str) -> int | bytes:
    try:
        return int(text)
    except ValueError:  # more digits than Python turns into an integer
        return b"number\0" + text.encode()


_DECODER = json.JSONDecoder(parse_float=_float, parse_int=_int, strict=False)
