"""Every error that a user can meet, each with a way out.

An error carries ``what`` happened (its message) and ``hint``: one line that says how to mend it. The command line prints
both and exits with ``exit_code``; a library user catches :class:`AgentRecError`.
"""

from __future__ import annotations

__all__ = [
    "AgentRecError",
    "ConfigurationError",
    "ExtraMissing",
    "RecordingBusy",
    "RecordingNotFound",
    "RecordingTampered",
    "RecordingUnreadable",
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


class RecordingTampered(AgentRecError):
    """The chain does not hold; the report says where."""

    exit_code = 1
    default_hint = "otel-agentrec verify RECORDING shows file and index of the first broken line"
