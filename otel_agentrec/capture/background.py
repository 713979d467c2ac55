"""The one thread of a recorder. It exists only while there is something for it to do.

It looks once a second at open spans that have not told yet what they are, and writes large records that would hold up an
event loop. All else is written by the thread that ends the span.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable

from otel_agentrec.capture.guard import Guard

__all__ = ["Background", "on_event_loop"]

SWEEP_SECONDS = 1.0
MAX_WAITING = 64
"""Records that may wait at a time; beyond it they are written at once."""

Work = Callable[[], object]


class Background:
    """Args:
    sweep: called once a second while the thread lives; returns whether there is more to look for.
    """

    def __init__(self, sweep: Callable[[], bool], guard: Guard) -> None:
        self._sweep = sweep
        self._guard = guard
        self.after_fork()

    def after_fork(self) -> None:
        """In the child there is no thread, and what waited is the parent's to write."""
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """There is something to sweep."""
        if self._thread is None:
            self._start()

    def put(self, work: Work) -> bool:
        """Have ``work`` done soon; False when there is too much already, or no thread can be started."""
        if self._queue.qsize() >= MAX_WAITING:
            return False
        with self._lock:
            alive = self._thread is not None or self._start_locked()
            if alive:
                self._queue.put(work)
        return alive

    def drain(self, seconds: float) -> bool:
        """Wait until all that was put is done; False when that took too long."""
        end = time.monotonic() + seconds
        if self._thread is not None and self._thread is not threading.current_thread():
            done = threading.Event()
            self._queue.put(done.set)
            while not done.wait(0.05):
                if not self._thread_lives():
                    break
                if time.monotonic() > end:
                    return False
        while True:  # a thread that died, at the interpreter's end, leaves its work to us
            try:
                work = self._queue.get_nowait()
            except queue.Empty:
                return True
            self._guard.run_later("a waiting record", work)

    def _thread_lives(self) -> bool:
        thread = self._thread
        return thread is not None and thread.is_alive()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._start_locked()

    def _start_locked(self) -> bool:
        thread = threading.Thread(target=self._run, name="otel-agentrec", daemon=True)
        self._thread = thread
        try:
            thread.start()
        except RuntimeError:  # the interpreter is about to end
            self._thread = None
            return False
        return True

    def _run(self) -> None:
        at = time.monotonic() + SWEEP_SECONDS
        while True:
            try:
                work = self._queue.get(timeout=max(0.0, at - time.monotonic()))
            except queue.Empty:
                at = time.monotonic() + SWEEP_SECONDS
                more = self._guard.run_later("the sweep", self._sweep)
                with self._lock:
                    if not more and self._queue.empty():
                        self._thread = None
                        return
            else:
                self._guard.run_later("a waiting record", work)


def on_event_loop() -> bool:
    """Whether this thread is running an asyncio event loop."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None
