"""One thread at a time is inside the recorder only once: what comes meanwhile from the same thread waits its turn.

A span may be ended by the garbage collector, by a signal handler or by a log line while its thread is already recording.
Going in again would wait for a lock that this very thread holds, or, with a re-entrant lock, fork the chain. So the inner
call only appends to a list, and the outer call works it off before it leaves.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Turns"]


class _Turn:
    __slots__ = ("inside", "waiting")

    def __init__(self) -> None:
        self.inside = False
        self.waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.turn = _Turn()


class Turns:
    """Args:
    failed: called with the exception of a waiting call that raised one (its own caller is long gone).
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._of = _PerThread()

    def take(self, fn: Callable[..., None], *args: Any) -> bool:
        """Call ``fn`` now, or when the outer call of this thread has done its work; False when it has to wait.

        Raises:
            Exception: what ``fn`` raised, when it was called now.
        """
        turn = self._of.turn
        if turn.inside:
            turn.waiting.append((fn, args))
            return False
        turn.inside = True
        try:
            fn(*args)
        finally:
            # What is appended between the last look at the list and `inside = False` is seen by the look after it; what
            # comes later finds nobody inside and goes in by itself.
            if not turn.waiting:
                turn.inside = False
            while turn.waiting:
                turn.inside = True
                try:
                    self._work_off(turn)
                finally:
                    turn.inside = False  # also when a signal handler raises KeyboardInterrupt in here
        return True

    @property
    def is_inside(self) -> bool:
        """Whether this thread is inside: what is told now has to wait."""
        return self._of.turn.inside

    def _work_off(self, turn: _Turn) -> None:
        while turn.waiting:
            fn, args = turn.waiting.popleft()
            try:
                fn(*args)
            except Exception as error:
                self._failed(error)

    def after_fork(self) -> None:
        """In the child: what waited belongs to the parent, which has it too."""
        self._of = _PerThread()
