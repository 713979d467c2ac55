"""The answerer of tool calls in a process beside the one that is resumed: another one of the same program.

It is not answered from the recording, and has no course to keep to. But it must not do what the recorded run had done: an
effect that is recorded, in whichever process, stops it. What was not done before runs, and is recorded as ever.
"""

from __future__ import annotations

import threading
from pathlib import Path

from otel_agentrec.capture.recorder import Recorder, place_of
from otel_agentrec.errors import AgentRecError, LedgerUnavailable, ProcessNotResumed
from otel_agentrec.intercept.declared import declared
from otel_agentrec.intercept.protocol import ToolOutcome
from otel_agentrec.intercept.recording_tools import Asked, RecordingTools
from otel_agentrec.intercept.unknown import UnknownEffect, unknown_outcome
from otel_agentrec.journal.process import command_of, is_below, own_path
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import NOT_BEGUN, Effect, read_effects
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.resume.attempt import unknown_of
from otel_agentrec.resume.choosing import resumables, siblings_of
from otel_agentrec.resume.ledger import Ledger
from otel_agentrec.resume.processes import Process, kin_of, processes_of

__all__ = ["BesideTools"]


class BesideTools(RecordingTools):
    """Refuses effects that the resumed run, another one of its process, or another process of its program had done; any others
    run.

    Args:
        recording: the directory.
        root: of the run that is resumed; None: nobody knows which, so all that is recorded counts.
        rerun_processes: what other processes did may be done again; what the run itself did may not.
    """

    def __init__(
        self,
        recording: str | Path,
        root: str | None,
        *,
        rerun_processes: bool = False,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(recorder)
        self._directory = Path(place_of(str(recording)))
        self._root = root
        self._rerun_processes = rerun_processes
        self._done: Ledger | None = None
        self._lock = threading.Lock()

    def found(self, asked: Asked) -> ToolOutcome | UnknownEffect | None:
        """What is known of the call in this process.

        Raises:
            ProcessNotResumed: it was done before.
            UnknownOutcomeError: it would happen for real, and nobody knows what came of an effect of the run.
            LedgerUnavailable: what was done can't be read.
        """
        known = super().found(asked)
        if known is not None or asked.effect is not True:
            return known
        done = self._recorded()
        before = done.alike(asked.call.name, asked.key, asked.said.inert)
        if before:
            first = before[0]
            raise ProcessNotResumed(
                f"{asked.call.name} is called in a process that is not answered from the recording, and was called before by "
                f"the program of the run that is resumed (effect {first.id}, stream {first.stream})"
            )
        left = [one for one in done.unsettled() if not one.idempotency_key and declared(one.name).reconcile is None]
        if left:
            told = [unknown_of(effect) for effect in left]
            raise unknown_outcome(told, str(self._directory), asked.log.recorder.redactor.text)
        return None

    def _recorded(self) -> Ledger:
        with self._lock:
            if self._done is None:
                try:
                    self._done = Ledger(self._read(), KeyRing.of(self._directory))
                except (AgentRecError, OSError) as error:
                    raise LedgerUnavailable(f"what was done before can't be read: {error}") from error
            return self._done

    def _read(self) -> list[Effect]:
        """What was done before this command by the run and by its program's other processes."""
        recording = Recording(self._directory)
        view = fold(recording)
        processes = processes_of(recording)
        before = {name for name, process in processes.items() if not _is_of_this_command(process)}
        roots = resumables(recording, view)
        chosen = next((one for one in roots if one.root == self._root), None)
        if chosen is None:
            effects = list(read_effects(recording))
            return [e for e in effects if e.stream in before and e.state != NOT_BEGUN and e.effect is True]
        program = [chosen, *siblings_of(roots, chosen, view)]
        ours = {one.root for one in program}
        found = [
            effect
            for effect in read_effects(recording, view.records({run.id for one in program for run in one.runs}))
            if effect.root in ours and effect.effect not in (False, "container")
        ]
        kin = kin_of(recording, view, program)
        others = {one.process.stream for one in kin}
        found = [effect for effect in found if effect.stream not in others]
        if not self._rerun_processes:
            found += [effect for one in kin for effect in one.effects]
        return [effect for effect in found if effect.stream in before and effect.state != NOT_BEGUN]


def _is_of_this_command(process: Process) -> bool:
    """Whether it was started by the command that started this process, or has started this process itself: what such a one
    does was not done before."""
    here, there = own_path(), process.path
    return there is not None and (
        command_of(there) == command_of(here) or is_below(there, command_of(here)) or is_below(here, there)
    )
