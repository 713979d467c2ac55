"""A run that was stopped ends its process with the exit code that says so, whatever the program makes of the exception.

A framework, or the program, may catch even what is no ``Exception``, and end as if all were well. So the code is set where a
process ends: after an exception that nobody caught, at the end of the interpreter, and in ``os._exit``.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.recorders import open_recorders
from otel_agentrec.errors import RunStopped
from otel_agentrec.intercept.stopped import STOPPED

__all__ = ["watch"]


class _Exits:
    def __init__(self) -> None:
        self._pid = os.getpid()
        self._told: set[int] = set()
        self._leave: Callable[[int], Any] = os._exit

    def install(self) -> None:
        STOPPED.on_stop.append(self._stopped)
        before, in_thread = sys.excepthook, threading.excepthook

        def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            for recorder in open_recorders():
                if recorder.edge.program is not None:
                    recorder.edge.program.failed(kind.__name__)
            if isinstance(error, RunStopped):
                self._tell(error)
            else:
                before(kind, error, trace)

        def uncaught_in_thread(told: Any) -> None:
            if isinstance(told.exc_value, RunStopped):
                self._tell(told.exc_value)
            else:
                in_thread(told)

        def leave(status: int) -> None:
            stop = STOPPED.first if os.getpid() == self._pid else None
            if stop is not None:
                self._tell(stop)
                status = stop.exit_code
            self._leave(status)

        sys.excepthook, threading.excepthook = uncaught, uncaught_in_thread
        os._exit = leave  # type: ignore[assignment]
        atexit.register(self._at_exit)

    def _stopped(self, error: RunStopped) -> None:
        for recorder in open_recorders():
            if recorder.edge.program is not None:
                recorder.edge.program.failed(type(error).__name__)

    def _tell(self, error: RunStopped) -> None:
        """Say once what stopped the run, and how to go on."""
        first = STOPPED.first or error
        if id(first) not in self._told:
            self._told.add(id(first))
            PROCESS.notices.say(str(first), first.hint)

    def _at_exit(self) -> None:
        """The last thing that happens: it was registered first."""
        stop = STOPPED.first
        if stop is None or os.getpid() != self._pid:
            return
        self._tell(stop)
        for recorder in open_recorders():
            recorder.shutdown()
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        self._leave(stop.exit_code)


def watch() -> None:
    """From now on. Called before anything else is registered for the end of the process."""
    _Exits().install()
