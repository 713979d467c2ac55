"""The recorder's end for exporters of ours: they are given spans and log records that ended, also what processors saw."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from otel_agentrec.capture.exported import Exported
from otel_agentrec.capture.opening import frozen
from otel_agentrec.capture.spans import from_sdk_log
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.capture.tracking import Tracker
from otel_agentrec.capture.ways import EXPORTER

if TYPE_CHECKING:
    from otel_agentrec.capture.recorder import Recorder

__all__ = ["Exports"]

PATIENCE = 30.0
"""Seconds that an exporter waits for what processors told before."""


class Exports:
    """Args:
    write: puts an event into the journal.
    take: calls a function as one turn of the recorder.
    drain: has written all that was told before, within so many seconds.
    """

    def __init__(
        self,
        recorder: Recorder,
        tracker: Tracker,
        write: Callable[[StepEvent], object],
        take: Callable[..., None],
        drain: Callable[[float], bool],
    ) -> None:
        self._recorder = recorder
        self._tracker = tracker
        self._take = take
        self._drain = drain
        self._exported = Exported(tracker, write, self._is_late)
        self._is_expected = False
        self._mark = f"_otel_agentrec_{id(recorder)}"

    def expect(self) -> None:
        """Spans and log records that processors of ours see will also come through an exporter."""
        asked = os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE", "").strip()
        self._tracker.expect_exports(int(asked) if asked.isdecimal() else 2_048)
        self._is_expected = True

    def spans(self, batch: Sequence[Any]) -> None:
        """Record what no processor of ours saw of a batch of ended spans."""
        if not self._recorder.is_closed:
            self._drain(PATIENCE)
            self._take(self._exported.spans, batch)

    def logs(self, batch: Sequence[Any]) -> None:
        """Record what no processor of ours saw of a batch of log records."""
        if not self._recorder.is_closed:
            self._drain(PATIENCE)
            logs = self._tracker.logs
            for data in batch:
                if logs.wants(data) and self.is_new(data) and (echo := logs.echo()) is not None:
                    self._take(self._exported.log, frozen(from_sdk_log(data)), echo)

    def is_new(self, data: Any) -> bool:
        """Whether a log record was not told yet. A batch hands on a copy of it, but the same mapping of attributes."""
        if not self._is_expected:
            return True
        mine = object()
        marks: dict[str, Any] = getattr(data.log_record.attributes, "__dict__", {})
        return marks.setdefault(self._mark, mine) is mine  # one step: they may come at the same time

    def finish(self) -> None:
        """No more will come: tell what waits for its span."""
        self._exported.finish()

    def after_fork(self) -> None:
        self._exported.after_fork()

    def _is_late(self) -> None:
        recorder = self._recorder
        recorder.notices.once("twice", f"already recording through {recorder.way}: {EXPORTER} changes nothing")
