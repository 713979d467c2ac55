"""Judgements of records (EVALUATED events), found by the id of the record that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from otel_agentrec.nodes.identity import record_id
from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.nodes.sound import text_or_none
from otel_agentrec.nodes.source import Place, Source

__all__ = ["Evaluations"]

Json = Any


class Evaluations:
    """Args:
    places: record id -> where its EVALUATED events stand.
    """

    def __init__(self, source: Source, places: Mapping[str, Sequence[Place]]) -> None:
        self._source, self._places = source, places

    def __len__(self) -> int:
        """How many there are, also of records that are not known."""
        return sum(len(places) for places in self._places.values())

    def of(self, spans: Iterable[Span], *, contents: bool = True) -> list[dict[str, Json]]:
        """The judgements of a call, whichever of its spans they name; the oldest first."""
        if not self._places:
            return []
        return self._read([p for s in spans for p in self._places.get(record_id(s), ())], contents)

    def of_record(self, name: str, *, contents: bool = True) -> list[dict[str, Json]]:
        """The judgements of the record with this id, the oldest first."""
        return self._read(self._places.get(name, ()), contents)

    def _read(self, places: Sequence[Place], contents: bool) -> list[dict[str, Json]]:
        events = [self._source.event(p) if contents else self._source.outline(p) for p in places]
        return [
            {
                "name": event.payload["name"],
                "score": event.payload.get("score"),
                "label": text_or_none(event.payload.get("label")),
                "explanation": event.payload.get("explanation"),
                "evaluatedAtEpochMs": event.ts,
            }
            for event in sorted(events, key=lambda e: (e.ts, e.stream, e.seq))
        ]
