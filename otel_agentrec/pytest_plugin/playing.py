"""One test and its recording: which of recording and replaying it is, and what its report says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.pytest_plugin.answering import Answering
from otel_agentrec.pytest_plugin.failure import fail, longrepr
from otel_agentrec.pytest_plugin.making import Making
from otel_agentrec.pytest_plugin.place import place_of

__all__ = ["MODE", "PLAYED", "AgentRecording", "Played", "play", "seen"]

NAMES = frozenset({"path", "run", "inert", "rerun_tools", "allow_hosts", "retries"})
PLAYED: pytest.StashKey[Answering | Making] = pytest.StashKey()
MODE: pytest.StashKey[str] = pytest.StashKey()
"""What a refresh wants of the next try of a test."""


@dataclass(frozen=True, slots=True)
class AgentRecording:
    """What a test is given as ``agentrec_recording``. ``path``: where its recording stands; ``mode``: record or replay."""

    path: Path
    mode: str


@dataclass(frozen=True, slots=True)
class Played:
    """A test that is recorded or replayed, until ``end`` is called."""

    recording: AgentRecording
    _by: Answering | Making

    def end(self) -> None:
        self._by.end()


def play(item: pytest.Item) -> Played:
    """Begin: from now on the calls of this process are recorded, or answered. Raises pytest's Failed."""
    place, asked = place_of(item), _asked_for(item)
    mode = item.stash.get(MODE, item.config.getoption("agentrec"))
    by: Answering | Making = (Making if mode == "record" else Answering)(item, place, asked)
    item.stash[PLAYED] = by
    by.begin()
    return Played(AgentRecording(place.path, by.mode), by)


def seen(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """A phase of a test has ended: what stopped its replay is its failure, whatever the program made of it."""
    by = item.stash.get(PLAYED, None)
    if by is None:
        return
    if call.when == "call":
        by.passed = report.passed
    text = by.failure()
    if text is None or hasattr(report, "wasxfail") or (call.excinfo is None and call.when != "call"):
        return
    by.passed = False
    report.outcome = "failed"
    report.longrepr = longrepr(item, text + _then(call))


def _then(call: pytest.CallInfo[None]) -> str:
    """What the test made of it, where it is something else."""
    from otel_agentrec.errors import RunStopped

    error = call.excinfo.value if call.excinfo is not None else None
    if error is None:
        return "\n  the program went on as if nothing had happened"
    if isinstance(error, RunStopped):
        return ""
    first = (str(error).splitlines() or [""])[0]
    return f"\n  then the test failed: {type(error).__name__}: {first[:160]}"


def _asked_for(item: pytest.Item) -> dict[str, Any]:
    """The marker's arguments for a replay; those of a marker nearer to the test come first."""
    asked: dict[str, Any] = {}
    for marker in item.iter_markers("agentrec"):
        unknown = sorted(set(marker.kwargs) - NAMES)
        if unknown or len(marker.args) > 1:
            what = unknown[0] if unknown else "more than one argument without a name"
            fail(f"@pytest.mark.agentrec does not know {what}: it takes {', '.join(sorted(NAMES))}")
        for name, value in marker.kwargs.items():
            asked.setdefault(name, value)
    asked.pop("path", None)
    return asked
