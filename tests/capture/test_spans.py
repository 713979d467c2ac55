"""Views of SDK spans and log records."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from otel_agentrec.capture.spans import CLIENT, ERROR, NOTHING_DROPPED, from_sdk, from_sdk_log


class Ended(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


@pytest.fixture
def ended() -> Ended:
    return Ended()


@pytest.fixture
def tracer(ended: Ended) -> trace.Tracer:
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    provider.add_span_processor(ended)
    return provider.get_tracer("an.instrumentation", "1.2")


def test_an_ended_span_is_seen_whole(tracer: trace.Tracer, ended: Ended) -> None:
    with tracer.start_as_current_span("outer") as outer:
        span = tracer.start_span(
            "chat m", kind=trace.SpanKind.CLIENT, links=[trace.Link(outer.get_span_context())], start_time=5
        )
        span.set_attribute("gen_ai.request.model", "m")
        span.set_attribute("nested", {"a": [1, None, {"b": b"x"}]})
        span.add_event("gen_ai.choice.delta", {"content": "tok"}, timestamp=7)
        span.set_status(Status(StatusCode.ERROR, "boom"))
        span.end(end_time=9)
    view = from_sdk(ended.spans[0])
    parent = outer.get_span_context()
    assert view.trace_id == f"{parent.trace_id:032x}"
    assert view.parent_span_id == f"{parent.span_id:016x}"
    assert (view.name, view.kind, view.scope, view.scope_version) == ("chat m", CLIENT, "an.instrumentation", "1.2")
    assert (view.start_ns, view.end_ns) == (5, 9)
    assert view.attributes == {"gen_ai.request.model": "m", "nested": {"a": (1, None, {"b": b"x"})}}
    assert [(e.name, e.ts_ns, dict(e.attributes)) for e in view.events] == [
        ("gen_ai.choice.delta", 7, {"content": "tok"})
    ]
    assert view.links == ((view.trace_id, view.parent_span_id),)
    assert (view.status_code, view.status_message) == (ERROR, "boom")
    assert view.resource["telemetry.sdk.language"] == "python"
    assert view.dropped == NOTHING_DROPPED
    assert from_sdk(ended.spans[1]).parent_span_id is None


def test_an_open_span_has_no_end(tracer: trace.Tracer) -> None:
    span = tracer.start_span("chat m")
    assert from_sdk(span).end_ns is None  # type: ignore[arg-type]
    span.end()


def test_what_the_sdk_dropped_is_counted(ended: Ended) -> None:
    from opentelemetry.sdk.trace import SpanLimits

    provider = TracerProvider(
        sampler=ALWAYS_ON, span_limits=SpanLimits(max_attributes=2, max_events=1), shutdown_on_exit=False
    )
    provider.add_span_processor(ended)
    span = provider.get_tracer("t").start_span("s", attributes={"a": 1, "b": 2, "c": 3})
    span.add_event("one")
    span.add_event("two")
    span.end()
    view = from_sdk(ended.spans[0])
    assert (view.dropped.attributes, view.dropped.events, view.dropped.links) == (1, 1, 0)
    assert set(view.attributes) == {"b", "c"}


def test_later_changes_of_the_attributes_are_not_seen(tracer: trace.Tracer) -> None:
    span = tracer.start_span("s", attributes={"a": 1})
    view = from_sdk(span)  # type: ignore[arg-type]
    span.set_attribute("b", 2)
    assert dict(view.attributes) == {"a": 1}
    span.end()


class Raising:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError


CONTEXT = SpanContext(0xABC, 0xDEF, False, TraceFlags(1))


@pytest.mark.parametrize(
    "make",
    [
        object,
        Raising,
        lambda: ReadableSpan("bare"),
        lambda: ReadableSpan("no attributes", CONTEXT, attributes=None),
        lambda: ReadableSpan(7, CONTEXT, attributes={1: "one"}),  # type: ignore[arg-type, dict-item]
        lambda: ReadableSpan(Unprintable(), CONTEXT, start_time="now", end_time=1.5),  # type: ignore[arg-type]
        lambda: ReadableSpan("odd", CONTEXT, kind=None, status=None, events=None, links=[None]),  # type: ignore[arg-type, list-item]
    ],
)
def test_an_odd_span_is_read_as_far_as_it_goes(make: Any) -> None:
    view = from_sdk(make())
    assert len(view.trace_id) == 32
    assert len(view.span_id) == 16
    assert isinstance(view.name, str)
    assert isinstance(view.start_ns, int)
    assert all(isinstance(key, str) for key in view.attributes)


def test_an_odd_span_keeps_what_can_be_read() -> None:
    view = from_sdk(ReadableSpan(7, CONTEXT, attributes={1: "one"}, start_time=3, end_time=4.0))  # type: ignore[arg-type, dict-item]
    assert (view.name, view.span_id, dict(view.attributes)) == ("7", "0000000000000def", {"1": "one"})
    assert (view.start_ns, view.end_ns) == (3, 4)


def test_a_log_record_names_its_span_and_its_event(tracer: trace.Tracer) -> None:
    seen: list[Any] = []

    class Keep:
        def on_emit(self, record: Any) -> None:
            seen.append(record)

        def shutdown(self) -> None: ...

        def force_flush(self, timeout_millis: int = 0) -> bool:
            return True

    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(Keep())  # type: ignore[arg-type]
    logger = provider.get_logger("an.instrumentation")
    with tracer.start_as_current_span("s") as span:
        logger.emit(event_name="gen_ai.choice", body={"a": 1}, attributes={"k": "v"}, timestamp=5)
    logger.emit(attributes={"event.name": "old.form"})
    first, second = (from_sdk_log(r) for r in seen)
    assert first.span_id == f"{span.get_span_context().span_id:016x}"
    assert (first.event_name, first.ts_ns, first.body, dict(first.attributes)) == (
        "gen_ai.choice",
        5,
        {"a": 1},
        {"k": "v"},
    )
    assert first.scope == "an.instrumentation"
    assert first.observed_ns is not None
    assert (second.event_name, second.trace_id, second.span_id) == ("old.form", None, None)


def test_a_log_record_of_any_shape_is_read() -> None:
    assert from_sdk_log(Raising()).event_name == ""
    assert from_sdk_log(None).attributes == {}
