"""Writes the events of steps: each with its place as the settings say, and with what it points at in its stream."""

from __future__ import annotations

from collections.abc import Callable

from otel_agentrec.capture import steps
from otel_agentrec.capture.once import SaidOnce
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.journal.draft import SealedAt
from otel_agentrec.journal.facts import Facts
from otel_agentrec.journal.journal import StreamMoved
from otel_agentrec.settings import Settings

__all__ = ["StepWriter"]

Put = tuple[SealedAt | None, StepEvent]  # where an event went, and what it was
TRIES = 4
"""How often an event is made anew because its stream has ended meanwhile; then it goes without what it points at."""


class StepWriter:
    """Args:
    write: puts an event into the journal; the second argument is the stream whose events it points at, if any.
    once: what is said once per stream, and pointed at.
    """

    def __init__(
        self, write: Callable[[StepEvent, str | None], SealedAt | None], once: SaidOnce, settings: Settings
    ) -> None:
        self._write = write
        self._once = once
        self._settings = settings

    def write(self, event: StepEvent, view: SpanView | LogView) -> None:
        """Write an event that points at no other."""
        self._write(self._placed(event, view), None)

    def write_pointing(self, make: Callable[[], StepEvent], view: SpanView | LogView) -> Put:
        """Write an event that points at others of its stream. When another stream begins meanwhile, it is made anew."""
        for _ in range(TRIES):
            before = self._once.stream()
            made = self._placed(make(), view)
            stream = self._once.stream()
            if before not in (stream, None):
                continue
            try:
                return self._write(made, stream), made
            except StreamMoved:
                self._once.say_again()
        for key in ("header", "provider"):
            made.payload.pop(key, None)
        return self._write(made, None), made

    def header(self, facts: Facts, view: SpanView | LogView) -> int | None:
        """The seq of the REQUEST_HEADER of these facts, which is written when there is none yet."""
        held = steps.header_of(facts)
        return self._once.header(held, self._placed(StepEvent("REQUEST_HEADER", held), view)) if held else None

    def _placed(self, event: StepEvent, view: SpanView | LogView) -> StepEvent:
        if event.session is None and self._settings.session_attribute:
            told = view.attributes.get(self._settings.session_attribute)
            event.session = str(told) if told is not None else None
        event.run = event.run or self._settings.run_id
        return event
