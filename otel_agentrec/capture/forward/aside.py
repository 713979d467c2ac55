"""Work that may never come to an end, done beside the thread that waits for it: so that the wait has one.

A receiver that sends one byte a second keeps an exporter busy for hours, and an exporter of anybody's may hang for ever. What
the end of a recording asks of them is done by a thread that can be left behind. It is started early: at the end of the
interpreter none can be started any more (from Python 3.12 on).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Aside"]

_Job = tuple[Callable[[], Any], list[Any], threading.Event]


class Aside:
    """One daemon thread that waits for work."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        """The child has no thread but its own."""
        self._jobs: queue.SimpleQueue[_Job] | None = None

    def ready(self) -> bool:
        """Have a thread there; False when none can be started."""
        if self._jobs is None:
            jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
            try:
                threading.Thread(target=_work, args=(jobs,), name="otel-agentrec-aside", daemon=True).start()
            except RuntimeError:
                return False
            self._jobs = jobs
        return True

    def within(self, seconds: float, work: Callable[[], Any]) -> Any:
        """What ``work`` returned; None when it raised, or has not ended in time: then it goes on, and nobody waits for it. It must
        be guarded itself. Where no thread can be started, it is done here."""
        if not self.ready():
            return work()
        jobs, self._jobs = self._jobs, None  # whoever comes meanwhile gets a thread of their own
        assert jobs is not None
        result: list[Any] = []
        done = threading.Event()
        jobs.put((work, result, done))
        if done.wait(max(0.0, seconds)) and self._jobs is None:
            self._jobs = jobs
        return result[0] if result else None


def _work(jobs: queue.SimpleQueue[_Job]) -> None:
    while True:
        work, result, done = jobs.get()
        try:
            result.append(work())
        except BaseException:
            pass
        finally:
            del work
            done.set()
