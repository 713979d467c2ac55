"""What a framework's outer function knows of a tool call (its id, the model's own arguments), for the inner one that runs it."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.tools.point import POINT
from otel_agentrec.intercept.tools.running import refused_last

__all__ = ["Note", "Notes", "stands_for"]

_Ours = TypeVar("_Ours", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Note:
    """A tool, and the call it was given."""

    tool: Any
    arguments: Any
    call_id: str | None


class Notes:
    """The call that is under way in this context.

    Args:
        read: gets what the outer function gets.
    """

    __slots__ = ("_current", "_read")

    def __init__(self, hook: str, read: Callable[..., Note]) -> None:
        self._current: ContextVar[Note | None] = ContextVar(f"agentrec_call_{hook}", default=None)
        self._read = read

    def of(self, tool: Any) -> Note | None:
        """The call that this tool was given, unless it is called from elsewhere."""
        note = self._current.get()
        return note if note is not None and note.tool is tool else None

    def coroutine(self, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Wrap an outer ``async def``. A refusal, which the inner function may raise in a thread, leaves it last."""

        async def call(*args: Any, **kwargs: Any) -> Any:
            if ACTIVE.tools is None:
                return await original(*args, **kwargs)
            try:
                note: Note | None = self._read(*args, **kwargs)
            except Exception:
                note = None  # the inner function sees what it gets
            token = self._current.set(note)
            try:
                return await original(*args, **kwargs)
            finally:
                self._current.reset(token)

        return stands_for(original, refused_last(call))


def stands_for(original: Callable[..., Any], ours: _Ours) -> _Ours:
    """``ours`` in the form of ``original``, as a place that is patched."""
    functools.update_wrapper(ours, original)
    setattr(ours, POINT, ours)
    return ours
