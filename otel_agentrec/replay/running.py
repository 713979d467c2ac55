"""Start a program so that it is replayed, wait for its end, and say what came of it.

The program is a child of this process: it may swallow every exception, leave by ``os._exit`` or be killed, and what counts is
still what its answers were.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from otel_agentrec.capture.launch import recorded_command
from otel_agentrec.errors import UsageError
from otel_agentrec.intercept import landlock
from otel_agentrec.replay.order import VARIABLE, Order
from otel_agentrec.replay.recorded_run import RecordedRun, load
from otel_agentrec.replay.report import CANNOT, DIVERGED, FAILED, SAME, ReplayReport
from otel_agentrec.replay.whole import allowed

__all__ = ["prepared", "replay_command"]

OWN_FAULTS = frozenset(
    getattr(signal, name) for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL") if hasattr(signal, name)
)
"""Signals that a program brings upon itself."""


def prepared(order: Order) -> tuple[Order, RecordedRun]:
    """Check all that can be checked before a program starts. Raises as :func:`.recorded_run.load`, and UsageError."""
    for host in order.allow_hosts:
        allowed(host)
    run = load(
        order.recording,
        order.runs,
        inert=order.inert,
        collapse=order.retries == "collapse",
        rerun=order.rerun_tools,
    )
    return dataclasses.replace(order, recording=str(run.directory.absolute()), runs=run.runs), run


def replay_command(
    cmd: list[str],
    order: Order,
    out: Path | None = None,
    env: Mapping[str, str] | None = None,
    *,
    stdout_to_stderr: bool = False,
) -> ReplayReport:
    """Run ``cmd`` on the recording that ``order`` names, in a process of its own.

    This process and all that it starts reach no network from now on, where the kernel can see to it.

    Args:
        cmd: as for ``otel-agentrec run``.
        order: ``desk`` is filled in here.
        out: record the replay into this directory.
        env: the environment; default: ours.
        stdout_to_stderr: what the program prints goes to stderr.

    Raises:
        UsageError: there is no such program, or it is no Python program.
        OSError: it can't be started.
    """
    environ = {name: value for name, value in (os.environ if env is None else env).items() if name not in _UNSET}
    environ["OTEL_AGENTREC_ENABLED"] = "true"
    with _desk() as desk:
        if out is None:
            environ["OTEL_AGENTREC_CONTENT"] = "off"
        argv, environ = recorded_command(cmd, out if out is not None else desk / "spans", environ)
        order = dataclasses.replace(order, desk=str(desk), keep=out is not None)
        environ[VARIABLE] = order.text()
        environ.pop("OTEL_AGENTREC__PID", None)
        _close_the_network(order)
        status = _run(argv, cmd, environ, sys.stderr if stdout_to_stderr else None)
        return _judged(order, status)


_UNSET = frozenset(
    ["OTEL_SDK_DISABLED", "OTEL_AGENTREC_PATH", "OTEL_AGENTREC_RESUME", "OTEL_AGENTREC_RESUME_RUN", VARIABLE]
)


@contextmanager
def _desk() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="agentrec-replay-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _close_the_network(order: Order) -> None:
    """Also for programs below that are no Python, or whose Python does not load us. What can't be done is told by the report."""
    ports = [allowed(host)[1] for host in order.allow_hosts]
    if all(ports):
        try:
            landlock.restrict_tcp(ports)
        except OSError:
            pass


def _run(argv: list[str], cmd: list[str], environ: dict[str, str], stdout: TextIO | None) -> int:
    """The exit status of the program; what is sent to us is meant for it."""
    sys.stdout.flush()
    sys.stderr.flush()
    name = cmd[0] if argv[0] != sys.executable else argv[0]
    try:
        process = subprocess.Popen([name, *argv[1:]], executable=argv[0], env=environ, stdout=stdout)
    except OSError as error:
        raise UsageError(f"{argv[0]} can't be started: {error.strerror}") from None
    before = {}
    if threading.current_thread() is threading.main_thread():
        for one in (signal.SIGTERM, signal.SIGHUP) if os.name != "nt" else (signal.SIGTERM,):
            before[one] = signal.signal(one, lambda number, _: process.send_signal(number))
        before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)  # the terminal sends it to both
    try:
        return process.wait()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _judged(order: Order, status: int) -> ReplayReport:
    told = order.delivered()
    report, is_done = (
        told if told is not None else (ReplayReport(recording=order.recording, runs=list(order.runs)), False)
    )
    report.program_exit = status
    conflict = order.conflict()
    if conflict is not None:
        return _cannot(report, conflict, "record and replay each program by itself")
    if report.outcome not in (SAME, FAILED):
        if status > 0 and report.divergence is None and report.outcome == DIVERGED:
            report.reason = f"the program ended with {status}, and the recorded run did more"
        return report
    if not order.was_guarded():
        return _cannot(
            report,
            "no Python process below this command has loaded otel-agentrec, so nothing was replayed",
            "give the interpreter itself: otel-agentrec replay REC -- python agent.py",
        )
    if status < 0 and -status not in OWN_FAULTS:
        return _cannot(report, f"the program was ended by signal {-status}")
    if status != 0:
        report.outcome = FAILED
        report.reason = f"the program ended with {status}" + (
            "" if told is not None else " before it asked for anything"
        )
    elif not is_done:
        return _cannot(report, "the end of the program was not seen: did it become another one (exec)?")
    return report


def _cannot(report: ReplayReport, reason: str, hint: str | None = None) -> ReplayReport:
    report.outcome, report.reason, report.hint = CANNOT, reason, hint
    return report
