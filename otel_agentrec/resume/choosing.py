"""Which run is meant to be resumed: the one that is named, else the only one that did not come to its end."""

from __future__ import annotations

from dataclasses import dataclass

from otel_agentrec.errors import RecordingBusy, UsageError
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import EffectEvents
from otel_agentrec.nodes.fold import View
from otel_agentrec.nodes.runs import Run

__all__ = ["Resumable", "choose_root", "resumables"]


_STOPS = frozenset(
    [
        "LedgerUnavailable",
        "ResumeDivergence",
        "RunStopped",
        "ToolNotIntercepted",
        "ResultUnreadable",
        "UnknownOutcomeError",
    ]
)


@dataclass(frozen=True, slots=True)
class Resumable:
    """One root of a recording. ``runs``: its attempts, the first one first; ``agent`` and ``session`` of the first.

    ``stopped``: ids of runs that were stopped, so they did not come to a good end whatever their agents told.
    ``has_calls``: calls of it were intercepted, so that there is something to go on from. Telemetry may tell the same story a
    second time, in a trace of its own (LangChain's callbacks): nothing was asked in that.
    """

    root: str
    runs: tuple[Run, ...]
    stopped: frozenset[str] = frozenset()
    has_calls: bool = True

    @property
    def agent(self) -> str | None:
        return self.runs[0].agent

    @property
    def session(self) -> str | None:
        return self.runs[0].session

    @property
    def status(self) -> str:
        """Of the last attempt; ``open`` while any of them lives."""
        return "open" if any(run.status == "open" for run in self.runs) else self.runs[-1].status

    @property
    def is_finished(self) -> bool:
        """An attempt came to a good end."""
        return any(run.status == "ok" and run.id not in self.stopped for run in self.runs)


def resumables(recording: Recording, view: View) -> list[Resumable]:
    """All roots of a recording with their attempts, the earliest first."""
    ledger = EffectEvents()
    stopped: set[str] = set()
    asked = {wire.run or view.run_of_wire(wire) for wire in view.wires}
    for stream in recording.streams():
        for event in stream.events():
            if event.type == "RUN_RESUMED":
                ledger.add(event)
            elif event.type == "EFFECT_STARTED":
                asked.add(event.payload.get("root"))
            elif event.type == "ERROR" and event.payload.get("errorType") in _STOPS and event.run is not None:
                stopped.add(event.run)
    lineages = ledger.lineages
    by_root: dict[str, list[Run]] = {}
    for run in view.runs:
        by_root.setdefault(lineages.root(run.id), []).append(run)
    return [
        Resumable(
            root,
            tuple(sorted(runs, key=lambda run: (run.id != root, run.started_ms or 0))),
            frozenset(stopped),
            root in asked or any(run.id in asked for run in runs),
        )
        for root, runs in by_root.items()
    ]


def choose_root(found: list[Resumable], where: str, run: str | None = None) -> Resumable:
    """The root that is meant.

    Args:
        found: the roots of the recording; ``where``: its path, for messages.
        run: the id of the root or of any of its attempts, or the beginning of one.

    Raises:
        UsageError: there is none, there are several, or it is finished.
        RecordingBusy: it is still running.
    """
    see = f"otel-agentrec runs {where} lists them; name one with --run"
    if run is not None:
        exact = [one for one in found if any(attempt.id == run for attempt in one.runs)]
        meant = exact or [one for one in found if any(attempt.id.startswith(run) for attempt in one.runs)]
        if not meant:
            raise UsageError(f"there is no run {run!r} in {where}", see)
        if len(meant) > 1:
            raise UsageError(f"{len(meant)} runs begin with {run!r} in {where}", see)
        (one,) = meant
    else:
        unfinished = [one for one in found if not one.is_finished]
        open_ones = [one for one in unfinished if one.status != "open"] or unfinished
        if len(open_ones) > 1:
            open_ones = [one for one in open_ones if one.has_calls] or open_ones
        if not open_ones:
            raise UsageError(f"{where} holds no run that did not come to its end", "a finished run is not resumed")
        if len(open_ones) > 1:
            listed = ", ".join(f"{one.root} ({one.agent or 'no agent'}, {one.status})" for one in open_ones[:8])
            more = f" and {len(open_ones) - 8} more" if len(open_ones) > 8 else ""
            raise UsageError(f"{len(open_ones)} runs in {where} did not come to their end: {listed}{more}", see)
        (one,) = open_ones
    if one.is_finished:
        raise UsageError(
            f"run {one.root} in {where} is finished", "ResumeCache.from_recording(path, match='content') may read it"
        )
    if one.status == "open":
        raise RecordingBusy(f"run {one.root} in {where} is still running", "wait for its process to end, or stop it")
    return one
