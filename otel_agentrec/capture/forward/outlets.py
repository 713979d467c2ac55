"""All that one recorder sends out while it records."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import SpanProcessor

from otel_agentrec.capture.forward.aside import Aside
from otel_agentrec.capture.forward.checkpoints import Checkpoints
from otel_agentrec.capture.forward.events import EventSender
from otel_agentrec.capture.forward.exporters import asked_log_exporter
from otel_agentrec.capture.forward.forwarder import Forwarder, Stamper
from otel_agentrec.capture.forward.sealed import is_wanted_of_all as counts_losses
from otel_agentrec.errors import ConfigurationError
from otel_agentrec.journal.draft import SealedAt

if TYPE_CHECKING:
    from otel_agentrec.capture.recorder import Recorder

__all__ = ["Outlets"]

PATIENCE = 15.0
"""Seconds that the end of a recording waits for the receiver of its events."""


class Outlets:
    """Args:
    recorder: its settings, guard and counters are there.

    Raises:
        ConfigurationError: events are to be sent in a way that can't be.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._guard = recorder.guard
        self.checkpoints = Checkpoints()
        self._aside = Aside()
        self._forwarders: list[Forwarder] = []
        self._stamper: Stamper | None = None
        self.events = self._event_sender()

    def _event_sender(self) -> EventSender | None:
        settings = self._recorder.settings
        asked = settings.events
        if asked == "off" or not settings.enabled:
            return None
        if settings.content == "inline":
            raise ConfigurationError(
                "events can't be sent out with content=inline: what was said would go with them", "content=detached"
            )
        make = asked_log_exporter() if asked == "otlp" else lambda: asked
        sender = EventSender(make, self._recorder.path, self._guard, self._aside)
        atexit.register(_at_end, weakref.ref(sender))
        return sender

    # --- the journal's side ---

    def written(self, line: bytes, at: SealedAt) -> None:
        """A line was written; under the journal's lock."""
        self.checkpoints.written(at)
        if self.events is not None:
            self.events.put(line, at)

    # --- the processors' side ---

    @property
    def stamper(self) -> Stamper:
        """What makes copies of spans."""
        if self._stamper is None:
            recorder = self._recorder
            self._stamper = Stamper(recorder.sealed, recorder.gate, recorder.settings.content != "off", self._guard)
        return self._stamper

    def forwarder(self, inner: Sequence[SpanProcessor]) -> Forwarder:
        """What hands spans on to these processors."""
        made = Forwarder(inner, self._recorder, self._checkpoint)
        self._forwarders.append(made)
        self._aside.ready()
        return made

    def has(self, inner: SpanProcessor) -> bool:
        """Whether a processor gets spans already."""
        return any(one.has(inner) for one in self._forwarders)

    def left(self, forwarder: Forwarder) -> None:
        """Its processors are about to be shut down."""
        self._checkpoint(now=True)
        self._forwarders = [one for one in self._forwarders if one is not forwarder]

    # --- the recorder's side ---

    def flush(self, seconds: float) -> bool:
        """Send the events that wait; False when that took too long. Processors are flushed by whoever has them."""
        return self.events is None or self.events.flush(seconds)

    def settle(self) -> None:
        """Before the stream is sealed: have spans go out now, where losses are counted, so that its last line has them."""
        if counts_losses() and self._forwarders:
            self._aside.within(PATIENCE, self._flush_forwarders)

    def _flush_forwarders(self) -> None:
        for one in list(self._forwarders):
            one.flush(int(PATIENCE * 1000))

    def sealed(self, *, is_last: bool = False) -> None:
        """The stream was sealed: say so. ``is_last``: the recording is closed."""
        self._checkpoint(now=True)
        if self.events is not None:
            if is_last:
                self.events.close(PATIENCE)
            else:
                self.events.at_end(PATIENCE)

    def _checkpoint(self, *, now: bool = False) -> None:
        """Say how far the stream has come, if that is due."""
        head = self.checkpoints.due(now=now) if self._forwarders else None
        if head is not None:
            for one in self._forwarders:
                one.checkpoint(head)

    def after_fork(self) -> None:
        self.checkpoints.after_fork()
        self._aside.after_fork()
        if self.events is not None:
            self.events.after_fork()


def _at_end(sender: weakref.ref[EventSender]) -> None:
    """At the end of the interpreter, whatever was shut down by then."""
    there = sender()
    if there is not None:
        there.at_end(PATIENCE)
