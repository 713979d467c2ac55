"""Judgements of records (EVALUATED events), found by the id of the record that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from otel_agentrec.nodes.identity import record_id
from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.nodes.sound import text_or_none
from otel_agentrec.nodes.source import Place, Source
from otel_agentrec.nodes.table import nanos

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
        """Of telemetry that was exported twice, the same judgement counts once."""
        found: dict[object, tuple[int, dict[str, Json]]] = {}
        for place in sorted(places):
            event = self._source.event(place) if contents else self._source.outline(place)
            told = event.payload
            observed = nanos(told.get("observedAt"))
            at = event.ts if observed is None else observed // 1_000_000
            evaluation = {
                "name": told["name"],
                "score": told.get("score"),
                "label": text_or_none(told.get("label")),
                "explanation": told.get("explanation"),
                "evaluatedAtEpochMs": at,
            }
            same = (
                place if observed is None else (observed, told["name"], repr(evaluation["score"]), evaluation["label"])
            )
            found.setdefault(same, (at, evaluation))
        return [evaluation for _, evaluation in sorted(found.values(), key=lambda pair: pair[0])]
