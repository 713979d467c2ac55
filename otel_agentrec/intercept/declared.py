"""What programs declare of their tools, by name: whichever hook sees a call of one finds it here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

__all__ = ["DAY", "Declared", "declare", "declare_all", "declared", "effect_of", "forget", "is_declared"]

DAY = 23 * 3600.0
"""Seconds that an idempotency key counts by default: services keep them for a day."""


@dataclass(frozen=True, slots=True)
class Declared:
    """``effect``: True, False (only reads), ``"container"`` (an agent as a tool) or None (nothing said). ``idempotency_key``:
    the parameter that takes a key, which counts for ``idempotency_ttl`` seconds. ``reconcile(effect)`` finds out what became
    of an effect whose outcome is unknown. ``inert``: paths of arguments that can't change the result. ``is_kept``: a result that can't be kept stops the run."""

    effect: bool | Literal["container"] | None = None
    idempotency_key: str | None = None
    idempotency_ttl: float = DAY
    reconcile: Callable[[Any], Any] | None = None
    inert: tuple[str, ...] = ()
    is_kept: bool = False


_BY_NAME: dict[str, Declared] = {}
_ALL: list[bool] = []
NOTHING = Declared()


def declare(name: str, what: Declared) -> None:
    """Declare a tool. Of two tools with one name nothing counts that only one of them says, and the stricter effect does."""
    other = _BY_NAME.setdefault(name, what)
    if other == what:
        return
    effect: Any = True if other.effect != what.effect else what.effect
    _BY_NAME[name] = replace(NOTHING, effect=effect)


def declare_all() -> None:
    """Something of the program intercepts whatever tools it is asked for (a ``ResumableToolExecutor``)."""
    _ALL[:] = [True]


def forget() -> None:
    """Forget all declarations, as a new process would."""
    _BY_NAME.clear()
    _ALL.clear()


def declared(name: str) -> Declared:
    """What was declared of the tools of this name."""
    return _BY_NAME.get(name, NOTHING)


def is_declared(name: str) -> bool:
    """Whether a tool of this name was decorated in this process, or what calls it is intercepted altogether."""
    return bool(_ALL) or name in _BY_NAME


def effect_of(kind: str | None, said: Declared) -> bool | str:
    """The effect of a call: as it was declared, else as the hook that saw it knows; unknown is True."""
    if said.effect is not None:
        return said.effect
    return False if kind == "read" else "container" if kind == "container" else True
