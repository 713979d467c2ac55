"""Who hears of each event once it is written: sinks, and the sessions that it is part of."""

from __future__ import annotations

import os
from collections.abc import Iterable

from otel_agentrec.capture.conversations.live import session_teller
from otel_agentrec.capture.guard import Guard
from otel_agentrec.capture.namedsinks import names_of, sinks_of
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.capture.telling import SinkTeller
from otel_agentrec.journal.draft import SealedAt
from otel_agentrec.journal.gate import Gate
from otel_agentrec.records import IoCaptureSink
from otel_agentrec.settings import Settings

__all__ = ["Audience"]


class Audience:
    """What they raise is counted, and reaches nobody.

    Args:
        directory: of the recording, whose sessions are written into it.

    Raises:
        ConfigurationError: a sink that the settings name can't be made.
    """

    def __init__(self, directory: str | os.PathLike[str], settings: Settings, gate: Gate, guard: Guard) -> None:
        self._gate = gate
        self._guard = guard
        self._sinks: SinkTeller | None = None
        self._sessions = session_teller(directory, settings, gate, guard)
        self.add(settings.sinks)

    def add(self, sinks: Iterable[IoCaptureSink | str]) -> None:
        """More sinks, or names of some.

        Raises:
            ConfigurationError: one that is named can't be made.
        """
        new = sinks_of(sinks)
        if new:
            self._sinks = self._sinks or SinkTeller((), self._guard, self._gate)
            self._sinks.sinks.extend(new)

    def has(self, sink: IoCaptureSink) -> bool:
        return any(one is sink for one in self._all())

    def names(self) -> list[str]:
        """What the sinks are, and their files."""
        return names_of(self._all())

    def feed(self, event: StepEvent, at: SealedAt | None) -> None:
        """An event was written to ``at``; None: it could not be, and only sinks are told."""
        if self._sinks is not None:
            self._guard.run("a sink", self._sinks.feed, event, at)
        if self._sessions is not None and at is not None:
            self._guard.run("sessions", self._sessions.feed, event, at)

    def drain(self, seconds: float) -> bool:
        """Wait until sessions are written as far as they were told; False when that took too long."""
        return self._sessions is None or self._sessions.drain(seconds)

    def finish(self) -> None:
        """The stream is sealed: hand out what was still waiting."""
        if self._sinks is not None:
            self._guard.run("a sink", self._sinks.finish)
        if self._sessions is not None:
            self._guard.run("sessions", self._sessions.finish)

    def close(self) -> None:
        """Nothing more will come."""
        for sink in self._all():
            self._guard.run("a sink's close", sink.close)

    def after_fork(self) -> None:
        for teller in (self._sinks, self._sessions):
            if teller is not None:
                teller.after_fork()

    def _all(self) -> list[IoCaptureSink]:
        return [] if self._sinks is None else self._sinks.sinks
