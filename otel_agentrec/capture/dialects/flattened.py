"""Flattened keys, ``llm.input_messages.0.message.role`` and the like, back to lists and objects."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

__all__ = ["drop", "take"]

Json = Any
MAX_DEPTH = 16
"""Levels of a key that are told apart; what lies deeper stays one name with dots in it."""

_LEAF = ""
"""Where a value stands whose key is also the beginning of other keys."""


def take(rest: MutableMapping[str, Any], prefix: str) -> list[Json] | None:
    """Move the list ``<prefix>.0…``, ``<prefix>.1…`` out of a span's attributes. None when there is none.

    Gaps in the numbering are closed: a limit on attributes may have thrown elements away. Other keys under the prefix stay.
    """
    keys, start = _keys(rest, prefix), len(prefix) + 1
    if not keys:
        return None
    tree: dict[str, Json] = {}
    for key in keys:
        _put(tree, key[start:].split(".", MAX_DEPTH), rest.pop(key))
    listed = _listed(tree)
    return listed if isinstance(listed, list) else None


def drop(rest: MutableMapping[str, Any], prefix: str) -> None:
    """Throw the list under ``prefix`` away: another attribute tells the same."""
    for key in _keys(rest, prefix):
        del rest[key]


def _keys(rest: MutableMapping[str, Any], prefix: str) -> list[str]:
    """The keys of list elements."""
    start = f"{prefix}."
    at = len(start)
    return [key for key in rest if key.startswith(start) and _is_index(key[at:].partition(".")[0])]


class _Node(dict[str, Any]):
    """An object made of keys, as against an object that was an attribute's value."""


def _put(at: dict[str, Json], path: list[str], value: Json) -> None:
    for name in path[:-1]:
        inner = at.get(name)
        if not isinstance(inner, _Node):
            inner = at[name] = _Node() if inner is None else _Node({_LEAF: inner})
        at = inner
    last = path[-1]
    if isinstance(at.get(last), _Node):
        at = at[last]
        last = _LEAF
    at[last] = value


def _listed(node: dict[str, Json]) -> Json:
    """Objects whose keys are all numbers become lists."""
    made = {key: _listed(value) if isinstance(value, _Node) else value for key, value in node.items()}
    if made and all(_is_index(key) for key in made):
        return [made[key] for key in sorted(made, key=int)]
    return made


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 9
