"""Python's ``repr`` text, as some frameworks put it where JSON should be: ``ChatMessage(role=<Role.USER: 'user'>, …)``.

Read without running anything: literals, calls of constructors and members of enums. A constructor's keyword arguments
become a dict (positional ones stand under ``args``), an enum member its value; any other ``<…>`` or name stays text.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["parse"]

Json = Any
MAX_DEPTH = 60

_SPACE = re.compile(r"\s*")
_STRING = re.compile(
    r"""([bBrRuU]{0,2})(?:'([^'\\]*(?:\\.[^'\\]*)*)'|"([^"\\]*(?:\\.[^"\\]*)*)")""",
    re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:\d+(\.\d*)?([eE][+-]?\d+)?|inf)(?![\w.])")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_KEYWORD = re.compile(r"([A-Za-z_]\w*)=")
_MEMBER = re.compile(r"<[A-Za-z_][\w.]*: ")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_CONSTANTS: dict[str, Json] = {"None": None, "True": True, "False": False}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def parse(text: str) -> Json:
    """The value of repr text.

    Raises:
        ValueError: the text is no repr, or was cut, or is nested too deep.
    """
    reader = _Reader(text)
    try:
        value = reader.value(0)
    except RecursionError:
        raise ValueError("nested too deep") from None
    reader.skip()
    if reader.at != len(text):
        raise ValueError(f"more text after the value, at {reader.at}")
    return value


class _Reader:
    """Reads a text from ``at`` on; every method leaves ``at`` behind what it read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def value(self, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise ValueError("nested too deep")
        self.skip()
        string = self._match(_STRING)
        if string:
            return _string(string)
        char = self.text[self.at : self.at + 1]
        if char in _CLOSING:
            return self._container(char, depth)
        if char == "<":
            return self._angle(depth)
        number = self._match(_NUMBER)
        if number:
            return _number(number)
        name = self._match(_NAME)
        if name is None:
            raise ValueError(f"no value at {self.at}")
        if self.text[self.at : self.at + 1] == "(":
            return self._call(depth)
        return _CONSTANTS.get(name.group(), name.group())

    def skip(self) -> None:
        self._match(_SPACE)

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def _next(self, char: str) -> bool:
        """Read ``char`` if it comes next."""
        self.skip()
        found = self.text.startswith(char, self.at)
        self.at += found
        return found

    def _more(self, closing: str, first: bool) -> bool:
        """Whether another element comes before the closing bracket; reads the comma before it, or the bracket."""
        if self._next(closing):
            return False
        if not first:
            if not self._next(","):
                raise ValueError(f"no comma at {self.at}")
            return not self._next(closing)
        return True

    def _container(self, opening: str, depth: int) -> Json:
        """A list, tuple or set as a list; a dict."""
        self.at += 1
        items: list[Json] = []
        pairs: dict[str, Json] = {}
        while self._more(_CLOSING[opening], not items and not pairs):
            item = self.value(depth + 1)
            if opening == "{" and self._next(":"):
                pairs[item if isinstance(item, str) else str(item)] = self.value(depth + 1)
            else:
                items.append(item)
        return pairs if pairs or (opening == "{" and not items) else items

    def _call(self, depth: int) -> dict[str, Json]:
        self.at += 1
        args: list[Json] = []
        fields: dict[str, Json] = {}
        while self._more(")", not args and not fields):
            self.skip()
            keyword = self._match(_KEYWORD)
            value = self.value(depth + 1)
            if keyword:
                fields[keyword.group(1)] = value
            else:
                args.append(value)
        return {"args": args, **fields} if args else fields

    def _angle(self, depth: int) -> Json:
        """``<Role.USER: 'user'>`` is its value, ``<function f at 0x7f>`` its text."""
        start = self.at
        if self._match(_MEMBER):
            value = self.value(depth + 1)
            if self._next(">"):
                return value
        open_brackets = 0
        for at in range(start, len(self.text)):
            open_brackets += {"<": 1, ">": -1}.get(self.text[at], 0)
            if not open_brackets:
                self.at = at + 1
                return self.text[start : self.at]
        raise ValueError(f"no end of the bracket at {start}")


def _string(found: re.Match[str]) -> Json:
    prefix = found.group(1).lower()
    body = found.group(2) if found.group(2) is not None else found.group(3)
    told = body if "r" in prefix else _ESCAPE.sub(_unescaped, body)
    return told.encode("latin-1", "replace") if "b" in prefix else told


def _unescaped(found: re.Match[str]) -> str:
    code = found.group(1)
    if len(code) == 1:
        return _ESCAPED.get(code, found.group())
    number = int(code[1:], 16)
    return chr(number) if number <= 0x10FFFF else found.group()


def _number(found: re.Match[str]) -> Json:
    """Numbers that no double can hold stay text."""
    if found.group(1) is None and found.group(2) is None and not found.group().endswith("inf"):
        return int(found.group())
    value = float(found.group())
    return value if value - value == 0 else found.group()
