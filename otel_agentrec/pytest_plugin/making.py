"""A test whose agent makes real calls, which are recorded; kept only when the test goes well."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from otel_agentrec.capture.configure import attach_to_providers
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.capture.ways import CONFIGURE
from otel_agentrec.errors import AgentRecError, RunStopped
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.install import install, is_installed, uninstall
from otel_agentrec.intercept.recording_tools import RecordingTools
from otel_agentrec.otel import recording as _recording  # noqa: F401 - brings the points of interception
from otel_agentrec.pytest_plugin.failure import fail, in_test_words
from otel_agentrec.pytest_plugin.place import Place
from otel_agentrec.pytest_plugin.summary import summary_of
from otel_agentrec.replay.recorded_run import load
from otel_agentrec.settings import Settings

__all__ = ["Making"]

TAKEN = ("OTEL_AGENTREC_REDACT", "OTEL_AGENTREC_WIRE_PATHS", "OTEL_AGENTREC_SESSION_ATTRIBUTE")
"""Settings of the environment that count here, too; all others are those of another recording."""


class Making:
    """Records one test.

    Args:
        place: where the recording is put in the end.
        asked: the marker's arguments that a replay will be given.
    """

    mode = "record"

    def __init__(self, item: pytest.Item, place: Place, asked: dict[str, object]) -> None:
        self._item, self._place, self._asked = item, place, asked
        self.passed: bool | None = None

    def begin(self) -> None:
        """Raises pytest's Failed: what would be recorded could not be kept."""
        place, taken = self._place, summary_of(self._item.config).recorded_at
        foreign = place.foreign()
        if foreign is not None:
            fail(f"{place.shown} holds {foreign}, which is no part of a recording: nothing can be recorded there")
        other = taken.setdefault(os.path.realpath(place.path), self._item.nodeid)
        if other != self._item.nodeid:
            fail(f"{other} has recorded into {place.shown} in this very run: give each test a path of its own")
        self._folder = Path(tempfile.mkdtemp(prefix="agentrec-test-"))
        self._was_installed = is_installed()
        try:
            self._recorder = recorder = Recorder(_settings(self._folder), way=CONFIGURE)
        except AgentRecError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            fail(f"nothing can be recorded: {error}\n  {error.hint}")
        attach_to_providers(recorder, CONFIGURE)
        recorder.edge.record_program()
        install()
        self._before, ACTIVE.tools = ACTIVE.tools, RecordingTools(recorder)

    def end(self) -> None:
        """Raises pytest's Failed: what was recorded could not be replayed, and is not kept."""
        ACTIVE.tools = self._before
        self._recorder.shutdown()
        if not self._was_installed:
            uninstall()
        try:
            if self.passed:
                self._keep()
            elif self.passed is False and self._place.exists():
                summary_of(self._item.config).tell("kept", self._place.shown)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def failure(self) -> str | None:
        return None

    def _keep(self) -> None:
        place, summary = self._place, summary_of(self._item.config)
        (self._folder / "resume.key").unlink(missing_ok=True)  # whoever clones the repository has none either
        runs, inert = self._asked.get("run") or (), self._asked.get("inert") or ()
        try:
            loaded = load(
                self._folder,
                [runs] if isinstance(runs, str) else list(runs),  # type: ignore[call-overload]
                inert=[inert] if isinstance(inert, str) else list(inert),  # type: ignore[call-overload]
                rerun=self._asked.get("rerun_tools") or (),  # type: ignore[arg-type]
            )
            place.put(self._folder)
        except (AgentRecError, RunStopped) as error:
            said = str(error).replace(str(self._folder), "what was recorded")
            fail(f"not kept: {said}\n  {in_test_words(error.hint)}")
        except (ValueError, OSError) as error:
            fail(f"not kept: {error}")
        rerun = self._asked.get("rerun_tools") or ()
        summary.tell("recorded", place.shown)
        open_tools = [name for name in loaded.unseen if "all" not in rerun and name not in rerun]  # type: ignore[operator]
        if open_tools:
            summary.tell("unseen", self._item.nodeid, f"{open_tools!r}")
        if place.is_hidden_from_git():
            summary.tell("hidden", place.shown)


def _settings(folder: Path) -> Settings:
    environ = {name: os.environ[name] for name in TAKEN if name in os.environ}
    if environ.get("OTEL_AGENTREC_REDACT", "").strip().lower() == "off":
        del environ["OTEL_AGENTREC_REDACT"]  # it is to be committed
    return Settings.load(environ, path=folder, enabled=True, wire=True, origin="pytest")
