"""A finished recording in batches to an OTLP receiver, and what became of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from otel_agentrec.capture.forward.eventrecords import size_of
from otel_agentrec.capture.forward.sending import Away, Delivery, batches, deliver
from otel_agentrec.errors import AgentRecError

__all__ = ["NotSent", "Placed", "Sent", "send_events", "send_spans"]

Placed = tuple[str, int, ReadableSpan]
PlacedRecord = tuple[str, int, ReadableLogRecord]


class NotSent(AgentRecError):
    """The receiver can't be reached, or does not take what it is sent."""

    default_hint = "when it is there again, run the same command: it goes on where it stopped"


@dataclass(slots=True)
class Sent:
    """``count`` spans or events were taken; ``refused``: (stream, seq) of those that the receiver would not take even alone;
    ``upto``: stream -> seq of its last one that was dealt with."""

    count: int = 0
    batches: int = 0
    refused: list[tuple[str, int]] = field(default_factory=list)
    upto: dict[str, int] = field(default_factory=dict)
    why: str = ""
    """What the receiver said last when it refused."""


Told = Callable[[Sent], None]


def send_spans(
    spans: Iterable[Placed], exporter: SpanExporter, most_bytes: int, told: Told = lambda sent: None
) -> Sent:
    """Send spans in order. ``told`` is called after each batch: what is done then need not be done again.

    A batch that is refused at once is taken apart, down to the one span that the receiver does not take.

    Raises:
        NotSent: the receiver did not answer within the exporter's time-out; ``told`` knows how far it went.
    """

    def export(batch: Sequence[Placed]) -> bool:
        return exporter.export([span for _, _, span in batch]) is SpanExportResult.SUCCESS

    sent = Sent()
    for batch in batches(iter(spans), lambda placed: encode_spans([placed[2]]).ByteSize(), most_bytes):
        _send(batch, export, sent)
        told(sent)
    return sent


def send_events(
    records: Iterable[PlacedRecord], exporter: LogRecordExporter, most_bytes: int, told: Told = lambda sent: None
) -> Sent:
    """The same for journal events as log records."""

    def export(batch: Sequence[PlacedRecord]) -> bool:
        return exporter.export([record for _, _, record in batch]) is LogRecordExportResult.SUCCESS

    sent = Sent()
    for batch in batches(iter(records), lambda placed: size_of(placed[2]), most_bytes):
        _send(batch, export, sent)
        told(sent)
    return sent


def _send(batch: Sequence[Any], export: Callable[[Sequence[Any]], bool], sent: Sent) -> None:
    delivery: Delivery[Any] = Delivery()
    try:
        deliver(batch, export, delivery)
    except Away as away:
        raise NotSent(f"the receiver takes nothing: {away}") from None
    sent.count += delivery.sent
    sent.batches += delivery.requests
    sent.refused += [(stream, seq) for stream, seq, _ in delivery.refused]
    sent.why = delivery.why or sent.why
    for stream, seq, _ in batch:
        sent.upto[stream] = max(seq, sent.upto.get(stream, -1))
