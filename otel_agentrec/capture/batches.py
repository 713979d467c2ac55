"""What a reader of OTLP hands on: the spans and log records of one line or message, and what was wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field

from otel_agentrec.capture.spans import LogView, SpanView

__all__ = ["Batch"]


@dataclass(slots=True)
class Batch:
    """One line of a JSON file, or one message of a protobuf file.

    ``place`` counts lines or messages from 1. ``faults`` names each thing in it that could not be read; a batch in which
    ``known`` is false was no OTLP at all. ``metrics`` counts metrics (or profiles) that are not looked at.
    """

    place: int = 0
    spans: list[SpanView] = field(default_factory=list)
    logs: list[LogView] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    metrics: int = 0
    known: bool = True
