"""A test whose agent is answered from a recording; nothing leaves the process."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.errors import AgentRecError, RunStopped
from otel_agentrec.intercept.stopped import STOPPED
from otel_agentrec.pytest_plugin.failure import again, fail, failure_text, in_test_words
from otel_agentrec.pytest_plugin.place import Place
from otel_agentrec.pytest_plugin.summary import summary_of
from otel_agentrec.replay.report import ReplayReport
from otel_agentrec.replay.whole import replaying

__all__ = ["Answering"]


class Answering:
    """Replays one test from a copy of its recording.

    Args:
        asked: arguments of :func:`~otel_agentrec.replay.whole.replaying`, from the marker.
    """

    mode = "replay"

    def __init__(self, item: pytest.Item, place: Place, asked: dict[str, Any]) -> None:
        self._item, self._place, self._asked = item, place, asked
        self._open = contextlib.ExitStack()
        self._report: ReplayReport | None = None
        self.passed: bool | None = None
        self.differs = False
        """The recording is not what the test does now: it should be recorded anew."""

    def begin(self) -> None:
        """Raises pytest's Failed: there is no recording, or it can't be replayed."""
        place = self._place
        if not place.exists():
            self.differs = True
            fail(f"there is no recording in {place.shown}\n  {again(self._item, 'record')}")
        folder = Path(tempfile.mkdtemp(prefix="agentrec-test-"))
        self._open.callback(shutil.rmtree, folder, ignore_errors=True)
        place.copy(folder)
        try:
            self._report = self._open.enter_context(replaying(folder, strict=False, **self._asked))
        except (AgentRecError, RunStopped) as error:
            self._open.close()
            self.differs = True
            said = str(error).replace(str(folder), place.shown)
            hint = in_test_words(error.hint).replace(str(folder), place.shown)
            fail(f"{said}\n  {hint}\n  {again(self._item)}" if hint else f"{said}\n  {again(self._item)}")

    def end(self) -> None:
        """Raises pytest's Failed: calls are left over, and that is forbidden."""
        self._open.close()
        STOPPED.clear()
        report = self._report
        assert report is not None
        self.differs = report.error is not None or bool(report.left_over and self.passed)
        if not self.passed:
            return
        summary = summary_of(self._item.config)
        if not report.left_over:
            summary.tell("replayed", self._place.shown)
            return
        left = [
            (f"step {one['step']}: " if one.get("step") is not None else "") + f"{one['kind']} {one['name']}"
            for one in report.left_over
        ]
        calls = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        if self._item.config.getini("agentrec_strict"):
            fail(f"recorded calls are left that nobody asked for: {calls}\n  {again(self._item)}")
        summary.tell("stale", self._item.nodeid, calls)

    def failure(self) -> str | None:
        """Why the replay was stopped, for people; None when it was not."""
        report = self._report
        if report is None or report.error is None:
            return None
        return failure_text(report, self._item, self._place.shown)
