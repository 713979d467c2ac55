"""JSON as it stands in a text: where each of its parts begins and ends, so that it can be changed in place and what is not
redacted stays byte for byte.

Reads as far as the text is JSON and no further, so that a text that was cut off, or that only begins like JSON, keeps what
it has. Needs no recursion and looks at no byte twice.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

__all__ = ["OPENING", "JsonArray", "JsonLeaf", "JsonObject", "JsonRead", "Node", "read_json", "read_string"]

OPENING = re.compile(r"[{\[](?=[\s{\[]{0,256}\")")
"""Where JSON that can hold a name may begin in a text."""
MAX_DEPTH = 100
_SPACE = re.compile(r"[ \t\n\r]*")
_LITERAL = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null|NaN|-?Infinity")
_decode = json.JSONDecoder(strict=False).raw_decode


class JsonLeaf(NamedTuple):
    """A string, number or word at ``text[start:end]``. ``string`` is its value when it is a string."""

    start: int
    end: int
    string: str | None


class JsonObject:
    """Members in the order of the text; an object that was cut off may have a key more than values."""

    __slots__ = ("end", "keys", "spans", "start", "values")

    def __init__(self, start: int) -> None:
        self.start, self.end = start, -1
        self.keys: list[str] = []
        self.spans: list[tuple[int, int]] = []
        """Where each key stands, with its quotes."""
        self.values: list[Node] = []


class JsonArray:
    __slots__ = ("end", "start", "values")

    def __init__(self, start: int) -> None:
        self.start, self.end = start, -1
        self.values: list[Node] = []


Node = JsonLeaf | JsonObject | JsonArray


class JsonRead(NamedTuple):
    """``end``: how far the text is JSON. ``open``: the containers that were not closed there, outermost first."""

    node: JsonObject | JsonArray
    end: int
    open: list[JsonObject | JsonArray]


def read_json(text: str, start: int) -> JsonRead:
    """Read the object or array that opens at ``start``, as far as it is one."""
    root: JsonObject | JsonArray = JsonObject(start) if text[start] == "{" else JsonArray(start)
    stack = [root]
    at = start + 1
    expect_member = True  # after an opening bracket or a comma
    while True:
        at = _skip(text, at)
        sign = text[at : at + 1]
        into = stack[-1]
        if sign == ("}" if type(into) is JsonObject else "]"):
            at += 1
            into.end = at
            stack.pop()
            if not stack:
                return JsonRead(root, at, [])
            expect_member = False
            continue
        if not expect_member:
            if sign != ",":
                return JsonRead(root, at, stack)
            at, expect_member = at + 1, True
            continue
        if isinstance(into, JsonObject):
            if sign != '"':
                return JsonRead(root, at, stack)
            try:
                key, end = _decode(text, at)
            except ValueError:
                return JsonRead(root, at, stack)
            into.keys.append(key)
            into.spans.append((at, end))
            at = _skip(text, end)
            if text[at : at + 1] != ":":
                return JsonRead(root, at, stack)
            at = _skip(text, at + 1)
            sign = text[at : at + 1]
        if sign == "{" or sign == "[":
            if len(stack) >= MAX_DEPTH:
                return JsonRead(root, at, stack)
            made: JsonObject | JsonArray = JsonObject(at) if sign == "{" else JsonArray(at)
            into.values.append(made)
            stack.append(made)
            at += 1
            continue
        leaf = _leaf(text, at, sign)
        if leaf is None:
            return JsonRead(root, at, stack)
        into.values.append(leaf)
        at, expect_member = leaf.end, False


def read_string(text: str) -> str | None:
    """The value of a text that is a JSON string and nothing else."""
    try:
        value, end = _decode(text)
    except ValueError:
        return None
    return value if isinstance(value, str) and end == len(text) else None


def _leaf(text: str, at: int, sign: str) -> JsonLeaf | None:
    if sign == '"':
        try:
            string, end = _decode(text, at)
        except ValueError:
            return None
        return JsonLeaf(at, end, string)
    literal = _LITERAL.match(text, at)
    return JsonLeaf(at, literal.end(), None) if literal else None


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at
