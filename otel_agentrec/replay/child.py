"""The first thing that runs in every Python process below ``otel-agentrec replay``: no network, and answers from the recording."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any

from otel_agentrec.capture import bootstrap
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.recorders import recorder_in_use
from otel_agentrec.errors import AgentRecError, RunStopped
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.install import install
from otel_agentrec.intercept.inuse import program_begins
from otel_agentrec.intercept.sockets import forbid_sockets
from otel_agentrec.intercept.sockets import report as guard_report
from otel_agentrec.replay.answering import Replay
from otel_agentrec.replay.order import VARIABLE, Order
from otel_agentrec.replay.recorded_run import load
from otel_agentrec.replay.report import ReplayReport
from otel_agentrec.replay.whole import allowed
from otel_agentrec.settings import Settings

__all__ = ["CANNOT_EXIT", "start"]

CANNOT_EXIT = 125


def start() -> None:
    """Replay this process. Where that can't be done it ends, before any code of its own."""
    try:
        order = Order.given(os.environ)
        if order is None:
            raise ValueError(f"{VARIABLE} is empty")
        forbid_sockets(map(allowed, order.allow_hosts))  # before threads are started
        _replay(order)
        order.sign()
    except AgentRecError as error:
        _refuse(str(error), error.hint)
    except Exception as error:
        _refuse(f"this process can't be replayed: {type(error).__name__}: {error}")


def _replay(order: Order) -> None:
    bootstrap.start(False)
    recorder = recorder_in_use()
    if recorder is None or recorder.is_closed:
        raise AgentRecError("this process can't be replayed: nothing follows its spans", "unset OTEL_SDK_DISABLED")
    recorder.edge.record_program()
    run = load(
        order.recording,
        order.runs,
        inert=order.inert,
        collapse=order.retries == "collapse",
        rerun=order.rerun_tools,
    )
    process = _Process(order)
    process.replay = replay = Replay(
        run, recorder, rerun_tools=order.rerun_tools, as_http_error=order.as_http_error, claim=process.claim
    )
    replay.on_stop.append(process.stopped)
    install(Settings.load().wire_paths)
    program_begins()
    ACTIVE.models, ACTIVE.tools = replay.models, replay.tools
    ACTIVE.forbid_unknown, ACTIVE.allowed_hosts = True, frozenset(order.allow_hosts)
    ACTIVE.refused = replay.stop
    process.watch()


class _Process:
    """Leaves the report, however the process ends."""

    def __init__(self, order: Order) -> None:
        self.replay: Replay | None = None
        self._order = order
        self._pid = os.getpid()
        self._is_ours = False
        self._leave = os._exit

    def claim(self) -> None:
        """Called before the first answer. Raises AnswerUnavailable: another process is replayed."""
        self._order.claim()
        self._is_ours = True

    def stopped(self, report: ReplayReport) -> None:
        """What stopped the replay is told at once: the program may end in any way."""
        self._deliver(report, is_done=False)

    def watch(self) -> None:
        before, in_thread = sys.excepthook, threading.excepthook

        def uncaught(kind: Any, error: BaseException, trace: Any) -> None:
            if not isinstance(error, RunStopped):  # the report tells of it
                before(kind, error, trace)

        def uncaught_in_thread(told: Any) -> None:
            if not isinstance(told.exc_value, RunStopped):
                in_thread(told)

        def leave(status: int) -> None:
            PROCESS.run("the report of the replay", self._finish)
            self._leave(status)

        sys.excepthook, threading.excepthook = uncaught, uncaught_in_thread
        os._exit = leave  # type: ignore[assignment]
        atexit.register(self._finish)

    def _finish(self) -> None:
        if self.replay is None or os.getpid() != self._pid:
            return
        self._deliver(self.replay.finish(), is_done=True)

    def _deliver(self, report: ReplayReport, *, is_done: bool) -> None:
        """A process that asked for nothing speaks only while no other one is answered."""
        if os.getpid() != self._pid or not (self._is_ours or not self._order.is_claimed()):
            return
        report.guard = guard_report()
        self._order.deliver(report, is_done=is_done)


def _refuse(what: str, hint: str = "") -> None:
    PROCESS.notices.say(what, hint)
    sys.stderr.flush()
    os._exit(CANNOT_EXIT)
