"""One attempt to finish a run: it holds the run's claim, knows what was done before, and says so in the journal.

A program may have held several runs in one process. One of them is chosen; the others of that process are its siblings, each
an attempt of its own: finished ones to be answered from their recording, others to be gone on with.
"""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from opentelemetry import trace
from opentelemetry.trace import SpanContext, TraceFlags

from otel_agentrec.audit.verify import verify
from otel_agentrec.capture.effects import EffectLog
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.placing import CallPlace
from otel_agentrec.capture.recorder import place_of
from otel_agentrec.capture.recorders import open_recorders
from otel_agentrec.errors import LedgerUnavailable, RecordingBusy, RecordingTampered, UsageError
from otel_agentrec.intercept.unknown import UnknownEffect
from otel_agentrec.journal.claims import Claim
from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.process import depth_of, own_path
from otel_agentrec.journal.reader import Recording
from otel_agentrec.journal.times import not_before
from otel_agentrec.nodes.effects import Effect
from otel_agentrec.nodes.fold import View, fold
from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.resume.before import Before, Snapshot
from otel_agentrec.resume.choosing import Resumable, choose_root, resumables, siblings_of
from otel_agentrec.resume.ledger import Ledger
from otel_agentrec.resume.processes import kin_of, overs, refuse_kin, sizes

__all__ = ["Attempt", "attempt_at", "unknown_of"]


