"""Where two JSON values differ: paths, and in what way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from otel_agentrec.nodes.exactjson import canonical_exact
from otel_agentrec.nodes.inert import path_text

__all__ = ["ABSENT", "Difference", "differences"]

Json = Any
Path = tuple[str | int, ...]


class _Absent:
    """A member that is not there, which is not the same as null."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where a request differs from the recorded one.

    ``kind``: ``value``, ``type``, ``null`` (null on one side, a value on the other), ``absent`` (the recorded one has it, the
    new one has not), ``added`` (the other way round) or ``order`` (the same items in another order). ``recorded`` and
    ``asked`` are :data:`ABSENT` where there is nothing.
    """

    path: Path
    kind: str
    recorded: Json
    asked: Json

    @property
    def where(self) -> str:
        """The path as it is declared: ``$.messages[0].id``."""
        return path_text(self.path)

    def to_json(self) -> dict[str, Json]:
        """``{path, kind, recorded?, asked?}``: what is absent is left out, null is null."""
        out: dict[str, Json] = {"path": self.where, "kind": self.kind}
        for name, value in (("recorded", self.recorded), ("asked", self.asked)):
            if value is not ABSENT:
                out[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return out


def differences(recorded: Json, asked: Json, limit: int = 1000) -> list[Difference]:
    """All places where two values differ, in the order of the recorded one; at most ``limit``.

    1 and 1.0 are the same number; True and 1 are not the same. Items of lists are compared place by place, between the
    beginning and the end that the lists have in common.
    """
    found: list[Difference] = []
    for difference in _walk((), recorded, asked):
        found.append(difference)
        if len(found) >= limit:
            break
    return found


def _walk(path: Path, a: Json, b: Json) -> Iterator[Difference]:
    todo: list[tuple[Path, Json, Json]] = [(path, a, b)]
    while todo:
        path, a, b = todo.pop()
        if a is b:
            continue
        kinds = _kind(a), _kind(b)
        if a is ABSENT or b is ABSENT:
            yield Difference(path, "added" if a is ABSENT else "absent", a, b)
        elif kinds == ("object", "object"):
            names = [*a, *(name for name in b if name not in a)]
            todo.extend((*_at(path, n), a.get(n, ABSENT), b.get(n, ABSENT)) for n in reversed(names))
        elif kinds == ("list", "list"):
            if _same(a, b):
                continue
            if len(a) == len(b) and _is_reordered(a, b):
                yield Difference(path, "order", a, b)
                continue
            todo.extend(reversed(list(_items(path, list(a), list(b)))))
        elif kinds[0] != kinds[1]:
            yield Difference(path, "null" if "null" in kinds else "type", a, b)
        elif not _same(a, b):
            yield Difference(path, "value", a, b)


def _at(path: Path, name: str | int) -> tuple[Path]:
    return ((*path, name),)


def _items(path: Path, a: list[Json], b: list[Json]) -> Iterator[tuple[Path, Json, Json]]:
    """Pairs of items: those in the middle, where beginning and end are alike."""
    start, short = 0, min(len(a), len(b))
    while start < short and _same(a[start], b[start]):
        start += 1
    end = 0
    while end < short - start and _same(a[len(a) - 1 - end], b[len(b) - 1 - end]):
        end += 1
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    for i in range(max(len(middle_a), len(middle_b))):
        x = middle_a[i] if i < len(middle_a) else ABSENT
        y = middle_b[i] if i < len(middle_b) else ABSENT
        yield (*path, start + i), x, y


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, dict):
        return "object"
    return "list" if isinstance(value, (list, tuple)) else type(value).__name__


def _same(a: Json, b: Json) -> bool:
    if a is b:
        return True
    return canonical_exact(a) == canonical_exact(b)


def _is_reordered(a: Json, b: Json) -> bool:
    return len(a) > 1 and sorted(map(canonical_exact, a)) == sorted(map(canonical_exact, b))
