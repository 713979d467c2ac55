"""Spans to an OTLP receiver in batches that it takes, each span with the stamp of its event, and every loss counted."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from otel_agentrec.capture.forward import sealed
from otel_agentrec.capture.forward.checkpoints import SCOPE as CHECKPOINTS
from otel_agentrec.capture.forward.exporters import asked_timeout, protocol_of_exporter
from otel_agentrec.capture.forward.forwarder import Stamper
from otel_agentrec.capture.forward.partly import listened_to
from otel_agentrec.capture.forward.referring import references_only
from otel_agentrec.capture.forward.sending import BATCH_BYTES, GRPC_LIMIT, Away, Delivery, batches, deliver, shorter
from otel_agentrec.capture.forward.stamped import StampedSpan
from otel_agentrec.capture.guard import PROCESS, Guard, guarded
from otel_agentrec.capture.recorder import RECORDERS, Recorder
from otel_agentrec.capture.recorders import gate_of_process, recorder_in_use
from otel_agentrec.journal.stamps import stamp_of

__all__ = ["StampingExporter"]

PATIENCE = 5.0
"""Seconds that a batch waits for records that are still to be written."""
PAUSE = 5.0
"""Seconds after nobody answered in which nothing is tried."""
_SPAN = 256
_VALUE = 24
"""About how many bytes a span, and an attribute, has around what is in it."""


class StampingExporter(SpanExporter):
    """Args:
    inner: sends them.
    most_bytes: of a batch, before compression; default: what receivers of its protocol take.
    """

    def __init__(self, inner: SpanExporter, most_bytes: int | None = None) -> None:
        self.guard = PROCESS
        self._inner = listened_to(inner)
        self._protocol = protocol_of_exporter(inner)
        self._most = most_bytes or BATCH_BYTES[self._protocol]
        self._limit = max(self._most, GRPC_LIMIT) if self._protocol == "grpc" else None
        self._timeout = asked_timeout("traces")
        self._away_at: float | None = None
        self._recorder: Callable[[], Recorder | None] = recorder_in_use
        """The one whose spans were met last; it may be closed by now."""
        self._has_told = False
        self._unrecorded = Stamper(sealed.SealedSpans(), gate_of_process(), True, PROCESS)
        sealed.want_all()

    @guarded("an export of spans", fallback=SpanExportResult.FAILURE)
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if not spans:
            return SpanExportResult.SUCCESS
        for recorder in list(RECORDERS):
            if not recorder.is_closed:
                recorder.drain(PATIENCE)
        ready = [self._stamped(span) for span in spans]
        lost = 0
        for batch in batches([span for span in ready if span is not None], _size, self._most):
            lost += self._send(batch)
        return SpanExportResult.FAILURE if lost or None in ready else SpanExportResult.SUCCESS

    @guarded("force_flush", fallback=False)
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)

    @guarded("shutdown")
    def shutdown(self) -> None:
        self._inner.shutdown()

    def _stamped(self, span: ReadableSpan) -> ReadableSpan | None:
        """None when it can't be copied."""
        if isinstance(span, StampedSpan):  # by a processor of ours
            return span
        recorder = next((one for one in list(RECORDERS) if one.sealed.of(span) is not None), None)
        if recorder is not None:
            self._recorder = weakref.ref(recorder)
        stamper = recorder.outlets.stamper if recorder is not None else self._unrecorded
        guard = _guard(recorder)
        made = guard.run("a span's copy", stamper.stamped, span)
        if made is None:
            guard.counters.add("spans_lost")
            return None
        copy, has_stamp = made
        if not has_stamp and span.instrumentation_scope != CHECKPOINTS:
            guard.counters.add("spans_unstamped")
        return copy  # type: ignore[no-any-return]

    def _send(self, batch: Sequence[ReadableSpan]) -> int:
        """-> how many were lost."""
        guard = _guard(self._recorder())
        delivery: Delivery[ReadableSpan] = Delivery()
        lost: Sequence[ReadableSpan] = ()
        if self._limit is not None and len(batch) == 1 and _exact(batch[0]) > self._limit:
            less = references_only(batch[0])
            if less is None or _exact(less) > self._limit:
                self._told(guard, batch, f"{_exact(batch[0])} bytes are more than gRPC receivers take", 1)
                return 1
            batch, delivery.reduced = [less], list(batch)
        if self._away_at is not None and time.monotonic() - self._away_at < PAUSE:
            lost, delivery.why = batch, "nobody answered a moment ago"
        else:
            try:
                deliver(batch, self._export, delivery, self._timeout, references_only)
                self._away_at, lost = None, delivery.refused
            except Away:
                self._away_at, lost = time.monotonic(), batch[delivery.sent :]
        count = len(batch) - delivery.sent
        guard.counters.add("spans_sent", delivery.sent)
        if delivery.reduced and not lost:
            guard.counters.add("spans_reduced", len(delivery.reduced))
        if count:
            self._told(guard, lost, delivery.why, count)
        return count

    def _export(self, some: Sequence[ReadableSpan]) -> bool:
        return self._inner.export(some) is SpanExportResult.SUCCESS

    def _told(self, guard: Guard, lost: Sequence[ReadableSpan], why: str, count: int) -> None:
        """``lost``: those of the ``count`` that are known."""
        guard.counters.add("spans_lost", count)
        if self._has_told:
            return
        self._has_told = True
        stamp = next((found for one in lost if (found := stamp_of(one.attributes or {})) is not None), None)
        recorder = self._recorder()
        where = f", the first is event {stamp.seq} of {stamp.stream}" if stamp is not None else ""
        there = (
            f"; the recording has them: otel-agentrec export {recorder.path} --otlp URL" if recorder is not None else ""
        )
        again = f"{there} sends them again" if there else ""
        guard.notices.say(
            f"spans did not reach the OTLP receiver{where}: {shorter(why)}{again} (said once, all are counted)"
        )


def _guard(recorder: Recorder | None) -> Guard:
    return recorder.guard if recorder is not None else PROCESS


def _size(span: ReadableSpan) -> int:
    """About how many bytes a span takes, encoded."""
    held = [span.attributes, *(event.attributes for event in span.events), *(link.attributes for link in span.links)]
    return _SPAN * len(held) + len(span.name) + sum(_size_of(attributes) for attributes in held if attributes)


def _size_of(attributes: Mapping[str, Any]) -> int:
    return sum(len(key) + _VALUE + _length(value) for key, value in attributes.items())


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, (list, tuple)):
        return sum(_VALUE + _length(item) for item in value)
    return _size_of(value) if isinstance(value, Mapping) else 8


def _exact(span: ReadableSpan) -> int:
    return int(encode_spans([span]).ByteSize())
