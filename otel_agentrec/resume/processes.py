"""The other processes of a program that is resumed: what they did would be done again when they are started again.

Only one process of a program is answered from its recording. Which others belong to it, the paths in STREAM_OPENED tell (see
:mod:`otel_agentrec.journal.process`); of recordings without them, that a stream was opened while the run was not known to
have ended. Whatever writes into the same directory under another command is another program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from otel_agentrec.errors import RecordingBusy, UsageError
from otel_agentrec.journal.claims import over_path
from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.process import command_of, is_below, own_path
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import DONE, FAILED, NOT_BEGUN, Effect, read_effects
from otel_agentrec.nodes.fold import View
from otel_agentrec.nodes.skeleton import OPEN, Span

if TYPE_CHECKING:
    from otel_agentrec.resume.choosing import Resumable

__all__ = ["Kin", "Process", "kin_of", "overs", "processes_of", "refuse_kin", "sizes"]

_NAMED = 4


@dataclass(frozen=True, slots=True)
class Process:
    """Who wrote a stream. ``path``: see :mod:`otel_agentrec.journal.process`; None in recordings that do not tell it.
    ``opened_ms``: when it did, ms since the epoch."""

    stream: str
    path: str | None = None
    host: str | None = None
    boot: str | None = None
    pid: int | None = None
    opened_ms: int = 0
    parent_stream: str | None = None

    def is_same(self, other: Process) -> bool:
        """Whether both streams are of one process."""
        return self.identity == other.identity

    @property
    def identity(self) -> object:
        """The same for all streams of one process."""
        return self.path if self.path is not None else (self.host, self.boot, self.pid)


@dataclass(slots=True)
class Kin:
    """A stream of another process of the program. ``effects`` would happen again, ``answers`` (of models) be paid again."""

    process: Process
    effects: list[Effect] = field(default_factory=list)
    answers: int = 0
    is_alive: bool = False

    @property
    def has_done(self) -> bool:
        return bool(self.effects or self.answers)

    def __str__(self) -> str:
        counted = Counter(effect.name for effect in self.effects)
        done = [name + (f" ×{n}" if n > 1 else "") for name, n in counted.most_common(_NAMED)]
        done += ["…"] if len(counted) > _NAMED else []
        done += [f"{self.answers} model call{'s' if self.answers > 1 else ''}"] if self.answers else []
        return f"process {self.process.pid} (stream {self.process.stream}) did {', '.join(done)}"


def processes_of(recording: Recording) -> dict[str, Process]:
    """Who wrote each stream of a recording."""
    found = {}
    for stream in recording.streams():
        first = stream.first()
        if first is not None and first.type == "STREAM_OPENED":
            told = first.payload
            texts = [told.get(key) for key in ("process", "host", "bootId", "parentStream")]
            path, host, boot, parent = (one if isinstance(one, str) and one else None for one in texts)
            pid = told.get("pid")
            number = pid if isinstance(pid, int) else None
            found[stream.name] = Process(stream.name, path, host, boot, number, first.ts, parent)
    return found


def kin_of(recording: Recording, view: View, program: Sequence[Resumable]) -> list[Kin]:
    """The streams of other processes of the program, each with what it did.

    Args:
        program: the runs that are gone on with or answered: their processes are no others.
    """
    processes = processes_of(recording)
    ours = list({one.stream: one for run in program for one in run.processes if one.stream in processes}.values())
    streams = {stream.name: stream for stream in recording.streams()}
    ended = {one.stream: _end(recording, one) for one in ours if one.path is None}
    found = {
        name: Kin(process, is_alive=streams[name].is_live())
        for name, process in processes.items()
        if not any(process.is_same(one) for one in ours) and any(_belongs(process, one, ended) for one in ours)
    }
    if found:
        _count(found, recording, view, frozenset(run.root for run in program))
    return list(found.values())


def refuse_kin(kin: Iterable[Kin], root: str, *, rerun: bool = False) -> None:
    """Refuse to resume a run whose program had other processes do what would be done again.

    Args:
        rerun: they may do it again.

    Raises:
        RecordingBusy: one of them is still running.
        UsageError: they have done something.
    """
    kin = list(kin)
    alive = [one.process for one in kin if one.is_alive]
    if alive:
        raise RecordingBusy(
            f"process {alive[0].pid} (stream {alive[0].stream}), which belongs to the program of run {root}, is still running",
            "wait for it to end, or stop it",
        )
    done = [one for one in kin if one.has_done]
    if done and not rerun:
        more = f"; and {len(done) - _NAMED} more" if len(done) > _NAMED else ""
        told = "; ".join(map(str, done[:_NAMED])) + more
        raise UsageError(
            f"run {root} can't be resumed: other processes of its program would do again what they did: {told}",
            "where that does no harm, --rerun-processes lets them; only one process is answered from the recording",
        )


def overs(directory: Path, program: Iterable[Resumable]) -> list[Path]:
    """The files that tell the programs of earlier attempts that they are over; not that of the command that goes on."""
    told = [one.path for run in program for one in run.processes if one.path is not None]
    paths = [path for path in told if not is_below(own_path(), command_of(path))]
    return list({over: None for path in paths if (over := over_path(directory, path)) is not None})


def sizes(recording: Recording) -> dict[str, int]:
    """The streams and how much they hold: the same as before, and nothing has happened since."""
    return {stream.name: stream.path.stat().st_size for stream in recording.streams()}


def _belongs(other: Process, ours: Process, ended: dict[str, int | None]) -> bool:
    if ours.path is not None:
        return other.path is not None and _is_of_program(other.path, ours.path)
    if other.path is not None or (other.host, other.boot) != (ours.host, ours.boot):
        return False
    end = ended.get(ours.stream)
    return other.parent_stream == ours.stream or (
        other.opened_ms >= ours.opened_ms and (end is None or other.opened_ms <= end)
    )


def _is_of_program(path: str, ours: str) -> bool:
    """Whether a process is started again together with ours."""
    command = command_of(ours)
    if command != ours and is_below(own_path(), command):  # whoever starts it again was started by that command too
        command = ours
    return path == command or is_below(path, command)


def _end(recording: Recording, process: Process) -> int | None:
    """When a process had ended, ms since the epoch; None: it was killed, and nobody knows."""
    stream = recording.stream(process.stream)
    last = stream.last() if stream is not None else None
    return last.ts if last is not None and last.type == "STREAM_SEALED" else None


def _count(found: dict[str, Kin], recording: Recording, view: View, roots: frozenset[str]) -> None:
    runs = {view.run(s) for s in view.spans() if s.stream in found}
    records = [record for run in runs for record in view.records(run)]
    effects = list(read_effects(recording, records))
    settled = {
        effect.span
        for effect in effects
        if effect.root in roots
        and effect.stream not in found
        and effect.state in (DONE, FAILED)
        and effect.lost is None
    }
    for effect in effects:
        kin = found.get(effect.stream)
        if kin is None or effect.effect in (False, "container") or effect.state == NOT_BEGUN:
            continue
        span = view.span(*effect.span) if effect.span is not None else None
        if not _is_inside(span, settled):
            kin.effects.append(effect)
    for s in view.leading:
        kin = found.get(s.stream)
        answered = any(member.answered_from is not None for member in s.members())
        if kin is not None and s.kind == Kind.MODEL and s.state != OPEN and not answered and not _is_inside(s, settled):
            kin.answers += 1


def _is_inside(s: Span | None, settled: Sequence[object] | set[tuple[str, str] | None]) -> bool:
    """Whether a call was made for one that is answered itself, so that nobody will make it again."""
    return s is not None and any((one.trace, one.span) in settled for one in (s, *s.lineage()))
