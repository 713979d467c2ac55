"""Putting a wrapped function in the place of another's, once, and taking it back only while it still stands there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from otel_agentrec.intercept.tools.point import POINT

__all__ = ["MissingPoint", "Patches"]


class MissingPoint(LookupError):
    """The framework has no such function (any more)."""


@dataclass(slots=True)
class Patches:
    """What one adapter has put in place."""

    _done: list[tuple[Any, str, Any, Any, bool]] = field(default_factory=list)

    def put(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        """Replace ``owner.name`` (of a module or class) by ``wrap(it)``; nothing happens where a point stands already.

        Raises:
            MissingPoint: there is no such function.
        """
        original = getattr(owner, name, None)
        if not callable(original):
            raise MissingPoint(f"{getattr(owner, '__qualname__', getattr(owner, '__name__', owner))} has no {name}")
        if getattr(original, POINT, None) is original:
            return
        ours = wrap(original)
        own = name in vars(owner)
        setattr(owner, name, ours)
        self._done.append((owner, name, original, ours, own))

    def take_back(self) -> None:
        """Put the originals back, except where somebody has wrapped ours since: there it stays, and lets all pass."""
        while self._done:
            owner, name, original, ours, own = self._done.pop()
            if vars(owner).get(name) is not ours:
                continue
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)
