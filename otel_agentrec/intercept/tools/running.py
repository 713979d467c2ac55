"""Which tool calls are being run: those that a piece of code is inside of, and those beside it.

Contexts are copied, and outlive a call (a worker that a tool started), so a frame says itself when it ended.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any

from otel_agentrec.errors import RunStopped

__all__ = ["Frame", "enter", "inside", "leave", "others_ended", "refused_last"]

PATIENCE = 60.0
"""Seconds that a refusal waits for the calls beside it; one that takes longer may be cut off."""
POLL = 0.01


@dataclass(slots=True, eq=False)
class Frame:
    """A call that is being run. ``arguments``: as JSON."""

    hook: str
    name: str
    arguments: Any
    running: bool = True
    stopping: bool = False
    """Something inside it was refused: nobody waits for it."""
    loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    def end(self) -> None:
        self.running = False
        _RUNNING.pop(self, None)


_INSIDE: ContextVar[tuple[Frame, ...]] = ContextVar("agentrec_tool_calls", default=())
_RUNNING: dict[Frame, None] = {}


def inside() -> tuple[Frame, ...]:
    """The calls that this code is part of, the outermost first; some may have ended."""
    return _INSIDE.get()


def enter(frame: Frame) -> Token[tuple[Frame, ...]]:
    """What runs from now on, until :func:`leave`, is part of ``frame``."""
    frame.loop = _loop()
    if frame.running:
        _RUNNING[frame] = None
    return _INSIDE.set((*_INSIDE.get(), frame))


def leave(token: Token[tuple[Frame, ...]]) -> None:
    try:
        _INSIDE.reset(token)
    except ValueError:
        pass  # a scheduler went on in another context, which never had the frame


async def others_ended() -> None:
    """Wait until no call of this event loop runs but those that this code is inside of, at most :data:`PATIENCE`.

    Two that wait don't wait for one another. A cancellation ends the waiting: what is to be raised then is more than that.
    """
    loop = _loop()
    if loop is None:
        return  # threads are not cut off
    for frame in _INSIDE.get():
        frame.stopping = True
    until = time.monotonic() + PATIENCE
    try:
        await asyncio.sleep(POLL)  # what begins in this very moment begins before it can be cut off
        while any(frame.loop is loop and not frame.stopping for frame in list(_RUNNING)) and time.monotonic() < until:
            await asyncio.sleep(POLL)
    except asyncio.CancelledError:
        pass


def refused_last(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Wrap an ``async def`` that runs a tool on a thread: a refusal leaves it after the calls beside it have ended."""

    @functools.wraps(original)
    async def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return await original(*args, **kwargs)
        except RunStopped:
            await others_ended()
            raise

    return call


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
