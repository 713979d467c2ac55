"""What was recorded before this process did anything: read once for all the runs of the program that is started again."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from otel_agentrec.journal.process import own_path
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import Effect, read_effects
from otel_agentrec.nodes.fold import View, fold
from otel_agentrec.nodes.wires import Wire
from otel_agentrec.records import NodeIoRecord
from otel_agentrec.resume.choosing import Resumable, resumables
from otel_agentrec.resume.processes import processes_of, sizes

__all__ = ["Before", "Snapshot"]


@dataclass
class Snapshot:
    """A recording as it stands. ``meant``: ids of the roots that are asked for; what is kept of others is nothing."""

    recording: Recording
    view: View
    meant: frozenset[str]
    sizes: dict[str, int] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @cached_property
    def roots(self) -> dict[str, Resumable]:
        """All roots, by id."""
        return {one.root: one for one in resumables(self.recording, self.view)}

    def effects(self, root: str) -> list[Effect]:
        """The effects of a root's attempts, in the order in which they began."""
        with self._lock:  # everybody gets the same objects: what settles one settles it for all
            return self._effects.get(root, [])

    def records(self, runs: list[str]) -> list[NodeIoRecord]:
        """The records of attempts of the roots that are meant."""
        with self._lock:
            return [record for run in runs for record in self._records.get(run, ())]

    def wires(self, runs: list[str]) -> list[Wire]:
        """The attempts of model calls in these runs, in the order of their requests."""
        with self._lock:
            found = {id(wire): wire for run in runs for wire in self._wires.get(run, ())}
        return sorted(found.values(), key=lambda wire: wire.order)

    @cached_property
    def _records(self) -> dict[str, list[NodeIoRecord]]:
        found: dict[str, list[NodeIoRecord]] = defaultdict(list)
        runs = {run.id for root in self.meant if root in self.roots for run in self.roots[root].runs}
        for s, record in self.view.calls(runs):
            found[self.view.run(s)].append(record)
        return found

    @cached_property
    def _effects(self) -> dict[str, list[Effect]]:
        found: dict[str, list[Effect]] = defaultdict(list)
        records = (record for records in self._records.values() for record in records)
        for effect in read_effects(self.recording, records):
            found[effect.root].append(effect)
        return found

    @cached_property
    def _wires(self) -> dict[str, list[Wire]]:
        found: dict[str, list[Wire]] = defaultdict(list)
        for wire in self.view.wires:
            for run in {self.view.run_of_wire(wire), wire.run} - {None}:
                found[str(run)].append(wire)
        return found


class Before:
    """Reads a recording when it is first asked for, and again when another process than this one has written since. Any
    thread may ask.

    Args:
        directory: of the recording.
        roots: ids of the roots that will be asked for.
    """

    def __init__(self, directory: Path, roots: frozenset[str]) -> None:
        self._directory = directory
        self._roots = roots
        self._read: Snapshot | None = None
        self._lock = threading.Lock()

    def read(self) -> Snapshot:
        """The recording; whoever holds the claim of a run knows that nobody else writes of it."""
        with self._lock:
            if self._read is None or self._has_changed(self._read):
                recording = Recording(self._directory)
                known = sizes(recording)
                self._read = Snapshot(recording, fold(recording), self._roots, known)
            return self._read

    def _has_changed(self, read: Snapshot) -> bool:
        recording = Recording(self._directory)
        now = sizes(recording)
        changed = {name for name in {*now, *read.sizes} if now.get(name) != read.sizes.get(name)}
        if not changed:
            return False
        processes, here = processes_of(recording), own_path()
        return any(name not in processes or processes[name].path != here for name in changed)
