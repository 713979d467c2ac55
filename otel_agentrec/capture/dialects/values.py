"""Attribute values as what they mean: text, JSON, cut JSON."""

from __future__ import annotations

import re
from typing import Any

from otel_agentrec.journal.jsontext import parse

__all__ = ["loaded", "same", "spelled", "text", "texts", "was_cut"]

Json = Any

_BEGINS = re.compile(r"""\s*(?:\{\s*(?:["}]|$)|\[\s*(?:\{\s*(?:["}]|$)|"))""")
"""An object, or an array of objects or strings."""


def text(value: Any) -> str | None:
    """A non-empty string; numbers and booleans as their text."""
    if isinstance(value, str):
        return value or None
    return spelled(value) if isinstance(value, (int, float)) else None


def spelled(value: Any) -> str:
    """``str(value)`` of any JSON value. Python spells no whole number of more than 4,300 digits: such a one in hex."""
    try:
        return str(value)
    except (ValueError, RecursionError):
        return hex(value) if isinstance(value, int) else ""


def texts(value: Any) -> list[str]:
    """The non-empty texts of a list, or of the JSON text of one; any other value counts as a list of itself."""
    if isinstance(value, str):
        try:
            parsed = parse(value)
        except ValueError:
            parsed = value
        value = parsed if isinstance(parsed, list) else [value]
    if not isinstance(value, (list, tuple)):
        return []
    return [told for v in value if (told := text(v)) is not None]


def loaded(value: Any) -> Json:
    """The object or array that JSON text holds; anything else, also text that reads as a number or a string, as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return parse(value)
    except ValueError:
        return value


def was_cut(value: Any) -> bool:
    """Whether a string began as JSON and was cut by an attribute limit. Large ones are judged by their last character.

    A dict as Python prints it (``{'a': …``) is no JSON.
    """
    if not isinstance(value, str) or not _BEGINS.match(value):
        return False
    if len(value) > 1 << 16:
        return value.rstrip()[-1:] not in ("}", "]")
    try:
        parse(value)
    except ValueError:
        return True
    return False


def same(value: Any) -> Any:
    return value
