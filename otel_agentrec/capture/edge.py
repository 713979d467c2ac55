"""What the effect ledger needs of a recorder: events that are on disk when their writing returns, and the spans now open."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from otel_agentrec.capture.opening import OpenSpan, OpenTable
from otel_agentrec.capture.program import ProgramRun
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.capture.tracking import Tracker
from otel_agentrec.errors import LedgerUnavailable
from otel_agentrec.journal.draft import Envelope, SealedAt
from otel_agentrec.journal.journal import Journal

__all__ = ["LedgerEdge", "envelope_of"]

PATIENCE = 30.0
"""Seconds that an intent waits for what was offered before it."""


class LedgerEdge:
    """Args:
    take: calls a function when this thread is not inside the recorder already, else as soon as it is not.
    later: writes an event, after all that was told before; what is lost is counted.
    drain: has written all that was told before, within so many seconds; False when that took too long.
    wrote: told of every event that was written durably, and where.
    run: id of every run of this process, where one was given.
    """

    def __init__(
        self,
        journal: Journal,
        tracker: Tracker,
        take: Callable[..., None],
        later: Callable[[StepEvent], None],
        drain: Callable[[float], bool],
        wrote: Callable[[StepEvent, SealedAt], None],
        run: str | None = None,
    ) -> None:
        self._journal = journal
        self._tracker = tracker
        self._take = take
        self.write = later
        self._drain = drain
        self._wrote = wrote
        self._given_run = run
        self.is_closed = False
        self._has_program = False
        self.after_fork()

    def after_fork(self) -> None:
        self.process_run = self._given_run or secrets.token_hex(16)
        """The run of what no span is around: as it was given, else made once for this process."""
        if self._has_program:
            self.record_program()

    def record_program(self) -> None:
        """Calls that nothing is around are one run from now on, which begins with the first and ends with the program."""
        self._has_program = True
        self._tracker.program = None if self._given_run else ProgramRun(self.process_run, self.write)

    @property
    def program(self) -> ProgramRun | None:
        """The run of this program's calls that nothing is around, where they are one."""
        return self._tracker.program

    def write_durably(self, event: StepEvent) -> SealedAt:
        """Write an event and have it on disk, with all that was told before, whatever the durability is.

        Raises:
            LedgerUnavailable: it may not be on disk.
        """
        where = self._journal.directory
        if self.is_closed:
            raise LedgerUnavailable(f"the recording {where} is closed: {event.type} can't be written")
        if not self.settle():
            raise LedgerUnavailable(f"what waits to be written to {where} did not move for {PATIENCE:.0f} s")
        try:
            done = self._journal.append_durably(event.type, event.payload, envelope_of(event))
        except Exception as error:
            why = (error.strerror or str(error)) if isinstance(error, OSError) else repr(error)
            told = self._journal.gate.redactor.text(why)
            raise LedgerUnavailable(f"{event.type} can't be made durable in {where}: {told}") from error
        self._wrote(event, done)
        return done

    def settle(self) -> bool:
        """Have all that was told so far in the table and the journal; False when that took too long."""
        return self._drain(PATIENCE)

    @property
    def open_spans(self) -> OpenTable:
        """The spans that are open now."""
        return self._tracker.table

    def reveal(self, entry: OpenSpan) -> None:
        """Look again at an open span that has not told yet what it is."""
        if not entry.is_step and entry.is_open and entry.forked_from is None:
            self._take(self._tracker.reveal, entry)


def envelope_of(event: StepEvent) -> Envelope:
    """The envelope of an event."""
    return Envelope(event.run, event.session, event.turn, event.step, event.trace or None, event.scope)
