"""A whole run again in this process: :func:`replaying` answers every model and tool call from a recording, and nothing is real.

    with replaying("recordings/refund") as report:
        answer = my_agent("Refund order 7.")
    assert report.outcome == "same"

``otel-agentrec replay`` does the same around a program that knows nothing of it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from otel_agentrec.capture.configure import attach_to_providers
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.capture.ways import CONFIGURE
from otel_agentrec.errors import ReplayDivergence, UsageError
from otel_agentrec.intercept.active import ACTIVE, using
from otel_agentrec.intercept.install import install, is_installed, uninstall
from otel_agentrec.intercept.sockets import allow_sockets, forbid_sockets
from otel_agentrec.intercept.sockets import report as guard_report
from otel_agentrec.replay.answering import Replay
from otel_agentrec.replay.recorded_run import load
from otel_agentrec.replay.report import DIVERGED, ReplayReport
from otel_agentrec.settings import Settings

__all__ = ["RETRIES", "allowed", "replaying"]

RETRIES = ("replay", "collapse")


@contextmanager
def replaying(
    recording: str | os.PathLike[str],
    run: str | Iterable[str] | None = None,
    *,
    strict: bool = True,
    rerun_tools: Iterable[str] = (),
    inert: Iterable[str] = (),
    retries: str = "replay",
    as_http_error: bool = False,
    allow_hosts: Iterable[str] = (),
    sockets: bool = True,
    out: str | os.PathLike[str] | None = None,
) -> Iterator[ReplayReport]:
    """Answer the model and tool calls of this process from a recording until the block ends; then all is as it was.

    Everything else that would leave the process is refused. The recording is verified before the first answer, and nothing
    is written into it.

    Args:
        recording: the recording directory.
        run: id of the run that is replayed, or several; default: all of the one process that was recorded there.
        strict: raise at the end of the block what stopped the replay, should the program have swallowed it, and a
            ReplayDivergence when recorded calls are left over. Without it the report tells.
        rerun_tools: names of tools that may run though no outcome of them is recorded; or ``["all"]``.
        inert: paths of request bodies that can't change an answer.
        retries: ``replay`` recorded attempts that failed and were made again, or ``collapse`` each call to its last one.
        as_http_error: answer a model call that diverges with status 400 instead of raising through the program.
        allow_hosts: ``host:port``, or ``host`` with any port, that may be connected to.
        sockets: refuse connections that go through Python's sockets.
        out: record the replay into this directory.

    Yields:
        The report; it is complete when the block has ended.

    Raises:
        RecordingTampered, RecordingBusy, CannotReplay, RecordingNotFound, RecordingUnreadable, UsageError: before the block.
        ReplayDivergence, RecordingEnds, AnswerUnavailable, ToolNotIntercepted: in it, through the program; no ``Exception``.
    """
    if retries not in RETRIES:
        raise UsageError(f"retries={retries!r}", f"one of: {', '.join(RETRIES)}")
    rerun = [rerun_tools] if isinstance(rerun_tools, str) else list(rerun_tools)
    hosts = [allow_hosts] if isinstance(allow_hosts, str) else list(allow_hosts)
    places = [allowed(host) for host in hosts]
    loaded = load(
        recording,
        [run] if isinstance(run, str) else list(run or ()),
        inert=[inert] if isinstance(inert, str) else list(inert),
        collapse=retries == "collapse",
        rerun=rerun,
    )
    was_installed = is_installed()
    recorder = (
        _own_recorder() if out is None else Recorder(Settings.load(path=out, enabled=True, wire=True), way=CONFIGURE)
    )
    attach_to_providers(recorder, CONFIGURE)
    replay = Replay(loaded, recorder, rerun_tools=rerun, as_http_error=as_http_error)
    install()
    if sockets:
        forbid_sockets(places, landlock=False)
    try:
        with using(
            models=replay.models,
            tools=replay.tools,
            wire=ACTIVE.wire,
            forbid_unknown=True,
            allowed_hosts=hosts,
            refused=replay.stop,
        ):
            yield replay.report
    except Exception as error:
        replay.failed(error)
        raise
    finally:
        if sockets:
            allow_sockets()
            replay.report.guard = guard_report()
        if not was_installed:
            uninstall()
        replay.finish()
        if out is not None:
            recorder.shutdown()
    if strict:
        _check(replay.report)


def allowed(host: str) -> tuple[str, int]:
    """``host:port`` as the guard of the sockets takes it; port 0: any.

    Raises:
        UsageError: the port is no number.
    """
    name, colon, port = host.rpartition(":")
    if not colon or (host.count(":") > 1 and not name.endswith("]")):
        return host.strip("[]"), 0
    if not port.isdecimal() or not name:
        raise UsageError(f"{host!r} is no host", "write name, name:port, 10.0.0.1:5432 or [::1]:5432")
    return name.strip("[]"), int(port)


def _check(report: ReplayReport) -> None:
    if report.error is not None:
        raise report.error
    if report.outcome == DIVERGED:
        left = ", ".join(f"{one['kind']} {one['name']} ({one['node']})" for one in report.left_over[:8])
        raise ReplayDivergence(f"{len(report.left_over)} recorded calls were not asked for: {left}")


_OWN: dict[int, Recorder] = {}


def _own_recorder() -> Recorder:
    """What follows the spans of this process while it is replayed. What it writes is thrown away."""
    pid = os.getpid()
    known = _OWN.get(pid)
    if known is None or known.is_closed:
        directory = Path(tempfile.mkdtemp(prefix="agentrec-replay-"))
        known = Recorder(Settings.load(path=directory, content="off", wire=False, enabled=True), way=CONFIGURE)
        _OWN[pid] = known
        atexit.register(_throw_away, known, directory, pid)
    return known


def _throw_away(recorder: Recorder, directory: Path, pid: int) -> None:
    if os.getpid() == pid:
        recorder.shutdown()
        shutil.rmtree(directory, ignore_errors=True)