class Attempt:
    """An attempt to finish one run of a recording.

    Making one chooses the run; nothing is taken yet. The first run of this process with the root's agent name (and session)
    that asks about a call *is* the attempt: it takes the claim, reads what was done, and journals RUN_RESUMED. Which run that is
    where several may be, :class:`~otel_agentrec.resume.program.Program` tells. Calls of runs that are no attempt are new.

    Args:
        recording: the recording directory.
        run: id of the root or of any attempt, or the beginning of one; default: the only run that did not come to its end.
        rerun_processes: other processes of the program may do again what they did.

    Raises:
        UsageError: no run, or no single one, is meant; or it is finished; or other processes did what would be done again.
        RecordingBusy: the run is alive, or another one of its process, or another process of its program is.
        RecordingNotFound, RecordingUnreadable: there is no recording.
        RecordingTampered: the recording is not as it was written.
    """

    def __init__(
        self, recording: str | os.PathLike[str], run: str | None = None, *, rerun_processes: bool = False
    ) -> None:
        directory = Path(place_of(os.fspath(recording)))
        opened = Recording(directory)
        if opened.single is not None:
            raise UsageError(f"{recording} is one stream of a recording", f"give the directory: {opened.directory}")
        report = verify(opened, level="chained")
        if report.exit_code == RecordingTampered.exit_code:
            raise RecordingTampered(f"{recording} is not as it was written")
        ours = _runs_of_process()
        self._sizes = sizes(opened)
        view = fold(opened)
        found = [one for one in resumables(opened, view) if not any(run.id in ours for run in one.runs)]
        chosen = choose_root(found, shlex.quote(str(recording)), run)
        siblings = siblings_of(found, chosen, view)
        for alive in (one for one in siblings if one.status == "open"):
            raise RecordingBusy(
                f"run {alive.root}, which belongs to the program of run {chosen.root}, is still running",
                "wait for its process to end, or stop it",
            )
        self._program = (chosen, *siblings)
        self._rerun_processes = rerun_processes
        self._is_taken_over = False
        refuse_kin(kin_of(opened, view, self._program), chosen.root, rerun=rerun_processes)
        self._begin(self, directory, chosen, found, Before(directory, frozenset(one.root for one in self._program)))
        several = [self, *(_Sibling(self, one, found) for one in siblings)]
        self.together: tuple[Attempt, ...] = tuple(sorted(several, key=lambda one: one.began_ms))
        """All attempts of the program, this one and its siblings, the earliest run first."""

    def _begin(
        self, first: Attempt, directory: Path, chosen: Resumable, found: Iterable[Resumable], before: Before
    ) -> None:
        self.first = first
        """The attempt at the run that is chosen."""
        self.directory = directory
        self.chosen: Resumable = chosen
        self.root = chosen.root
        self.began_ms = chosen.runs[0].started_ms or 0
        self.is_over = chosen.is_finished
        """The run came to its end: it is answered from its recording, and nothing else happens."""
        self.keeps_claim = True
        """Whether the claim is had as long as the attempt goes on; what is only answered needs none."""
        self.before = before
        self._other_sessions = {one.session for one in found if one.root != self.root} - {None, chosen.session}
        self.run: str | None = None
        """Id of the run of this process that is the attempt, once there is one."""
        self.claim: Claim | None = None
        self.ledger = Ledger((), KeyRing.random())
        self.on_join: list[Callable[[Attempt], None]] = []
        """Called when the claim is had, before the first answer."""
        self._lock = threading.RLock()
        self._peeked: Ledger | None = None
        self._is_clear = False

    @property
    def from_(self) -> dict[str, str]:
        """The run that this attempt goes on from: the latest one before it."""
        return {"run": self.chosen.runs[-1].id}

    @property
    def runs(self) -> list[str]:
        """Ids of the runs that are gone on from, the first one first. What left the course of a finished run later, and did not
        come to an end, is no course to keep to."""
        runs = list(self.chosen.runs)
        while self.is_over and runs and not self.chosen.ended_well(runs[-1]):
            runs.pop()
        return [run.id for run in runs]

    def is_of(self, place: CallPlace, log: EffectLog) -> bool:
        """Whether a call belongs to this attempt; the first one of the run that is meant starts it.

        Raises:
            LedgerUnavailable: the claim is not had, is lost, or the start can't be journalled.
        """
        with self._lock:
            if self.run is None:
                if not self.may_be(place):
                    return False
                self._join(place, log)
            if self.run != place.run:
                return False
        if self.keeps_claim and (self.claim is None or not self.claim.is_held):
            raise LedgerUnavailable(
                f"the claim of run {self.root} is lost: another attempt may be under way", "stop this process"
            )
        return True

    def known(self) -> Ledger:
        """What was begun before, also where no run of this process is the attempt yet."""
        with self._lock:
            if self.run is not None:
                return self.ledger
            if self._peeked is None:
                self._peeked = Ledger(self.before.read().effects(self.root), KeyRing.of(self.directory))
            return self._peeked

    def check_unknown(self, settle: Callable[[Effect], bool]) -> list[Effect]:
        """The effects that nobody could settle; asked before anything real happens. ``settle(effect)``: whether it is."""
        if self._is_clear:
            return []
        left = [effect for effect in self.known().unsettled() if not settle(effect)]
        self._is_clear = not left
        return left

    def take_over(self) -> None:
        """Say to what may be left of earlier attempts' programs that they are over: such processes begin no effect any more.

        Raises:
            RecordingBusy: one of them is at it. UsageError: one has done something by now.
            LedgerUnavailable: it can't be said.
        """
        said: list[Path] = []
        try:
            for over in overs(self.directory, self._program):
                over.parent.mkdir(mode=0o700, exist_ok=True)
                if not over.exists():
                    over.touch(mode=0o600)
                    said.append(over)
            recording = Recording(self.directory)
            if said and sizes(recording) != self._sizes:
                kin = kin_of(recording, fold(recording), self._program)
                refuse_kin(kin, self.root, rerun=self._rerun_processes)
        except BaseException as error:
            for over in said:
                over.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise LedgerUnavailable(f"claims of {self.directory} can't be written: {error}") from error
            raise

    def release(self) -> None:
        """Give the claims back."""
        for one in self.together:
            if one.claim is not None:
                one.claim.release()

    @property
    def may_be_here(self) -> bool:
        """Whether this process stands where the one stood that is to go on: as far from the command that started both. A
        process that is no child of ``otel-agentrec run`` may be any."""
        told = [process.path for process in self.chosen.processes[:1] if process.path is not None]
        return not told or not (there := depth_of(told[0])) or not (here := depth_of(own_path())) or here == there

    def may_be(self, place: CallPlace) -> bool:
        """Whether the run of a call can be the attempt, by its agent and session."""
        first = self.chosen
        if not self.may_be_here:
            return False
        if first.agent is not None and place.agent != first.agent:
            return False
        # a session that is in the recording is another conversation; one that is not was named anew by this process
        return first.session in (None, place.session) or place.session not in self._other_sessions

    def _join(self, place: CallPlace, log: EffectLog) -> None:
        if place_of(log.recorder.settings.path or "") != str(self.directory):
            raise UsageError(
                f"run {self.root} of {self.directory} can't be resumed into {log.recorder.path}",
                f"record into the same directory: configure({str(self.directory)!r})",
            )
        try:
            claim = Claim(self.directory, self.root)
        except OSError as error:
            raise LedgerUnavailable(f"the claim of run {self.root} can't be taken: {error}") from error
        try:
            before = self.before.read()
            ours = before.roots.get(self.root, self.chosen)
            earlier = tuple(run for run in ours.runs if run.id != place.run) or self.chosen.runs
            alive = [run for run in earlier if run.status == "open"]
            if alive:
                raise RecordingBusy(f"run {alive[0].id} is still running", "wait for its process to end, or stop it")
            here = own_path()
            processes = tuple(process for process in ours.processes if process.path != here)
            self.chosen = replace(ours, runs=earlier, processes=processes, has_calls=True, is_echo=False)
            if self.chosen.is_finished and not self.is_over:
                raise UsageError(f"run {self.root} was finished by another attempt", "there is nothing left to resume")
            self.first.enter(before)
            effects = [effect for effect in before.effects(self.root) if effect.run != place.run]
            self.ledger = Ledger(effects, KeyRing.of(self.directory))
            not_before(max((effect.latest_ms for effect in effects), default=-1) + 1)
            log.resumed(place, self.root, dict(self.from_))
            PROCESS.run("the link to the run that is resumed", _link, place, before.view, self.from_["run"])
        except BaseException:
            claim.release()
            raise
        if not self.keeps_claim:
            claim.release()
        self.claim, self.run, self._is_clear = claim, place.run, False
        for tell in self.on_join:
            tell(self)

    def enter(self, before: Snapshot) -> None:
        """The first run of the program goes on: nobody else of its earlier attempts may any more."""
        if self._is_taken_over:
            return
        here = own_path()
        known = [before.roots.get(one.root, one) for one in self._program]
        self._program = tuple(
            replace(one, processes=tuple(process for process in one.processes if process.path != here)) for one in known
        )
        self._sizes = {}
        self.take_over()
        refuse_kin(kin_of(before.recording, before.view, self._program), self.root, rerun=self._rerun_processes)
        self._is_taken_over = True


