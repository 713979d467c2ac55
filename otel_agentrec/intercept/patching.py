"""How a point is put into somebody else's class or module, and taken out again.

A patch is a plain function in place of another. It goes *under* wrappers made with wrapt that are there already: OTel's
instrumentors take off what they find on top when they uninstrument, so what is on top must stay theirs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

__all__ = ["Patch", "Patched", "Replacement", "replace"]


@dataclass(slots=True)
class Replacement:
    """``ours`` stands in place of ``original`` as ``owner.name``, or below wrappers that stand there."""

    owner: Any
    name: str
    ours: Any
    original: Any
    own: bool
    """``owner`` had the name itself, not by inheritance."""

    def undo(self) -> bool:
        """Put the original back, unless somebody has put their own thing over ours that can't be looked into.

        Returns:
            Whether ours is gone.
        """
        current = vars(self.owner).get(self.name)
        if current is self.ours:
            if self.own:
                setattr(self.owner, self.name, self.original)
            else:
                delattr(self.owner, self.name)
            return True
        wrapper = _innermost_wrapper(current)
        if wrapper is not None and wrapper.__wrapped__ is self.ours:
            wrapper.__wrapped__ = self.original
            return True
        return False


@dataclass(frozen=True, slots=True)
class Patched:
    """What a patch did to a library.

    ``library``: as it is distributed; ``level``: where it was caught (``client``, ``transport``, ``pool``, ``tool`` …);
    ``replacements``: what is to be undone. Not ``covered``: ``reason`` says why, in one line.
    """

    library: str
    version: str | None
    level: str
    covered: bool = True
    reason: str | None = None
    replacements: Sequence[Replacement] = field(default=())


Patch = Callable[[ModuleType], Patched]
"""Is given the imported module. Raises (``AttributeError``, say) when the place it patches is not there."""


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> Replacement:
    """Set ``owner.name`` (of a class or a module) to ``make(original)``.

    Args:
        make: is given the function as it stands in the class, unbound, and gives the one to put in its place.

    Raises:
        AttributeError: there is no such name.
    """
    own = name in vars(owner)
    current = vars(owner)[name] if own else getattr(owner, name)
    wrapper = _innermost_wrapper(current) if own else None
    original = current if wrapper is None else wrapper.__wrapped__
    ours = make(original)
    if wrapper is None:
        setattr(owner, name, ours)
    else:
        wrapper.__wrapped__ = ours
    return Replacement(owner, name, ours, original, own)


def _innermost_wrapper(current: Any) -> Any:
    """The last wrapt proxy of a chain of them, or None where there is none. wrapt is not imported for this."""
    wrapt = sys.modules.get("wrapt")
    proxy = getattr(wrapt, "BaseObjectProxy", None) or getattr(wrapt, "ObjectProxy", None)
    wrapper = None
    while proxy is not None and isinstance(current, proxy):
        wrapper, current = current, current.__wrapped__
    return wrapper
