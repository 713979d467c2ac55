"""OTLP/protobuf messages of traces and of logs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status, TracesData

from otel_agentrec.capture.otlp_protobuf import decode
from otel_agentrec.capture.spans import CLIENT, ERROR

TRACE, PARENT = bytes(range(16)), bytes(range(1, 9))


def span(number: int, **more: object) -> Span:
    return Span(trace_id=TRACE, span_id=number.to_bytes(8, "big"), name=f"s{number}", **more)  # type: ignore[arg-type]


def traces(*spans: Span) -> bytes:
    group = ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])
    group.resource.attributes.append(KeyValue(key="service.name", value=AnyValue(string_value="app")))
    group.scope_spans[0].scope.name = "an.instrumentation"
    return TracesData(resource_spans=[group]).SerializeToString()


def test_a_span() -> None:
    values = AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=2**62), AnyValue()]))
    listed = AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="k", value=AnyValue(bytes_value=b"\xff"))]))
    (view,) = decode(
        traces(
            span(
                2,
                parent_span_id=PARENT,
                kind=3,
                start_time_unix_nano=5,
                end_time_unix_nano=9,
                status=Status(code=Status.STATUS_CODE_ERROR, message="boom"),
                attributes=[KeyValue(key="list", value=values), KeyValue(key="map", value=listed)],
                events=[Span.Event(name="e", time_unix_nano=7)],
                dropped_attributes_count=3,
            )
        )
    ).spans
    assert (view.trace_id, view.span_id, view.parent_span_id) == (TRACE.hex(), f"{2:016x}", PARENT.hex())
    assert (view.name, view.kind, view.scope, view.start_ns, view.end_ns) == ("s2", CLIENT, "an.instrumentation", 5, 9)
    assert (view.status_code, view.status_message) == (ERROR, "boom")
    assert view.attributes == {"list": [2**62, None], "map": {"k": b"\xff"}}
    assert (view.events, view.dropped, view.resource) == ((("e", 7, {}),), (3, 0, 0), {"service.name": "app"})


def test_a_log_record_is_told_from_a_span() -> None:
    record = LogRecord(
        observed_time_unix_nano=5, trace_id=TRACE, span_id=PARENT, event_name="e", body=AnyValue(string_value="text")
    )
    data = LogsData(resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=[record])])]).SerializeToString()
    batch = decode(data)
    assert batch.spans == []
    (view,) = batch.logs
    assert (view.trace_id, view.span_id, view.event_name, view.body) == (TRACE.hex(), PARENT.hex(), "e", "text")
    assert batch.faults == []


def test_metrics_are_told_from_both() -> None:
    metric = Metric(name="sixteen.letters!", description="eight ch", gauge=Gauge())  # as long as the ids of a span
    data = MetricsData(resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=[metric])])])
    batch = decode(data.SerializeToString())
    assert (batch.spans, batch.logs, batch.known, batch.metrics) == ([], [], True, 1)


def test_a_span_without_ids_costs_only_itself() -> None:
    batch = decode(traces(span(1), Span(name="no ids"), span(3)))
    assert [s.name for s in batch.spans] == ["s1", "s3"]
    assert batch.faults == ["a span without a readable id"]


def not_utf8(number: int) -> bytes:
    data = span(number, attributes=[KeyValue(key="k", value=AnyValue(string_value="~~"))]).SerializeToString()
    return data.replace(b"~~", b"\xff\xff")


def field(number: int, data: bytes) -> bytes:
    size, varint = len(data), b""
    while size > 127:
        varint, size = varint + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + varint + bytes([size]) + data


def test_a_span_that_protobuf_refuses_costs_only_itself() -> None:
    spans = field(2, span(1).SerializeToString()) + field(2, not_utf8(2)) + field(2, span(3).SerializeToString())
    data = field(1, field(2, field(1, field(1, b"an.instrumentation")) + spans))
    batch = decode(data)
    assert [(s.name, s.scope) for s in batch.spans] == [("s1", "an.instrumentation"), ("s3", "an.instrumentation")]
    assert batch.faults == ["one of the spans can't be read"]
    assert batch.known


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"\x0a\x7fshort", b"\x07"])
def test_what_is_no_message(data: bytes) -> None:
    batch = decode(data)
    assert not batch.known
    assert batch.faults


def test_an_empty_message_is_known() -> None:
    batch = decode(b"")
    assert (batch.known, batch.spans, batch.faults) == (True, [], [])


@given(st.binary(max_size=200))
def test_nothing_raises(data: bytes) -> None:
    decode(data)


@given(st.integers(min_value=0), st.binary(min_size=1, max_size=3))
def test_a_message_with_some_bytes_changed_never_raises(at: int, new: bytes) -> None:
    data = traces(span(1, attributes=[KeyValue(key="k", value=AnyValue(string_value="v"))]), span(2))
    at %= len(data)
    decode(data[:at] + new + data[at + len(new) :])
