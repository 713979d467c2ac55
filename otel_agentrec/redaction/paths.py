"""JSON paths that name what is to be withheld: ``$.facts.arguments.ssn``, ``$.facts.messages[*].parts[*].content``, ``$..iban``.

A path starts at the payload of an event. ``..name`` is that name at any depth, ``*`` any name, ``[*]`` every element of a list
(single elements have no number here: lists are redacted element by element). JSON that stands in a string is gone into.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from otel_agentrec.errors import ConfigurationError

__all__ = ["ANY", "Paths"]

Json = Any
ANY = "*"
_STEP = re.compile(
    r"(?P<deep>\.\.)?(?:\.?(?P<name>[\w$-]+)|\[(?P<any>\*)\]|\.?(?P<star>\*)|\[(?P<quote>['\"])(?P<quoted>[^'\"]+)(?P=quote)\])"
)


class _Step(NamedTuple):
    name: str
    is_deep: bool


class Paths:
    """Withholds what stands at any of the paths.

    Args:
        make: what stands in its place, from the text of what was there.

    Raises:
        ConfigurationError: a path can't be read.
    """

    name = "path"

    def __init__(self, paths: Sequence[str], make: Callable[[str], Json]) -> None:
        self._paths = [_parsed(path) for path in paths]
        self._make = make

    def __call__(self, value: Json, at: tuple[str, ...] = ()) -> Json:
        """The value that stands at the place ``at`` of a payload, without what the paths name in it."""
        states = {(p, 0) for p in range(len(self._paths))}
        for name in at:
            states = self._after(states, name)
            if self._is_named(states):
                return self._withheld(value)
        return self._walk(value, states)

    def _walk(self, value: Json, states: set[tuple[int, int]]) -> Json:
        if not states:
            return value
        if isinstance(value, dict):
            made = {key: self._member(held, self._after(states, str(key))) for key, held in value.items()}
            return value if all(made[key] is value[key] for key in value) else made
        if isinstance(value, (list, tuple)):
            inside = self._after(states, ANY)
            items = [self._member(held, inside) for held in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            return self._in_text(value, states)
        return value

    def _member(self, value: Json, states: set[tuple[int, int]]) -> Json:
        return self._withheld(value) if self._is_named(states) else self._walk(value, states)

    def _in_text(self, text: str, states: set[tuple[int, int]]) -> str:
        try:
            held = json.loads(text)
        except ValueError:
            return text
        new = self._walk(held, states)
        return text if new is held else json.dumps(new, ensure_ascii=text.isascii())

    def _after(self, states: set[tuple[int, int]], name: str) -> set[tuple[int, int]]:
        """The states after one more key (``*``: an element of a list)."""
        out = set()
        for path, at in states:
            steps = self._paths[path]
            if at == len(steps):
                continue
            if steps[at].is_deep:
                out.add((path, at))
            if steps[at].name in (name, ANY):
                out.add((path, at + 1))
        return out

    def _is_named(self, states: set[tuple[int, int]]) -> bool:
        return any(at == len(self._paths[path]) for path, at in states)

    def _withheld(self, value: Json) -> Json:
        return (
            value if value is None else self._make(value if isinstance(value, str) else json.dumps(value, default=str))
        )


def _parsed(path: str) -> list[_Step]:
    steps: list[_Step] = []
    at = 1
    while path[:1] == "$" and at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            break
        name = step["name"] or step["quoted"] or ANY
        steps.append(_Step(name, step["deep"] is not None))
        at = step.end()
    if not steps or at < len(path):
        raise ConfigurationError(
            f"{path!r} is no path to redact",
            "write $.name.name, $..name, [*] for the elements of a list, * for any name",
        )
    return steps
