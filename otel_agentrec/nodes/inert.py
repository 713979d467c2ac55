"""What can't change an answer, as declared: paths of a request that its key leaves out, and lists whose order it ignores.

======================================  ================================================================================
``$.metadata.trace_id``                 a member (``metadata.trace_id`` is the same path)
``$.messages[*].id``                    of every item of a list; ``$.a[0]`` of one item, ``$.a.*`` every member
``$['odd.name']``                       a name that holds dots, brackets or blanks
``order:tools by name``                 the list at ``$.tools`` counts as the same in any order; its items are told apart by
                                        ``name`` (or ``function.name``, where a provider nests it), then by all they hold
======================================  ================================================================================

Nothing is inert unless it is declared, and text is never rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from otel_agentrec.errors import UsageError
from otel_agentrec.nodes.exactjson import canonical_exact

__all__ = ["NOTHING", "Inert", "inert_of", "path_text"]

Json = Any
Step = str | int | None
"""A member's name, an item's index, or None: every one."""

_STEP = re.compile(r"""\.(\*|[^.\[\]*'"]+)|\[(\*|\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]""")
_ORDER = re.compile(r"order:\s*(\S.*?)\s+by\s+(\S+)\s*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_GONE = b"inert"
"""Stands for an item of a list, whose neighbours keep their places."""


@dataclass(frozen=True, slots=True)
class Inert:
    """A declared list, in order and each once.

    ``named`` are the entries that go into the name of a scheme: those beyond its defaults.
    """

    named: tuple[str, ...]
    paths: tuple[tuple[Step, ...], ...]
    orders: tuple[tuple[tuple[Step, ...], str], ...]

    @property
    def suffix(self) -> str:
        """What follows the name of a scheme: nothing, or the list in brackets."""
        return f"[{', '.join(self.named)}]" if self.named else ""

    def applied(self, value: Json) -> Json:
        """The value without what is inert; it shares what was not touched."""
        for path in self.paths:
            value = _changed(value, path, None)
        for path, by in self.orders:
            value = _changed(value, path, partial(_sorted, by))
        return value

    def covers(self, path: tuple[Step, ...]) -> bool:
        """Whether what stands at this path, or around it, is left out."""
        return any(
            len(p) <= len(path) and all(a is None or a == b for a, b in zip(p, path, strict=False)) for p in self.paths
        )


@lru_cache(maxsize=256)
def _made(declared: tuple[str, ...], defaults: tuple[str, ...]) -> Inert:
    named = sorted({_spelled(entry) for entry in declared} - {_spelled(entry) for entry in defaults})
    paths, orders = [], []
    for entry in dict.fromkeys([*(_spelled(d) for d in defaults), *named]):
        order = _ORDER.fullmatch(entry)
        if order:
            orders.append((_path(order[1]), order[2]))
        else:
            paths.append(_path(entry))
    return Inert(tuple(named), tuple(paths), tuple(orders))


def inert_of(declared: Iterable[str] = (), defaults: Iterable[str] = ()) -> Inert:
    """The list of what a user declared, beside the defaults of a scheme.

    Raises:
        UsageError: an entry is neither a path nor an order.
    """
    if isinstance(declared, str):
        declared = (declared,)
    return _made(tuple(declared), tuple(defaults))


NOTHING = inert_of()


def path_text(path: Iterable[Step]) -> str:
    """A path as it is declared: ``$.messages[0].content``."""
    out = "$"
    for step in path:
        if step is None:
            out += "[*]"
        elif isinstance(step, int):
            out += f"[{step}]"
        elif _NAME.fullmatch(step):
            out += f".{step}"
        else:
            quote = '"' if "'" in step else "'"
            out += f"[{quote}{step}{quote}]"
    return out


def _spelled(entry: str) -> str:
    """An entry in its one spelling, so that a list names one scheme however it was typed."""
    order = _ORDER.fullmatch(entry.strip()) if isinstance(entry, str) else None
    if order:
        path = path_text(_path(order[1]))
        return f"order:{path.removeprefix('$.')} by {order[2]}"
    return path_text(_path(entry))


def _path(text: str) -> tuple[Step, ...]:
    given = text.strip() if isinstance(text, str) else ""
    rest = given[1:] if given.startswith("$") else (given if given.startswith("[") else f".{given}")
    steps: list[Step] = []
    at = 0
    while at < len(rest):
        m = _STEP.match(rest, at)
        if m is None:
            break
        name, index, *quoted = m.groups()
        word = next((q for q in quoted if q is not None), name)
        if index is not None:
            steps.append(None if index == "*" else int(index))
        else:
            steps.append(None if name == "*" else word)
        at = m.end()
    if not steps or at < len(rest) or given.startswith("order:"):
        raise UsageError(f"{text!r} is no inert path", "write $.metadata.id, $.messages[*].id, or: order:tools by name")
    return tuple(steps)


def _changed(value: Json, path: tuple[Step, ...], change: Callable[[Json], Json] | None) -> Json:
    """The value with what stands at ``path`` changed, or left out when there is no ``change``."""
    if not path:
        return change(value) if change is not None else value
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and not isinstance(step, int):
        hit = [key for key in value if step is None or key == step]
        if not hit:
            return value
        if not rest and change is None:
            return {key: x for key, x in value.items() if key not in hit}
        return {key: _changed(x, rest, change) if key in hit else x for key, x in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(step, str):
        gone = not rest and change is None
        return [
            (_GONE if gone else _changed(x, rest, change)) if step is None or i == step else x
            for i, x in enumerate(value)
        ]
    return value


def _sorted(by: str, items: Json) -> Json:
    if not isinstance(items, (list, tuple)):
        return items
    return sorted(items, key=lambda item: (_told_apart(item, by), canonical_exact(item)))


def _told_apart(item: Json, by: str) -> bytes:
    value = item
    for name in by.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if value is None and isinstance(item, dict) and isinstance(item.get("function"), dict):
        value = item["function"].get(by)
    return canonical_exact(value)
