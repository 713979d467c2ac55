"""Content that stands in another stream of the recording: an event points at it instead of repeating it.

On disk ``{"$node": {"stream": …, "seq": …, "hash": …, "path": "$.payload.facts.messages[3].parts[0].content"}}`` in the
place of content. The path names a value in the resolved payload of that event: keys, an index, ``[2:]`` for the elements
from one on, ``[0,2]`` for some of them. So what was said is stored once, and erasing it there erases it here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

__all__ = ["Pointer", "Step", "keys_and_rest", "steps_of", "walk"]

Json = Any
Step = str | int | slice | list[int]
MARK = "$node"
_STEP = re.compile(r"\.([A-Za-z0-9_]+)|\[(\d{1,7})\]|\[(\d{1,7}):\]|\[(\d{1,7}(?:,\d{1,7})+)\]")
_MAX_PATH = 4096


@dataclass(frozen=True, slots=True)
class Pointer:
    """``hash``: of the line of event ``seq`` in ``stream``; ``path``: as above."""

    stream: str
    seq: int
    hash: str
    path: str

    def to_json(self) -> dict[str, Json]:
        return {MARK: {"stream": self.stream, "seq": self.seq, "hash": self.hash, "path": self.path}}

    @classmethod
    def from_json(cls, data: Json) -> Pointer | None:
        """The pointer that stands in an event; None where it is none that can be followed."""
        told = data.get(MARK) if isinstance(data, dict) else None
        if not isinstance(told, dict):
            return None
        stream, seq, digest, path = (told.get(key) for key in ("stream", "seq", "hash", "path"))
        if not (isinstance(stream, str) and isinstance(digest, str) and isinstance(path, str) and type(seq) is int):
            return None
        return cls(stream, seq, digest, path)


def steps_of(path: str) -> list[Step] | None:
    """The steps behind ``$.payload``; None for what is no path."""
    if not path.startswith("$.payload") or len(path) > _MAX_PATH:
        return None
    at, steps = len("$.payload"), list[Step]()
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return None
        key, index, start, some = found.groups()
        if key is not None:
            steps.append(key)
        elif index is not None:
            steps.append(int(index))
        elif start is not None:
            steps.append(slice(int(start), None))
        else:
            steps.append([int(n) for n in some.split(",")])
        at = found.end()
    return steps


def keys_and_rest(steps: list[Step]) -> tuple[str, list[Step]]:
    """The leading keys as the path of a content value (``$.payload.facts.messages``), and the steps behind them."""
    path, at = "$.payload", 0
    while at < len(steps) and isinstance(steps[at], str):
        path, at = f"{path}.{steps[at]}", at + 1
    return path, steps[at:]


def walk(value: Json, steps: list[Step]) -> Json:
    """What the steps lead to.

    Raises:
        LookupError, TypeError: they lead nowhere.
    """
    for step in steps:
        if isinstance(step, list):
            value = [value[n] for n in step]
        elif isinstance(step, str) and not isinstance(value, dict):
            raise TypeError("no object")
        elif not isinstance(step, str) and not isinstance(value, list):
            raise TypeError("no list")
        else:
            value = value[step]
    return value
