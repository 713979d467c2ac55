"""Captured telemetry, told once more by the SDK: spans that start and end and log records that are emitted, with the ids, times
and values of the files, in the order of their times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from opentelemetry import context, trace
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from otel_agentrec.capture.otlp import OtlpFile
from otel_agentrec.capture.processors import AgentRecLogProcessor, AgentRecSpanProcessor
from otel_agentrec.capture.spans import LogView, SpanView

__all__ = ["replay"]


class _Ids(IdGenerator):
    """Gives the next span the ids of the one that was captured."""

    span: SpanView

    def generate_trace_id(self) -> int:
        return int(self.span.trace_id, 16)

    def generate_span_id(self) -> int:
        return int(self.span.span_id, 16)


class _Sdk:
    def __init__(self, path: Path) -> None:
        self.processor = AgentRecSpanProcessor(path)
        self.ids = _Ids()
        self.logs = LoggerProvider(shutdown_on_exit=False)
        self.logs.add_log_record_processor(AgentRecLogProcessor(self.processor))
        self.providers: dict[str, TracerProvider] = {}
        self.open: dict[tuple[str, str], Any] = {}

    def provider(self, resource: dict[str, Any]) -> TracerProvider:
        provider = self.providers.get(repr(resource))
        if provider is None:
            limits = SpanLimits(max_span_attributes=10_000, max_events=10_000)
            provider = self.providers[repr(resource)] = TracerProvider(
                resource=Resource(resource), id_generator=self.ids, span_limits=limits, shutdown_on_exit=False
            )
            provider.add_span_processor(self.processor)
        return provider

    def start(self, span: SpanView) -> None:
        self.ids.span = span
        tracer = self.provider(dict(span.resource)).get_tracer(span.scope, span.scope_version)
        around = _below(span.trace_id, span.parent_span_id)
        started = tracer.start_span(span.name, around, SpanKind(max(0, span.kind - 1)), start_time=span.start_ns)
        self.open[span.trace_id, span.span_id] = started
        for key, value in span.attributes.items():
            started.set_attribute(key, value)

    def end(self, span: SpanView) -> None:
        ended = self.open.pop((span.trace_id, span.span_id))
        for event in span.events:
            ended.add_event(event.name, dict(event.attributes), event.ts_ns)
        ended.set_status(Status(StatusCode(span.status_code), span.status_message))
        ended.end(span.end_ns)

    def emit(self, log: LogView) -> None:
        self.logs.get_logger(log.scope).emit(
            LogRecord(
                timestamp=log.ts_ns,
                observed_timestamp=log.observed_ns,
                context=_below(log.trace_id or "", log.span_id),
                body=log.body,
                attributes=dict(log.attributes),
                event_name=log.event_name,
            )
        )


def _below(trace_id: str, span_id: str | None) -> context.Context:
    if not span_id:
        return context.Context()
    parent = SpanContext(int(trace_id, 16), int(span_id, 16), False, TraceFlags(TraceFlags.SAMPLED))
    return trace.set_span_in_context(trace.NonRecordingSpan(parent), context.Context())


def _moments(sdk: _Sdk, files: Iterable[Path]) -> Iterator[tuple[tuple[int, int, int], Any, Any]]:
    """((time, rank, arrival), what to do, of what): at the same time starts come first, ends last and inside out."""
    arrival = 0
    for file in files:
        for batch in OtlpFile(file).batches():
            for span in batch.spans:
                arrival += 1
                yield (span.start_ns, 0, arrival), sdk.start, span
                yield (span.end_ns or 0, 2, -arrival), sdk.end, span
            for log in batch.logs:
                arrival += 1
                yield (log.observed_ns or log.ts_ns or 0, 1, arrival), sdk.emit, log


def replay(files: Iterable[Path], path: Path) -> dict[str, int]:
    """Record the telemetry of OTLP files through the live edge; -> what the recorder counted."""
    sdk = _Sdk(path)
    for _, do, view in sorted(_moments(sdk, files), key=lambda moment: moment[0]):
        do(view)
    sdk.processor.recorder.shutdown()
    return sdk.processor.recorder.stats()
