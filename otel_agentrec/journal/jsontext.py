"""JSON text from outside, read without loss and without limits that an input could hit.

The standard parser rounds nothing but has three ways to fail on valid text: nesting beyond the interpreter's recursion
limit, integers of more than 4300 digits, and numbers beyond a double, which it turns into infinity. Here such numbers stay
text, and what is nested deeper than :data:`MAX_DEPTH` stays text too.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["MAX_DEPTH", "parse", "parse_members"]

Json = Any
MAX_DEPTH = 256

_SPACE = re.compile(r"[ \t\n\r]*")
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def parse(text: str) -> Json:
    """The value of a JSON text. The last of two equal keys counts; NaN and Infinity are read as Python's json does.

    Raises:
        ValueError: the text is no JSON.
    """
    try:
        return _PARSER.decode(text)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError):  # an integer with thousands of digits, or deep nesting
        return _Deep(text).parse()


def parse_members(text: str) -> tuple[dict[str, Json], dict[str, tuple[int, int]]]:
    """As :func:`parse` for an object, and where the text of each value begins and ends.

    Raises:
        ValueError: the text is no JSON object, or one of those few that only :func:`parse` can read.
    """
    values: dict[str, Json] = {}
    places: dict[str, tuple[int, int]] = {}
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise ValueError("no object")
    at = _skip(text, at + 1)
    more = text[at : at + 1] != "}"
    while more:
        key, at = _PARSER.raw_decode(text, at)
        at = _skip(text, at)
        if not isinstance(key, str) or text[at : at + 1] != ":":
            raise ValueError(f"no key and value before {at}")
        start = _skip(text, at + 1)
        try:
            values[key], end = _PARSER.raw_decode(text, start)
        except RecursionError:
            raise ValueError("nested deeply") from None
        places[key] = start, end
        at = _skip(text, end)
        more = text[at : at + 1] == ","
        at = _skip(text, at + 1) if more else at
    if text[at : at + 1] != "}" or _skip(text, at + 1) != len(text):
        raise ValueError(f"no end of the object at {at}")
    return values, places


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _number(text: str) -> float | str:
    value = float(text)
    if value in _INFINITE or (value == 0 and any(c in "123456789" for c in re.split("[eE]", text, maxsplit=1)[0])):
        return text
    return value


def _integer(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


_INFINITE = (float("inf"), float("-inf"))
_PARSER = json.JSONDecoder(parse_float=_number, strict=False)
_scan = json.JSONDecoder(parse_float=_number, parse_int=_integer, strict=False).raw_decode


class _Deep:
    """A parser with a stack of its own, for the rare text that is nested too deep for the standard one."""

    def __init__(self, text: str) -> None:
        self.text = text

    def parse(self) -> Json:
        text, at = self.text, self._skip(0)
        root: list[Json] = []
        stack: list[tuple[Any, str]] = []  # open containers, each with the bracket that closes it
        into: Any = root
        key: str | None = None
        while True:
            char = text[at : at + 1]
            if char in ("{", "["):
                if len(stack) >= MAX_DEPTH:
                    end = self._end_of(at)
                    self._put(into, key, text[at:end])
                    at = end
                else:
                    made: Any = {} if char == "{" else []
                    self._put(into, key, made)
                    stack.append((into, "}" if char == "{" else "]"))
                    into, at = made, self._skip(at + 1)
                    if text[at : at + 1] != stack[-1][1]:
                        key, at = self._key(into, at)
                        continue
            else:
                value, at = _scan(text, at)
                self._put(into, key, value)
            while stack:
                at = self._skip(at)
                char = text[at : at + 1]
                if char == stack[-1][1]:
                    into, _ = stack.pop()
                    at += 1
                elif char == ",":
                    key, at = self._key(into, self._skip(at + 1))
                    break
                else:
                    raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            else:
                if self._skip(at) != len(text):
                    raise json.JSONDecodeError("Extra data", text, at)
                return root[0]

    def _key(self, into: Any, at: int) -> tuple[str | None, int]:
        """The next key with the offset of its value, when an object is open."""
        if isinstance(into, list):
            return None, at
        if self.text[at : at + 1] != '"':
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", self.text, at)
        key, at = _scan(self.text, at)
        at = self._skip(at)
        if self.text[at : at + 1] != ":":
            raise json.JSONDecodeError("Expecting ':' delimiter", self.text, at)
        return key, self._skip(at + 1)

    def _put(self, into: Any, key: str | None, value: Json) -> None:
        if isinstance(into, list):
            into.append(value)
        else:
            into[key] = value

    def _end_of(self, at: int) -> int:
        """Where the container that opens at ``at`` ends."""
        depth = 0
        for token in _BRACKETS.finditer(self.text, at):
            char = token.group()
            if char in "[{":
                depth += 1
            elif char in "]}":
                depth -= 1
                if depth == 0:
                    return token.end()
        raise json.JSONDecodeError("Unterminated value", self.text, at)

    def _skip(self, at: int) -> int:
        return _skip(self.text, at)
