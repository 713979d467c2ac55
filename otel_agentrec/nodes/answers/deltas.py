"""Pieces of an object that come one after the other -> the object."""

from __future__ import annotations

from typing import Any

__all__ = ["add_delta"]

Json = Any
_SAID_AGAIN = ("id", "type", "role", "name", "index", "object", "model")
"""Texts that some servers repeat in each piece: they name something and do not go on."""


def add_delta(into: dict[str, Json], piece: dict[str, Json]) -> None:
    """Add one piece in place: texts go on, lists whose elements have an ``index`` are added to by it, other lists grow."""
    for key, value in piece.items():
        if value is None:
            into.setdefault(key, None)
            continue
        known = into.get(key)
        if known is None:
            into[key] = _first(value)
        elif isinstance(known, str) and isinstance(value, str):
            if key not in _SAID_AGAIN:
                into[key] = known + value
            elif value:
                into[key] = value
        elif isinstance(known, dict) and isinstance(value, dict):
            add_delta(known, value)
        elif isinstance(known, list) and isinstance(value, list):
            _add_items(known, value)
        else:
            into[key] = value


def _first(value: Json) -> Json:
    """A copy that later pieces may be added to."""
    if isinstance(value, dict):
        made: dict[str, Json] = {}
        add_delta(made, value)
        return made
    if isinstance(value, list):
        items: list[Json] = []
        _add_items(items, value)
        return items
    return value


def _add_items(into: list[Json], items: list[Json]) -> None:
    for item in items:
        index = item.get("index") if isinstance(item, dict) else None
        known = next((k for k in into if isinstance(k, dict) and k.get("index") == index), None)
        if index is None or known is None:
            into.append(_first(item))
        else:
            add_delta(known, item)
