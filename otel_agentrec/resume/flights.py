"""One at a time per key: while a call is on its way, the others that ask the same wait for its answer.

Works between threads, between tasks, and between both. Nobody waits for itself: a call that comes again inside its own
run goes through.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar

from otel_agentrec.errors import AgentRecError

__all__ = ["Flights"]

_inside: ContextVar[frozenset[tuple[int, str]]] = ContextVar("otel_agentrec_flights", default=frozenset())


class Flight:
    """One call that is on its way. ``loop``: the event loop that it runs on, if on one."""

    __slots__ = ("done", "loop")

    def __init__(self) -> None:
        self.done: Future[None] = Future()
        self.loop = asyncio._get_running_loop()


class Flights:
    """The calls of one cache that are on their way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, Flight] = {}

    def board(self, key: str | None) -> Flight | None:
        """The flight of somebody else to wait for, or None: the caller is to fly, inside :meth:`flying`.

        A call without a key, or one inside its own flight, never waits.
        """
        if key is None or (id(self), key) in _inside.get():
            return None
        with self._lock:
            there = self._open.get(key)
            if there is None:
                self._open[key] = Flight()
            return there

    @contextmanager
    def flying(self, key: str | None) -> Iterator[None]:
        """Until the block ends, whatever comes of it, others wait."""
        if key is None or (id(self), key) in _inside.get():
            yield
            return
        token = _inside.set(_inside.get() | {(id(self), key)})
        try:
            yield
        finally:
            _inside.reset(token)
            with self._lock:
                flight = self._open.pop(key, None)
            if flight is not None:
                flight.done.set_result(None)

    @staticmethod
    def wait(flight: Flight) -> None:
        """Wait in a thread.

        Raises:
            AgentRecError: the flight runs on the event loop of this very thread, which would wait for ever.
        """
        if flight.loop is not None and flight.loop is asyncio._get_running_loop():
            raise AgentRecError(
                "the same call is on its way in a task of this event loop, and a plain function can't wait for it",
                "use the async client or tool for both",
            )
        flight.done.result()

    @staticmethod
    async def wait_async(flight: Flight) -> None:
        """Wait in a task; being cancelled does not touch the flight."""
        await asyncio.shield(asyncio.wrap_future(flight.done))
