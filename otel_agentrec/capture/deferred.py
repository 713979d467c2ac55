"""Durability ``deferred``: what a span tells is written a moment later by a thread of ours, in the order it was told.

The program's thread only appends to a queue. What waits there is lost by kill -9, by SIGTERM without a handler and by
``os._exit`` (docs/durability.md); it is written before a shutdown, a ``force_flush`` or a normal exit returns.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from otel_agentrec.capture.guard import Guard

__all__ = ["Deferred"]

LINGER = 0.02
"""Seconds that the thread lets work gather before it writes."""
IDLE = 1.0
"""Seconds after which it looks for what came without waking it."""


class Deferred:
    """One queue, worked off by one thread at a time.

    Args:
        limit: calls that may wait; beyond it a call is dropped.
        dropped: told of each.
    """

    def __init__(self, limit: int, guard: Guard, dropped: Callable[[int, str], None]) -> None:
        self._limit = limit
        self._guard = guard
        self._dropped = dropped
        self.after_fork()

    def after_fork(self) -> None:
        """In the child there is no thread, and what waited is the parent's to write."""
        self._queue: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._working = threading.Lock()
        self._worker: int | None = None
        self._filled = threading.Event()
        self._thread: threading.Thread | None = None

    def put(self, fn: Callable[..., object], *args: Any) -> bool:
        """Have ``fn(*args)`` called soon, after all that was put before it. False when it was dropped."""
        if len(self._queue) >= self._limit:
            self._dropped(1, "the queue of deferred writing is full")
            return False
        self._queue.append((fn, args))
        if not self._filled.is_set():
            self._filled.set()
            if self._thread is None:
                self._start()
        return True

    def follow(self, fn: Callable[..., object], *args: Any) -> None:
        """As :meth:`put`, for finalisers, which may run in the middle of anything: wakes nobody and takes no lock."""
        self._queue.append((fn, args))

    def drain(self, seconds: float) -> bool:
        """Work off all that waits, on this thread if need be; False when another thread took too long over it."""
        if self._worker == threading.get_ident():  # a sink or a finaliser, from inside the work itself
            return True
        if not self._working.acquire(timeout=max(0.0, seconds)):
            return False
        try:
            self._work_off()
        finally:
            self._working.release()
        return True

    def finish(self, patience: float) -> None:
        """Work off all that waits, however long it takes; only when nothing moves for ``patience`` seconds, what is left
        is dropped and counted."""
        left = len(self._queue) + 1
        while not self.drain(patience):
            if len(self._queue) >= left:
                self._dropped(len(self._queue), "deferred writing was stuck at shutdown")
                self._queue.clear()
                return
            left = len(self._queue)

    def _work_off(self) -> None:
        self._worker = threading.get_ident()
        try:
            while self._queue:
                fn, args = self._queue.popleft()
                self._guard.run_later("a deferred record", fn, *args)
        finally:
            self._worker = None

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="otel-agentrec-deferred", daemon=True)
        self._thread = thread
        try:
            thread.start()
        except RuntimeError:  # the interpreter is about to end: written at once from now on
            self.drain(1.0)
            self._filled.clear()
            self._thread = None

    def _run(self) -> None:
        me = threading.current_thread()
        while self._thread is me:
            if not self._filled.wait(IDLE) and not self._queue:
                continue
            time.sleep(LINGER)
            self._filled.clear()
            self.drain(60.0)