class _Sibling(Attempt):
    """An attempt at another run of the program: see :class:`Attempt`."""

    def __init__(self, first: Attempt, which: Resumable, found: Iterable[Resumable]) -> None:
        self._begin(first, first.directory, which, found, first.before)


def _runs_of_process() -> set[str]:
    """Ids of the runs that are open in this very process."""
    found = set()
    for recorder in open_recorders():
        for span in recorder.edge.open_spans:
            found.add(f"{span.key[0]:032x}")
            if span.place is not None and span.place.run:
                found.add(span.place.run)
    return found


def _link(place: CallPlace, view: View, before: str) -> None:
    """The new trace is linked to the one that it goes on from; never the same trace again."""
    agents = (s for s in view.spans() if s.kind == Kind.AGENT and s.up is None and view.run(s) == before)
    old = next(agents, None)
    span = place.top.span if place.top is not None else trace.get_current_span()
    if old is None or span is None or not old.trace:
        return
    to = SpanContext(int(old.trace, 16), int(old.span, 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    span.add_link(to, {"agentrec.resumes": before})


def unknown_of(effect: Effect) -> UnknownEffect:
    """A recorded effect as it is told of."""
    why = None
    if effect.lost is not None:
        why = f"what is recorded of it can't be handed out ({effect.lost})"
    return UnknownEffect(
        effect.id, effect.name, effect.arguments, effect.started_ms, effect.call_id, effect.idempotency_key, why
    )


_ATTEMPTS: dict[tuple[str, str | None], Attempt] = {}
_LOCK = threading.Lock()


def attempt_at(recording: str | os.PathLike[str], run: str | None = None, *, rerun_processes: bool = False) -> Attempt:
    """The attempt of this process for a recording: everything that resumes the same run shares one. Raises as :class:`Attempt`."""
    key = (place_of(os.fspath(recording)), run)
    with _LOCK:
        known = _ATTEMPTS.get(key)
        if known is None:
            made = Attempt(recording, run, rerun_processes=rerun_processes)
            known = next(
                (one for one in _ATTEMPTS.values() if one.directory == made.directory and one.root == made.root), made
            )
            _ATTEMPTS[key] = known
        return known


def forget_attempts() -> None:
    """Release all claims and forget all attempts, as a new process would."""
    with _LOCK:
        for attempt in _ATTEMPTS.values():
            attempt.release()
        _ATTEMPTS.clear()


def _after_fork_in_child() -> None:
    global _LOCK
    _LOCK = threading.Lock()
    _ATTEMPTS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
