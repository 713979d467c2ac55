"""Runs as they go: each call printed once it has ended, while the program that makes them still writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from otel_agentrec.cli.runs import newest_first
from otel_agentrec.cli.terminal import console, print_json
from otel_agentrec.cli.timeline import brief, headline, line

if TYPE_CHECKING:
    from otel_agentrec.nodes.fold import View
    from otel_agentrec.nodes.runs import Run

__all__ = ["follow"]

PAUSE = 0.5
"""Seconds between two looks. A look that takes longer is followed by a pause as long as itself."""


def follow(recording: str | Path, chosen: str | None, *, as_json: bool) -> None:
    """Print the calls of a run until it has ended; of None: of the newest run and all that come, until interrupted.

    Raises:
        RecordingNotFound, RecordingUnreadable: there is no recording to look into.
    """
    teller = _Teller(as_json)
    passed_over: set[str] | None = None
    for view in _looks(recording):
        runs = newest_first(view.runs)[::-1]
        if chosen is not None:
            runs = [run for run in runs if run.id == chosen]
        elif passed_over is None:
            passed_over = {run.id for run in runs[:-1]}
        for run in runs:
            if run.id not in (passed_over or ()):
                teller.tell(view, run)
        if chosen is not None and runs and runs[0].status != "open":
            return


class _Teller:
    """Prints what it has not printed yet: a run's headline when it is first seen and when its status changes, and its calls."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._out = console()
        self._runs: dict[str, str] = {}
        self._records: set[tuple[str, str]] = set()
        self._last: str | None = None
        """The run whose calls were printed last."""

    def tell(self, view: View, run: Run) -> None:
        status = self._runs.get(run.id)
        if status is None:
            self._headline(run)
        for record in view.records(run.id):
            if (record.record_id, record.status) in self._records:
                continue
            self._records.add((record.record_id, record.status))
            if self._as_json:
                print_json(brief(record))
                continue
            if self._last != run.id:
                self._headline(run)
            self._out.print(line(run, record), soft_wrap=True)
        if status is not None and status != run.status:
            self._headline(run)
        self._runs[run.id] = run.status

    def _headline(self, run: Run) -> None:
        self._last = run.id
        if not self._as_json:
            self._out.print(headline(run), soft_wrap=True)


def _looks(recording: str | Path) -> Iterator[View]:
    """The view of the recording, now and whenever a file of it has grown."""
    from otel_agentrec.journal.reader import Recording
    from otel_agentrec.nodes.fold import fold

    seen: object = None
    while True:
        begun = monotonic()
        there = Recording(recording)
        # a process that ended without closing its stream leaves the same bytes: whether it lives is part of what is seen
        sizes = [(str(stream.path), stream.path.stat().st_size, stream.is_live()) for stream in there.streams()]
        if sizes != seen:
            seen = sizes
            yield fold(there)
        sleep(max(PAUSE, monotonic() - begun))
