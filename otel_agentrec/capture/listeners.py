"""Who is told of a hand-written agent's steps: event listeners, and sinks that get node records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from otel_agentrec.capture import steps
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.recorders import gate_of_process
from otel_agentrec.capture.spans import SpanView
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.capture.telling import SinkTeller
from otel_agentrec.journal.facts import Facts, Kind

__all__ = ["Listeners"]


class Listeners:
    """Listeners in the order of telling. An object with ``on_event(event)`` gets events, one with ``capture(record)`` is a
    sink and gets records, any other callable is called with each event. What they raise is counted."""

    def __init__(self, listeners: Iterable[Any]) -> None:
        self.all: list[Any] = [_adapted(listener) for listener in listeners]
        self._told = [fn for fn in map(_on_event, self.all) if fn is not None]
        self._tellers = [one for one in self.all if isinstance(one, SinkTeller)]

    def __bool__(self) -> bool:
        return bool(self._told)

    @property
    def wants_records(self) -> bool:
        return bool(self._tellers)

    def tell(self, event: dict[str, Any]) -> None:
        for listener in self._told:
            PROCESS.run("a listener", listener, event)

    def started(self, view: SpanView, kind: str, facts: dict[str, Any], path: list[str], outermost: bool) -> None:
        """A run, a model call or a tool call began: what sinks need to place its records."""
        event = steps.started_event(view, kind, _facts(facts), path, outermost)
        for teller in self._tellers:
            PROCESS.run("a sink", teller.feed, event)

    def ended(self, view: SpanView, kind: str, facts: dict[str, Any], path: list[str], outermost: bool) -> None:
        """It ended: sinks get its record."""
        for teller in self._tellers:
            PROCESS.run("a sink", _feed_end, teller, view, kind, _facts(facts), path, outermost)

    def finish(self) -> None:
        """The outermost run is over."""
        for teller in self._tellers:
            PROCESS.run("a sink", teller.finish)


def _adapted(listener: Any) -> Any:
    is_sink = not hasattr(listener, "on_event") and callable(getattr(listener, "capture", None))
    return SinkTeller([listener], PROCESS, gate_of_process()) if is_sink else listener


def _on_event(listener: Any) -> Callable[[Any], object] | None:
    if isinstance(listener, SinkTeller):
        return None
    on_event = getattr(listener, "on_event", None)
    return on_event if callable(on_event) else listener if callable(listener) else None


def _feed_end(teller: SinkTeller, view: SpanView, kind: str, facts: Facts, path: list[str], outermost: bool) -> None:
    held = steps.header_of(facts) if kind in (Kind.MODEL, Kind.TOOL) else None
    header = teller.feed(StepEvent("REQUEST_HEADER", held)) if held else None
    teller.feed(steps.ended_event(view, kind, facts, path, outermost, header=header))


def _facts(known: dict[str, Any]) -> Facts:
    """The facts as they are now; functions among them are asked."""
    facts = Facts(dialect="otel-genai")
    for name, value in known.items():
        setattr(facts, name, value() if callable(value) else value)
    return facts
