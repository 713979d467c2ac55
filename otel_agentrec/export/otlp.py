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
from otel_agentrec.capture.forward.referring import references_only
from otel_agentrec.capture.forward.sending import Away, Delivery, batches, deliver
from otel_agentrec.errors import AgentRecError
from otel_agentrec.journal.stamps import stamp_of

__all__ = ["NotSent", "Placed", "Sent", "send_events", "send_spans"]

Placed = tuple[str, int, ReadableSpan]
PlacedRecord = tuple[str, int, ReadableLogRecord]


class NotSent(AgentRecError):
    """The receiver can't be reached, or does not take what it is sent."""

    default_hint = "when it is there again, run the same command: it goes on where it stopped"


_HINTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("code: 404", "UNIMPLEMENTED"),
        "is the URL right? viewers such as Jaeger take spans only: --events is for a Collector",
    ),
    (
        ("code: 401", "code: 403", "UNAUTHENTICATED", "PERMISSION_DENIED"),
        'it wants to know who sends: --header "Authorization=..."',
    ),
)
"""What a receiver that is there answers when it takes nothing -> how to mend it. By trying again it is not."""


@dataclass(slots=True)
class Sent:
    """``count`` spans or events were taken, ``rejected`` not, though the receiver took their batch (it does not say which);
    ``reduced``: (stream, seq) of those that were taken only without their large values; ``refused``: of those that the receiver
    would not take even so; ``upto``: stream -> position of its last one that was dealt with (of events, their seq).
    """

    count: int = 0
    rejected: int = 0
    batches: int = 0
    reduced: list[tuple[str, int]] = field(default_factory=list)
    refused: list[tuple[str, int]] = field(default_factory=list)
    upto: dict[str, int] = field(default_factory=dict)
    why: str = ""
    """What the receiver said last when it refused."""


Told = Callable[[Sent], None]


def send_spans(
    spans: Iterable[Placed],
    exporter: SpanExporter,
    most_bytes: int,
    told: Told = lambda sent: None,
    *,
    limit: int | None = None,
) -> Sent:
    """Send spans in order. ``told`` is called after each batch: what is done then need not be done again.

    A batch that is refused at once is taken apart, down to the one span that the receiver does not take; of that one the
    large values stay behind.

    Args:
        limit: bytes of a span beyond which its large values stay behind also where nobody answers.

    Raises:
        NotSent: the receiver did not answer within the exporter's time-out; ``told`` knows how far it went.
    """

    def export(batch: Sequence[Placed]) -> bool:
        return exporter.export([span for _, _, span in batch]) is SpanExportResult.SUCCESS

    sent = Sent()
    for batch in batches(iter(spans), _size, most_bytes):
        try:
            _send(batch, export, sent, _smaller)
        except NotSent:  # some receivers fall silent over what is too large for them
            is_large = limit is not None and len(batch) == 1 and _size(batch[0]) > limit
            less = _smaller(batch[0]) if is_large else None
            if less is None:
                raise
            _send([less], export, sent)
            sent.reduced.append(_event_of(less))
        told(sent)
    return sent


def _size(placed: Placed) -> int:
    return int(encode_spans([placed[2]]).ByteSize())


def _smaller(placed: Placed) -> Placed | None:
    stream, seq, span = placed
    less = references_only(span)
    return None if less is None else (stream, seq, less)


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


def _send(
    batch: Sequence[Any],
    export: Callable[[Sequence[Any]], bool],
    sent: Sent,
    smaller: Callable[[Any], Any] = lambda placed: None,
) -> None:
    delivery: Delivery[Any] = Delivery()
    try:
        deliver(batch, export, delivery, smaller=smaller)
    except Away as away:
        hint = next((hint for words, hint in _HINTS if any(word in str(away) for word in words)), None)
        raise NotSent(f"the receiver takes nothing: {away}", hint) from None
    sent.count += delivery.sent
    sent.rejected += delivery.rejected
    sent.batches += delivery.requests
    sent.reduced += [_event_of(placed) for placed in delivery.reduced]
    sent.refused += [_event_of(placed) for placed in delivery.refused]
    sent.why = delivery.why or sent.why
    for stream, seq, _ in batch:
        sent.upto[stream] = max(seq, sent.upto.get(stream, -1))


def _event_of(placed: Placed | PlacedRecord) -> tuple[str, int]:
    """(stream, seq) of the event that tells of it: a span that did not end stands elsewhere."""
    stream, position, item = placed
    stamp = stamp_of(item.attributes or {}) if isinstance(item, ReadableSpan) else None
    return stream, position if stamp is None else stamp.seq
