"""Is a recorded value still what the program said? Only what is may ever be handed out as an answer."""

from __future__ import annotations

from typing import Any

from otel_agentrec.redaction import holds_marker

__all__ = ["lost_in"]

Json = Any
_LOST = {"$cut": "cut", "$erased": "erased", "$missing": "missing", "$off": "not recorded", "$c": "missing"}


def lost_in(value: Json) -> str | None:
    """The first thing in a value that was changed: ``cut``, ``erased``, ``missing``, ``not recorded``, ``redacted``; or None.

    A value that only looks so counts too: it costs one real call instead of a wrong answer.
    """
    todo = [value]
    while todo:
        held = todo.pop()
        if isinstance(held, str):
            if holds_marker(held):
                return "redacted"
        elif isinstance(held, dict):
            if len(held) <= 2:
                for key in held:
                    if key in _LOST:
                        return _LOST[key]
            todo.extend(held.keys())
            todo.extend(held.values())
        elif isinstance(held, (list, tuple)):
            todo.extend(held)
    return None
