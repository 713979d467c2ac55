"""OTLP/protobuf -> views.

A message that protobuf refuses as a whole (one string that is no UTF-8, one value nested too deep) is taken apart by its
field numbers, so that one hostile span costs only itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData

from otel_agentrec.capture.batches import Batch
from otel_agentrec.capture.spans import NOTHING_DROPPED, DroppedCounts, LogView, SpanEvent, SpanView

__all__ = ["decode"]

MAX_DEPTH = 64

_RESOURCE, _SCOPE, _ITEMS = 1, 1, 2
"""Field numbers: ``resource`` of a ResourceSpans, ``scope`` of a ScopeSpans, and the repeated field of both. Logs alike."""


def decode(data: bytes) -> Batch:
    """The views in one message: ``TracesData`` or ``LogsData``, which are also the export requests.

    Nothing in the bytes says which of them it is, but they number their fields so differently that what is read as the
    wrong one has no ids and no times.
    """
    traces = _traces(data)
    if any(span.start_ns for span in traces.spans):
        return traces
    logs = _logs(data)
    if logs.logs:
        return logs
    metrics = _metrics(data)
    return Batch(metrics=metrics) if metrics else traces


def _traces(data: bytes) -> Batch:
    batch = Batch()
    try:
        groups = [
            (_attributes(r.resource.attributes), s.scope.name, s.scope.version, s.spans)
            for r in TracesData.FromString(data).resource_spans
            for s in r.scope_spans
        ]
    except DecodeError:
        return _salvaged(data, "spans")
    for resource, scope, version, spans in groups:
        for span in spans:
            _add_span(span, scope, version, resource, batch)
    return batch


def _logs(data: bytes) -> Batch:
    batch = Batch()
    try:
        groups = [
            (_attributes(r.resource.attributes), s.scope.name, s.log_records)
            for r in LogsData.FromString(data).resource_logs
            for s in r.scope_logs
        ]
    except DecodeError:
        return _salvaged(data, "logs")
    for resource, scope, records in groups:
        for record in records:
            _add_log(record, scope, resource, batch)
    return batch


def _metrics(data: bytes) -> int:
    """How many metrics a message holds that is neither spans nor log records."""
    try:
        groups = MetricsData.FromString(data).resource_metrics
    except DecodeError:
        return 0
    return sum(m.WhichOneof("data") is not None for r in groups for s in r.scope_metrics for m in s.metrics)


def _add_span(s: Span, scope: str, version: str, resource: dict[str, Any], batch: Batch) -> None:
    if len(s.trace_id) != 16 or len(s.span_id) != 8 or not any(s.trace_id) or not any(s.span_id):
        batch.faults.append("a span without a readable id")
        return
    lost = DroppedCounts(s.dropped_attributes_count, s.dropped_events_count, s.dropped_links_count)
    batch.spans.append(
        SpanView(
            s.trace_id.hex(),
            s.span_id.hex(),
            s.parent_span_id.hex() if len(s.parent_span_id) == 8 and any(s.parent_span_id) else None,
            s.name,
            s.kind,
            scope,
            version or None,
            s.start_time_unix_nano,
            s.end_time_unix_nano or None,
            _attributes(s.attributes),
            tuple([SpanEvent(e.name, e.time_unix_nano, _attributes(e.attributes)) for e in s.events]),
            tuple([(k.trace_id.hex(), k.span_id.hex()) for k in s.links]),
            s.status.code,
            s.status.message or None,
            resource,
            lost if any(lost) else NOTHING_DROPPED,
        )
    )


def _add_log(r: LogRecord, scope: str, resource: dict[str, Any], batch: Batch) -> None:
    if not r.time_unix_nano and not r.observed_time_unix_nano:
        batch.faults.append("a log record without a time")
        return
    held = _attributes(r.attributes)
    name = r.event_name or held.get("event.name") or ""
    batch.logs.append(
        LogView(
            trace_id=r.trace_id.hex() if len(r.trace_id) == 16 and any(r.trace_id) else None,
            span_id=r.span_id.hex() if len(r.span_id) == 8 and any(r.span_id) else None,
            event_name=name if isinstance(name, str) else str(name),
            observed_ns=r.observed_time_unix_nano or None,
            ts_ns=r.time_unix_nano or None,
            scope=scope,
            body=_any_value(r.body, 0) if r.HasField("body") else None,
            attributes=held,
            resource=resource,
        )
    )


def _attributes(pairs: Any, depth: int = 0) -> dict[str, Any]:
    return {pair.key: _any_value(pair.value, depth) for pair in pairs}


def _any_value(value: AnyValue, depth: int) -> Any:
    which = value.WhichOneof("value")
    if which is None:
        return None
    if which == "array_value":
        return [_any_value(v, depth + 1) for v in value.array_value.values]
    if which == "kvlist_value":
        return _attributes(value.kvlist_value.values, depth + 1)
    return getattr(value, which)


# --- taking a refused message apart -----------------------------------------------------------------------------------


def _salvaged(data: bytes, signal: str) -> Batch:
    batch = Batch()
    try:
        groups = [g for number, g in _fields(data) if number == 1]
    except ValueError:
        return Batch(known=False, faults=["no OTLP message: cut, or no protobuf at all"])
    for group in groups:
        try:
            _salvage_group(group, signal, batch)
        except ValueError:
            batch.faults.append(f"a group of {signal} that can't be read")
    batch.known = bool(batch.spans or batch.logs)
    return batch


def _salvage_group(group: bytes, signal: str, batch: Batch) -> None:
    fields = list(_fields(group))
    resource: dict[str, Any] = {}
    for number, data in fields:
        if number == _RESOURCE:
            try:
                resource = _attributes(Resource.FromString(data).attributes)
            except DecodeError:
                batch.faults.append("a resource that can't be read")
    for number, scoped in fields:
        if number != _ITEMS:
            continue
        inner = list(_fields(scoped))
        scope = InstrumentationScope()
        for key, data in inner:
            if key == _SCOPE:
                try:
                    scope = InstrumentationScope.FromString(data)
                except DecodeError:
                    batch.faults.append("a scope that can't be read")
        for key, data in inner:
            if key != _ITEMS:
                continue
            try:
                if signal == "spans":
                    _add_span(Span.FromString(data), scope.name, scope.version, resource, batch)
                else:
                    _add_log(LogRecord.FromString(data), scope.name, resource, batch)
            except DecodeError:
                batch.faults.append(f"one of the {signal} can't be read")


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields of a message as (number, bytes); others are passed over.

    Raises:
        ValueError: the bytes are no protobuf message.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise ValueError("no field number")
        if wire == 0:
            _, at = _varint(data, at)
        elif wire == 1:
            at += 8
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > end:
                raise ValueError("cut field")
            yield number, data[at : at + size]
            at += size
        elif wire == 5:
            at += 4
        else:
            raise ValueError("unknown wire type")
    if at > end:
        raise ValueError("cut field")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("cut number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
