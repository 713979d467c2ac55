"""Putting the points of one adapter in place, each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from otel_agentrec.intercept.patching import Replacement, replace
from otel_agentrec.intercept.tools.point import POINT

__all__ = ["Patches", "is_point"]


@dataclass(slots=True)
class Patches:
    """What was put in place; it grows when classes are patched that come later."""

    made: list[Replacement] = field(default_factory=list)

    def put(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        """Replace ``owner.name`` (of a module or class) by ``wrap(it)``; nothing happens where a point stands already.

        Raises:
            AttributeError: there is no such function.
        """
        if not is_point(getattr(owner, name)):
            self.made.append(replace(owner, name, wrap))


def is_point(function: Any) -> bool:
    """Whether this very function is a point; one that wraps a point, and has a copy of its attributes, is not."""
    plain = getattr(function, "__func__", function)
    return getattr(plain, POINT, None) is plain
