"""Mutations of a recorded request: at every place in it other values and types, null and absent, another order, a blank more."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from typing import Any

from otel_agentrec.nodes.inert import path_text

Json = Any
Place = tuple[str | int, ...]


def mutations(body: dict[str, Json], kept: Collection[str]) -> Iterator[tuple[Place, Json]]:
    """(where it was changed, the changed request).

    Args:
        kept: members that stay as a whole because the SDK insists on them; what is inside them changes.
    """
    for at, value in _places(body):
        if not at or (len(at) == 1 and at[0] in kept):
            continue
        yield from ((at, _with(body, at, new)) for new in _news(value) if new != value or type(new) is not type(value))
        if not isinstance(at[-1], int):
            yield at, _with(body, at, None, gone=True)


def names_it(at: Place, path: str) -> bool:
    """Whether a divergence at ``path`` tells of the mutation at a place: there, or inside of it."""
    exact = path_text(at)
    return path == exact or path.startswith((f"{exact}.", f"{exact}["))


def _news(value: Json) -> list[Json]:
    if isinstance(value, str):
        changed = [f"{value} ", f" {value}", value.replace("  ", " "), value.swapcase(), f"{value}\u200b"]
        return [*changed, [value], None, 0]
    if isinstance(value, bool):
        return [not value, int(value), None, str(value)]
    if isinstance(value, (int, float)):
        return [value + 1, -value, str(value), None, value + 1e-9]
    if value is None:
        return ["", 0, False, []]
    if isinstance(value, list):
        return [value[::-1], value[:-1], [*value, value[0]], None, []]
    return [{**value, "more": None}, {**value, "more": 1}, None, [value]]


def _places(value: Json, at: Place = ()) -> Iterator[tuple[Place, Json]]:
    yield at, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _places(inner, (*at, key))


def _with(body: dict[str, Json], at: Place, new: Json, gone: bool = False) -> Json:
    body = copy.deepcopy(body)
    inside: Json = body
    for step in at[:-1]:
        inside = inside[step]
    if gone:
        del inside[at[-1]]
    else:
        inside[at[-1]] = new
    return body
