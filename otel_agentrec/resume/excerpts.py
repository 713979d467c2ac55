"""Two values as short texts, cut to where they first differ: a change far into a long prompt is still seen."""

from __future__ import annotations

from typing import Any

from otel_agentrec.nodes.exactjson import canonical_exact
from otel_agentrec.resume.jsondiff import ABSENT

__all__ = ["excerpts", "shown"]

Json = Any
_SHOWN = 160
"""Characters of a value that are shown."""
_BEFORE = 50
"""Of them, those before the first difference."""


def shown(value: Json) -> str:
    """A value as text."""
    if value is ABSENT:
        return "(absent)"
    return canonical_exact(value).decode("utf-8", "replace")


def excerpts(a: str, b: str) -> tuple[str, str]:
    """Two texts, both cut to where they first differ."""
    if max(len(a), len(b)) <= _SHOWN:
        return a, b
    at = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, at - _BEFORE)
    while 0 < start < at and not a[start - 1].isspace() and at - start < _BEFORE + 15:
        start -= 1  # not in the middle of a word

    def cut(text: str) -> str:
        part = text[start : start + _SHOWN]
        return ("…" if start else "") + part + ("…" if start + _SHOWN < len(text) else "")

    return cut(a), cut(b)
