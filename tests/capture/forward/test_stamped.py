"""Law: a stamped copy is the span, but for its attributes, as far as OTLP can tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from otel_agentrec.capture.forward.cleaned import Cleaner
from otel_agentrec.capture.forward.stamped import Said, StampedSpan, said_by
from otel_agentrec.redaction import Redactor

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
VALUE: st.SearchStrategy[Any] = st.one_of(
    TEXT, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.lists(TEXT, max_size=3)
)
ATTRIBUTES = st.dictionaries(TEXT.filter(bool), VALUE, max_size=8)
CONTEXT = st.builds(
    SpanContext,
    st.integers(1, 2**128 - 1),
    st.integers(1, 2**64 - 1),
    st.booleans(),
    st.sampled_from([TraceFlags(0), TraceFlags(1), TraceFlags(3)]),
    st.just(TraceState([("vendor", "a")])),
)


class Ids(IdGenerator):
    """Always the same."""

    def generate_trace_id(self) -> int:
        return 0xA1

    def generate_span_id(self) -> int:
        return 0xB2


@st.composite
def spans(draw: st.DrawFn) -> ReadableSpan:
    """Ended spans of a real SDK, whose limits drop some of what they are given."""
    limits = SpanLimits(max_span_attributes=4, max_events=2, max_links=2, max_event_attributes=2, max_link_attributes=2)
    provider = TracerProvider(
        resource=Resource(draw(ATTRIBUTES)), span_limits=limits, id_generator=Ids(), shutdown_on_exit=False
    )
    tracer = provider.get_tracer(
        draw(TEXT.filter(bool)), draw(TEXT), schema_url=draw(st.sampled_from(["", "https://s"]))
    )
    span: Any = tracer.start_span(
        draw(TEXT),
        kind=draw(st.sampled_from(SpanKind)),
        attributes=draw(ATTRIBUTES),
        links=[Link(draw(CONTEXT), draw(ATTRIBUTES)) for _ in range(draw(st.integers(0, 3)))],
        start_time=draw(st.integers(1, 2**62)),
    )
    span._parent = draw(st.none() | CONTEXT)
    for _ in range(draw(st.integers(0, 4))):
        span.add_event(draw(TEXT), draw(ATTRIBUTES), timestamp=draw(st.integers(1, 2**62)))
    span.set_status(draw(st.sampled_from([Status(), Status(StatusCode.OK), Status(StatusCode.ERROR, "no")])))
    span.end(draw(st.integers(1, 2**62)))
    return span._readable_span()  # type: ignore[no-any-return]


def but_attributes(span: ReadableSpan) -> Any:
    encoded = encode_spans([span])
    encoded.resource_spans[0].scope_spans[0].spans[0].ClearField("attributes")
    return encoded


@settings(max_examples=60)
@given(spans(), ATTRIBUTES)
def test_every_field_but_the_attributes_is_the_same(span: ReadableSpan, attributes: dict[str, Any]) -> None:
    cleaner = Cleaner(Redactor(credentials=False))
    for make in (lambda: said_by(span, attributes), lambda: cleaner.said(span, attributes)):
        copy = StampedSpan(span, make)
        assert but_attributes(copy) == but_attributes(span)
        assert dict(copy.attributes or {}) == attributes
        assert copy.to_json()


def test_nothing_is_made_before_it_is_asked_for_and_then_once() -> None:
    span: Any = TracerProvider(shutdown_on_exit=False).get_tracer("app").start_span("s")
    span.end()
    made = []

    def make() -> Said:
        made.append(1)
        return said_by(span, {"a": 1})

    copy = StampedSpan(span, make)
    assert copy.context is span.context and copy.end_time and not made
    with pytest.raises(AttributeError):
        copy.nothing_of_ours  # noqa: B018
    assert (copy.name, copy.attributes, made) == ("s", {"a": 1}, [1])
