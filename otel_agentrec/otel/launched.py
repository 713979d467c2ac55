"""The first thing that runs in every Python process below ``otel-agentrec run``: it is recorded, may resume a run, or is replayed."""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING

import otel_agentrec.otel.recording  # noqa: F401 - brings the points of interception
from otel_agentrec.capture import bootstrap
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.recorders import recorder_in_use
from otel_agentrec.errors import AgentRecError
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.recording_tools import RecordingTools
from otel_agentrec.resume import exits
from otel_agentrec.settings import Settings

if TYPE_CHECKING:
    from otel_agentrec.resume.program import Program
    from otel_agentrec.resume.resumed_run import ResumedRun

__all__ = ["start"]


def start(is_the_command: bool) -> None:
    """Record this process. A run that can't be resumed ends the command, before any code of its own.

    Args:
        is_the_command: this is the process that the user asked for, not one that it started.
    """
    if os.environ.get("OTEL_AGENTREC__REPLAY"):
        from otel_agentrec.replay import child

        child.start()
        return
    settings = PROCESS.run("the settings", Settings.load)
    if settings is None or not settings.path or not settings.enabled:
        bootstrap.start(is_the_command)
        return
    PROCESS.run("the exit code", exits.watch)
    bootstrap.start(is_the_command)
    recorder = recorder_in_use()
    if recorder is None:
        if settings.resume and is_the_command:
            _refuse("the run can't be resumed: this process is not recorded")
        return
    recorder.guard.run("the run of the program", recorder.edge.record_program)
    ACTIVE.tools = RecordingTools()
    if settings.resume:
        _resume(settings, is_the_command)


def _resume(settings: Settings, is_the_command: bool) -> None:
    # only here: a program that is merely recorded starts sooner without them
    from otel_agentrec.intercept.inuse import program_begins
    from otel_agentrec.resume.attempt import Attempt, attempt_at
    from otel_agentrec.resume.program import Program
    from otel_agentrec.resume.resumed_run import ResumedModels, ResumedRun

    def course(attempt: Attempt) -> ResumedRun:
        return ResumedRun(
            attempt,
            live=settings.on_divergence == "live",
            rerun_tools=settings.rerun_tools,
            inert=settings.inert,
            collapse=settings.retries == "collapse",
        )

    assert settings.resume is not None
    program_begins()
    try:
        attempt = attempt_at(settings.resume, settings.resume_run, rerun_processes=settings.rerun_processes)
        if not attempt.may_be_here:
            _stand_beside(settings)
            return
        program = Program(attempt, course)
    except AgentRecError as error:
        if is_the_command:
            _refuse(str(error), error.hint)
        _stand_beside(settings)  # another one has taken the run
        return
    ACTIVE.models, ACTIVE.tools = ResumedModels(program), program
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _forked(program, settings))
    if is_the_command:
        atexit.register(_say_what_was_resumed, program, os.getpid())


def _stand_beside(settings: Settings) -> None:
    """This process is not answered from the recording, and may do only what was not done before."""
    from otel_agentrec.resume.beside import BesideTools

    assert settings.resume is not None
    ACTIVE.models = None
    ACTIVE.tools = BesideTools(settings.resume, settings.resume_run, rerun_processes=settings.rerun_processes)


def _forked(program: Program[ResumedRun], settings: Settings) -> None:
    """In a forked child: the runs stay with the parent, unless none has begun there and they belong to such a child."""
    if ACTIVE.tools is program and (program.has_begun or not program.attempt.may_be_here):
        _stand_beside(settings)


def _say_what_was_resumed(program: Program[ResumedRun], pid: int) -> None:
    if os.getpid() != pid:
        return
    attempt = program.attempt
    if attempt.run is None:
        what = "only runs that were finished were answered" if program.has_begun else "nothing was resumed"
        PROCESS.notices.say(
            f"{what}: no call of this program was of run {attempt.root}"
            + (f" (agent {attempt.chosen.agent})" if attempt.chosen.agent else "")
        )


def _refuse(what: str, hint: str = "") -> None:
    PROCESS.notices.say(what, hint)
    sys.stderr.flush()
    os._exit(2)
