"""Which run is meant to be resumed: the one that is named, else the only one that did not come to its end."""

from __future__ import annotations

from dataclasses import dataclass

from otel_agentrec.errors import RecordingBusy, UsageError
from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.process import is_below
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import EffectEvents
from otel_agentrec.nodes.fold import View
from otel_agentrec.nodes.runs import Run
from otel_agentrec.resume.processes import Process, processes_of

__all__ = ["Resumable", "choose_root", "resumables"]


_STOPS = frozenset(
    [
        "LedgerUnavailable",
        "ResumeDivergence",
        "RunStopped",
        "ToolNotIntercepted",
        "ProcessNotResumed",
        "ResultUnreadable",
        "UnknownOutcomeError",
    ]
)


@dataclass(frozen=True, slots=True)
class Resumable:
    """One root of a recording. ``runs``: its attempts, the first one first; ``agent`` and ``session`` of the first.

    ``stopped``: ids of runs that did not come to a good end whatever their spans tell: they were stopped; or no agent's span
    tells of an end, and their process did not come to a good end either.
    ``has_calls``: calls of it were intercepted, so that there is something to go on from. Telemetry may tell the same story a
    second time, in a trace of its own (LangChain's callbacks): nothing was asked in that.
    """

    root: str
    runs: tuple[Run, ...]
    stopped: frozenset[str] = frozenset()
    has_calls: bool = True
    is_echo: bool = False
    """No call of it was intercepted, but calls of another run of the same process were: it is that one's story once more."""
    alive: frozenset[str] = frozenset()
    """Ids of runs without an agent whose process is still running, so that they may go on."""
    processes: tuple[Process, ...] = ()
    """In which each of ``runs`` began."""

    @property
    def agent(self) -> str | None:
        return self.runs[0].agent

    @property
    def session(self) -> str | None:
        return self.runs[0].session

    @property
    def status(self) -> str:
        """Of the last attempt; ``open`` while any of them lives."""
        if any(run.status == "open" or run.id in self.alive for run in self.runs):
            return "open"
        last = self.runs[-1]
        return "interrupted" if last.status == "ok" and not self.is_finished else last.status

    @property
    def is_finished(self) -> bool:
        """An attempt came to a good end."""
        return any(run.status == "ok" and run.id not in self.stopped for run in self.runs)


def resumables(recording: Recording, view: View) -> list[Resumable]:
    """All roots of a recording with their attempts, the earliest first."""
    ledger = EffectEvents()
    stopped: set[str] = set()
    failed: set[str] = set()
    asked = {wire.run or view.run_of_wire(wire) for wire in view.wires}
    for stream in recording.streams():
        for event in stream.events():
            if event.type == "RUN_RESUMED":
                ledger.add(event)
            elif event.type == "EFFECT_STARTED":
                asked.add(event.payload.get("root"))
            elif event.type == "ERROR" and event.payload.get("errorType") in _STOPS and event.run is not None:
                stopped.add(event.run)
            elif event.type == "ERROR" and event.run is None and event.session is None:
                failed.add(stream.name)
        if not stream.sealed:
            failed.add(stream.name)
    streams, agents, begun = _streams(view)
    processes = processes_of(recording)
    alone = {run: where for run, where in streams.items() if run not in agents and run in asked}
    stopped.update(run for run, where in alone.items() if not where.isdisjoint(failed))
    alive = {stream.name for stream in recording.streams() if stream.name in failed and stream.is_live()}
    lineages = ledger.lineages
    by_root: dict[str, list[Run]] = {}
    for run in view.runs:
        by_root.setdefault(lineages.root(run.id), []).append(run)
    told = {stream for run in asked if run in streams for stream in streams[run]}

    def has_calls(root: str) -> bool:
        return root in asked or any(run.id in asked for run in by_root[root])

    def in_order(root: str) -> list[Run]:
        return sorted(by_root[root], key=lambda run: (run.id != root, run.started_ms or 0))

    return [
        Resumable(
            root,
            tuple(in_order(root)),
            frozenset(stopped),
            has_calls(root),
            is_echo=not has_calls(root)
            and any(not streams[run.id].isdisjoint(told) for run in runs if run.id in streams),
            alive=frozenset(run for run, where in alone.items() if not where.isdisjoint(alive)),
            processes=tuple(processes[begun[run.id]] for run in in_order(root) if begun.get(run.id) in processes),
        )
        for root, runs in by_root.items()
    ]


def _streams(view: View) -> tuple[dict[str, set[str]], set[str], dict[str, str]]:
    """The streams of each run, the runs with an agent's span, and the stream in which each run began. Of a run without an agent
    all that tells of its end is its process."""
    streams: dict[str, set[str]] = {}
    agents: set[str] = set()
    first: dict[str, tuple[bool, int, str]] = {}
    for s in view.spans():
        run = view.run(s)
        streams.setdefault(run, set()).add(s.stream)
        if s.kind == Kind.AGENT:
            agents.add(run)
        # an agent's span is around all that it had other processes do
        at = s.kind != Kind.AGENT, s.start or 0, s.stream
        first[run] = min(at, first.get(run, at))
    return streams, agents, {run: stream for run, (*_, stream) in first.items()}


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
        unfinished = [one for one in found if not one.is_finished and not one.is_echo]
        # a process that another one of the program started is gone on with by name only: the program begins above it
        below = [one for one in unfinished if any(_started(other, one) for other in found)]
        unfinished = [one for one in unfinished if one not in below]
        open_ones = [one for one in unfinished if one.status != "open"] or unfinished
        if len(open_ones) > 1:
            open_ones = [one for one in open_ones if one.has_calls] or open_ones
        if not open_ones:
            hint = "a finished run is not resumed"
            if below:
                hint = f"in processes that the program started, {_listed(below)} did not; name one with --run"
            raise UsageError(f"{where} holds no run that did not come to its end", hint)
        if len(open_ones) > 1:
            raise UsageError(f"{len(open_ones)} runs in {where} did not come to their end: {_listed(open_ones)}", see)
        (one,) = open_ones
    if one.is_finished:
        raise UsageError(
            f"run {one.root} in {where} is finished", "ResumeCache.from_recording(path, match='content') may read it"
        )
    if one.status == "open":
        raise RecordingBusy(f"run {one.root} in {where} is still running", "wait for its process to end, or stop it")
    return one


def _started(one: Resumable, other: Resumable) -> bool:
    """Whether the process of one run started that of another."""
    above, below = ([p.path for p in each.processes[:1] if p.path is not None] for each in (one, other))
    return bool(above and below) and is_below(below[0], above[0])


def _listed(found: list[Resumable]) -> str:
    listed = ", ".join(f"{one.root} ({one.agent or 'no agent'}, {one.status})" for one in found[:8])
    return listed + (f" and {len(found) - 8} more" if len(found) > 8 else "")
