"""Which run is meant to be resumed: the one that is named, else the only one that did not come to its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from otel_agentrec.errors import RecordingBusy, UsageError
from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.process import depth_of, is_below, own_path
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import EffectEvents
from otel_agentrec.nodes.fold import View
from otel_agentrec.nodes.runs import Run
from otel_agentrec.resume.processes import Process, processes_of

__all__ = ["Resumable", "choose_root", "resumables", "siblings_of"]


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
    is_cut: bool = False
    """The process of the last attempt, which the command itself had started, was killed or ended by an exception."""

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
        return any(map(self.ended_well, self.runs))

    def ended_well(self, run: Run) -> bool:
        """Whether this attempt came to a good end."""
        return run.status == "ok" and run.id not in self.stopped


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
                # a run is matched to a recorded one when it first asks, also where it is stopped at that
                asked.update({event.run, event.payload.get("root")})
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
    cut = {name for name in failed - alive if name in processes and depth_of(processes[name].path or "") <= 1}
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
            is_cut=begun.get(in_order(root)[-1].id) in cut,
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
            cut = _cut_between(found)
            if len(cut) > 1:
                told = _listed([runs[-1] for runs in cut])
                raise UsageError(
                    f"{len(cut)} programs in {where} were cut off between their runs, the last ones: {told}", see
                )
            open_ones = [runs[-1] for runs in cut]
        if not open_ones:
            hint = "a finished run is not resumed"
            if below:
                hint = f"in processes that the program started, {_listed(below)} did not; name one with --run"
            raise UsageError(f"{where} holds no run that did not come to its end", hint)
        if len(open_ones) > 1:
            told = f"{len(open_ones)} runs in {where} did not come to their end: {_listed(open_ones)}"
            raise UsageError(told, f"{see}; the others of its process are answered and gone on with too")
        (one,) = open_ones
    if one.is_finished and not any(one in runs for runs in _cut_between(found)):
        raise UsageError(
            f"run {one.root} in {where} is finished", "ResumeCache.from_recording(path, match='content') may read it"
        )
    if one.status == "open":
        raise RecordingBusy(f"run {one.root} in {where} is still running", "wait for its process to end, or stop it")
    return one


def _cut_between(found: list[Resumable]) -> list[list[Resumable]]:
    """The programs that were cut off between their runs: all came to their end, and the process that made the last did not.
    What it would have gone on to is not known; the runs themselves are only answered."""
    programs = [one for one in _programs(found) if all(run.is_finished or run.is_echo for run in one)]
    last = ([run for run in one if run.is_cut and run.has_calls] for one in programs)
    return [runs for runs in last if runs]


def _programs(found: Iterable[Resumable], without: str | None = None) -> list[list[Resumable]]:
    """The runs of one process after the other, and of the processes that gone on with any of them, are one program each.

    Args:
        without: path of a process that does not count.
    """
    left = list(found)
    programs = []
    while left:
        program, left = left[:1], left[1:]
        reached: set[object] = set()
        near = program
        while near:
            reached.update(process.identity for run in near for process in run.processes if process.path != without)
            near = [
                run
                for run in left
                if any(process.identity in reached for process in run.processes if process.path != without)
            ]
            left = [run for run in left if run not in near]
            program = [*program, *near]
        programs.append(program)
    return programs


def siblings_of(found: Iterable[Resumable], chosen: Resumable, view: View) -> list[Resumable]:
    """The other runs of the chosen run's processes, finished or not, the earliest first: started again, the program makes them
    again. A process counts that made any attempt of any of them; this one does not.

    Those are left out that telemetry told of a second time: nobody asked in them. One that had not come to its first call is
    none of these.
    """
    others = [one for one in found if one.root != chosen.root]
    program, *_ = _programs([chosen, *others], without=own_path())
    siblings = [one for one in program[1:] if one.has_calls or _is_blank(view, one) or _has_prompts(view, one)]
    return sorted(siblings, key=lambda one: (one.runs[0].started_ms or 0, one.root))


def _is_blank(view: View, one: Resumable) -> bool:
    """Whether a run was cut off before any call of it had ended."""
    records = view.records({run.id for run in one.runs}) if not one.is_finished else ()
    return not one.is_finished and not any(record.status in ("ok", "error") for record in records)


def _has_prompts(view: View, one: Resumable) -> bool:
    """Whether a client that knows its prompts asked in a run; such calls need not be seen on the wire."""
    return any("prompt" in record.keys for record in view.records({run.id for run in one.runs}))


def _started(one: Resumable, other: Resumable) -> bool:
    """Whether the process of one run started that of another."""
    above, below = ([p.path for p in each.processes[:1] if p.path is not None] for each in (one, other))
    return bool(above and below) and is_below(below[0], above[0])


def _listed(found: list[Resumable]) -> str:
    listed = ", ".join(f"{one.root} ({one.agent or 'no agent'}, {one.status})" for one in found[:8])
    return listed + (f" and {len(found) - 8} more" if len(found) > 8 else "")
