"""Every error that a user can meet, each with a way out.

An error carries ``what`` happened (its message) and ``hint``: one line that says how to mend it. The command line prints
both and exits with ``exit_code``; a library user catches :class:`AgentRecError`.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AgentRecError",
    "AnswerUnavailable",
    "CannotReplay",
    "ConfigurationError",
    "EventInvalid",
    "ExtraMissing",
    "LedgerUnavailable",
    "ProcessNotResumed",
    "RecordedError",
    "RecordingBusy",
    "RecordingEnds",
    "RecordingNotFound",
    "RecordingTampered",
    "RecordingUnreadable",
    "ReplayDivergence",
    "ResumeDivergence",
    "RunStopped",
    "StoreUnavailable",
    "ToolNotIntercepted",
    "UnknownOutcomeError",
    "UsageError",
]


class AgentRecError(Exception):
    """Base of all errors raised by otel-agentrec.

    Args:
        what: one line: what happened and where.
        hint: one line: how to mend it. Empty when there is nothing a person can do.
    """

    exit_code = 2
    default_hint = ""

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.hint = self.default_hint if hint is None else hint


class UsageError(AgentRecError):
    """A command or call was given something it can't use."""


class ConfigurationError(AgentRecError):
    """A setting has a value that can't be used, or two settings contradict each other."""


class EventInvalid(AgentRecError):
    """An event that was to be appended has a type that is not known, or a payload that does not fit its type."""


class ExtraMissing(AgentRecError):
    """A feature needs a package that is not installed; the hint names the extra."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs packages that are not installed", f"pip install 'otel-agentrec[{extra}]'")


class RecordingNotFound(AgentRecError):
    """The path does not exist, or holds no recording."""

    default_hint = "give the directory that was set as OTEL_AGENTREC_PATH (or --out); it holds *.jsonl files"


class RecordingUnreadable(AgentRecError):
    """The path exists but can't be read as a recording."""


class RecordingBusy(AgentRecError):
    """Another process holds the lock that is needed."""

    default_hint = "wait for the other process to end, or give it its own directory"


class StoreUnavailable(AgentRecError):
    """The database of a store can't be reached, or can't be used."""

    default_hint = "check that the server runs, and host, port, user, password and database in the URL"


class RecordingTampered(AgentRecError):
    """The chain does not hold; the report says where."""

    exit_code = 1
    default_hint = "otel-agentrec verify RECORDING shows file and index of the first broken line"


class RecordedError(AgentRecError):
    """A recorded call failed, and so its replay does: nothing was asked.

    Args:
        error_type: class of the recorded error, as the recording names it; None when nobody knows how the call ended.
        message: what it said.
        partial: what had been answered by then (an ``AgentModelResult``), if anything.
    """

    exit_code = 1
    default_hint = "the recording holds this failure; ask again with a live replay"

    def __init__(self, error_type: str | None, message: str, partial: object = None) -> None:
        super().__init__(f"{error_type}: {message}" if error_type else message)
        self.error_type = error_type
        self.message = message
        self.partial = partial


class CannotReplay(AgentRecError):
    """A recording can't be replayed: something in it is not there any more, or no single run is meant."""

    exit_code = 125
    """What ``git bisect run`` takes for "this revision can't be tested"."""


class RunStopped(BaseException):
    """The run must not go on, and no framework may turn this into text for its model.

    Not an ``Exception`` on purpose: agent frameworks catch those and let the model try again. A process in which one
    was raised for a run raises it again on every further call of that run.

    Args:
        what: one line: what happened and where.
        hint: one line: how to go on.
    """

    exit_code = 2
    default_hint = ""

    root: str | None = None
    """Id of the run's first attempt, where it is known."""

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.hint = self.default_hint if hint is None else hint


class UnknownOutcomeError(RunStopped):
    """An effect was begun and nobody knows whether it happened.

    ``effects``: what is known of each (``effect_id``, ``name``, ``arguments``, ``started_ms``).
    """

    effects: tuple[Any, ...] = ()
    exit_code = 75
    default_hint = "find out what happened, then: otel-agentrec resolve RECORDING EFFECT --done OUTPUT | --not-done"


class ResumeDivergence(RunStopped):
    """The resumed program asks for something else than the recorded run did at this point."""

    exit_code = 76
    default_hint = (
        "otel-agentrec why-miss RECORDING REQUEST.json names what differs; --on-divergence=live goes on for real"
    )


class ReplayDivergence(RunStopped):
    """The replayed program asks for something that the recording does not hold.

    ``divergence``: step, JSON path, recorded and new value (see ``otel_agentrec.replay.divergence``), where they are known.
    """

    exit_code = 1
    divergence: Any = None


class RecordingEnds(RunStopped):
    """The replayed program asks for more, and the recording was cut off here: nobody knows what came."""

    exit_code = 125
    default_hint = "the recorded run did not come to its end; otel-agentrec run --resume goes on for real"


class AnswerUnavailable(RunStopped):
    """The call was recorded, and what it gave can't be handed out (redacted, erased, cut off)."""

    exit_code = 125


class ToolNotIntercepted(RunStopped):
    """An answer from the recording asks for a tool that would run for real."""

    default_hint = "decorate it with @resumable_tool, or allow it: --rerun-tools NAME"


class ProcessNotResumed(RunStopped):
    """A process beside the one that is resumed asks for an effect that the recorded run had done."""

    default_hint = "only one process of a program is answered from its recording; docs/resume.md says how to go on"


class LedgerUnavailable(RunStopped):
    """The intent to run an effect can't be made durable, so it is not run."""

    default_hint = "free disk space or mend the recording; OTEL_AGENTREC_ENABLED=false runs without recording"
