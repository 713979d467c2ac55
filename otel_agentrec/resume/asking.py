"""Who is asked about a tool call that our own decorators make: the ledger of a run that goes on, or only of this one."""

from __future__ import annotations

from otel_agentrec.capture.recorders import recorder_in_use
from otel_agentrec.errors import AgentRecError, LedgerUnavailable
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.protocol import ToolAnswerer
from otel_agentrec.intercept.recording_tools import RecordingTools
from otel_agentrec.resume.attempt import attempt_at
from otel_agentrec.resume.cache import ResumeCache
from otel_agentrec.resume.program import Program
from otel_agentrec.resume.prompted_run import PromptedRun
from otel_agentrec.settings import Settings

__all__ = ["Asking", "resumed_at"]

_RECORDING = RecordingTools()
_RESUMING: dict[tuple[str, str], Program[PromptedRun]] = {}


class Asking:
    """Whoever answers in this process; else the recording that the cache was made from; else the one that the environment
    names; else nobody, and calls are only journalled.

    Args:
        cache: one that is made from no recording is enough without a recorder: then nobody is asked.
    """

    def __init__(self, cache: ResumeCache | None = None) -> None:
        self._cache = cache

    def __call__(self) -> ToolAnswerer | None:
        if ACTIVE.tools is not None:
            return ACTIVE.tools
        cache = self._cache
        if cache is None:
            return _resuming(None, None)
        if cache.recording is None and recorder_in_use() is None:
            return None
        return _resuming(cache.recording, cache.run)


def _resuming(recording: str | None, run: str | None) -> ToolAnswerer:
    settings = Settings.load()
    if recording is None:
        recording, run = settings.resume, settings.resume_run
    if recording is None or not settings.enabled:
        return _RECORDING
    return resumed_at(recording, run, settings)


def resumed_at(recording: str, run: str | None, settings: Settings) -> Program[PromptedRun]:
    """Who answers the calls of the program that is resumed: one in this process.

    Raises:
        LedgerUnavailable: it can't be resumed.
    """
    try:
        attempt = attempt_at(recording, run, rerun_processes=settings.rerun_processes)
    except AgentRecError as error:  # a framework would tell it to the model, which would call again
        raise LedgerUnavailable(str(error), error.hint) from error
    key = (str(attempt.directory), attempt.root)
    known = _RESUMING.get(key)
    if known is None or known.attempt is not attempt:
        live, rerun = settings.on_divergence == "live", settings.rerun_tools
        known = _RESUMING[key] = Program(attempt, lambda one: PromptedRun(one, live=live, rerun_tools=rerun))
    return known
