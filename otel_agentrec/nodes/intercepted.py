"""What the effect ledger tells of tool calls whose spans say neither what was asked nor what came: by the span of the call."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from otel_agentrec.journal.events import Event
from otel_agentrec.nodes.effects import EffectEvents
from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.nodes.source import Place, Source

__all__ = ["Intercepted"]

Json = Any


class Intercepted:
    """Args:
    ledger: the EFFECT_* events of the recording.
    """

    def __init__(self, source: Source, ledger: EffectEvents) -> None:
        self._source, self._ledger = source, ledger

    def fill(self, members: Iterable[Span], facts: dict[str, Json]) -> None:
        """Put in the arguments and the result of a tool call where its spans don't tell them.

        A result is taken as it stands only where it is the JSON itself, not what a framework's codec made of it.
        """
        if facts.get("arguments") is not None and facts.get("result") is not None:
            return
        for s in members:
            began, done = self._by_span.get((s.trace, s.span), (None, None))
            if facts.get("arguments") is None and began is not None:
                facts["arguments"] = self._payload(began).get("arguments")
            if facts.get("result") is None and done is not None and done.payload.get("codec") is None:
                facts["result"] = self._payload(done).get("output")

    @cached_property
    def _by_span(self) -> dict[tuple[str, str], tuple[Event, Event | None]]:
        """(trace id, span id) -> the last effect that began there, and how it ended well."""
        done = {e.payload.get("effectId"): e for e in self._ledger.events if e.type == "EFFECT_DONE"}
        found: dict[tuple[str, str], tuple[Event, Event | None]] = {}
        for e in self._ledger.events:
            where = e.trace if isinstance(e.trace, dict) else {}
            trace, span, ident = where.get("traceId"), where.get("spanId"), e.payload.get("effectId")
            if e.type == "EFFECT_STARTED" and isinstance(trace, str) and isinstance(span, str):
                found[trace, span] = e, done.get(ident) if isinstance(ident, str) else None
        return found

    def _payload(self, e: Event) -> dict[str, Json]:
        return self._source.event(Place(e.stream, e.seq)).payload
