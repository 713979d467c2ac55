"""OTLP/JSON in its standard form and in the forms that other printers write."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.capture.otlp_json import any_value, decode, hex_id, integer
from otel_agentrec.capture.spans import CLIENT, ERROR

from .otlp_files import TRACE, log, logs, pairs, span, traces, value


@pytest.mark.parametrize("held", [{"a": 1}, "x", 7])
def test_what_should_be_a_list_and_is_none_is_a_fault(held: Any) -> None:
    batch = decode({"resourceSpans": held})
    assert batch.known and batch.faults == ["resourceSpans is no list"]
    assert decode({"resourceSpans": None}).faults == []


class TestSpans:
    def test_the_standard_form(self) -> None:
        link = {"traceId": TRACE, "spanId": "00f067aa0ba902b7"}
        event = {"name": "e", "timeUnixNano": "7", "attributes": pairs({"k": "v"})}
        batch = decode(
            traces(
                span(
                    2,
                    "chat m",
                    {"a": 1},
                    parent=1,
                    status={"code": 2, "message": "boom"},
                    events=[event],
                    links=[link],
                    droppedAttributesCount=3,
                )
            )
        )
        (view,) = batch.spans
        assert (view.trace_id, view.span_id, view.parent_span_id) == (TRACE, f"{2:016x}", f"{1:016x}")
        assert (view.name, view.kind, view.scope) == ("chat m", CLIENT, "an.instrumentation")
        assert (view.start_ns, view.end_ns) == (2_000_000, 3_000_000)
        assert (view.status_code, view.status_message) == (ERROR, "boom")
        assert view.events[0] == ("e", 7, {"k": "v"})
        assert view.links == ((TRACE, "00f067aa0ba902b7"),)
        assert view.dropped == (3, 0, 0)
        assert (view.attributes, view.resource) == ({"a": 1}, {"service.name": "app"})
        assert batch.faults == []

    @pytest.mark.parametrize(
        ("field", "spelling", "attribute", "expected"),
        [
            ("traceId", TRACE.upper(), "trace_id", TRACE),
            ("traceId", "CvdlGRbNQ92ESOshHIAxnA==", "trace_id", TRACE),
            ("spanId", "AAAAAAAAAAI=", "span_id", f"{2:016x}"),
            ("spanId", "0x00F067AA0BA902B7", "span_id", "00f067aa0ba902b7"),
            ("parentSpanId", None, "parent_span_id", None),
            ("parentSpanId", "0" * 16, "parent_span_id", None),
            ("kind", "SPAN_KIND_CLIENT", "kind", CLIENT),
            ("kind", "3", "kind", CLIENT),
            ("kind", "SPAN_KIND_FUTURE", "kind", 0),
            ("startTimeUnixNano", 1767225600000000001, "start_ns", 1767225600000000001),
            ("endTimeUnixNano", 5.0, "end_ns", 5),
            ("endTimeUnixNano", "0", "end_ns", None),
            ("status", None, "status_code", 0),
            ("status", {"code": "STATUS_CODE_ERROR"}, "status_code", ERROR),
            ("events", None, "events", ()),
            ("attributes", {"k": {"intValue": "1"}, "plain": "text"}, "attributes", {"k": 1, "plain": "text"}),
            ("attributes", None, "attributes", {}),
            ("name", None, "name", ""),
        ],
    )
    def test_what_else_is_read(self, field: str, spelling: Any, attribute: str, expected: Any) -> None:
        (view,) = decode(traces({**span(2, "s"), field: spelling, "futureField": {"a": [1]}})).spans
        assert getattr(view, attribute) == expected

    def test_snake_case(self) -> None:
        document = {
            "resource_spans": [
                {
                    "scope_spans": [
                        {
                            "spans": [
                                {
                                    "trace_id": TRACE,
                                    "span_id": f"{2:016x}",
                                    "parent_span_id": f"{1:016x}",
                                    "start_time_unix_nano": 5,
                                    "attributes": [{"key": "k", "value": {"string_value": "v"}}],
                                }
                            ]
                        }
                    ]
                }
            ]
        }
        (view,) = decode(document).spans
        assert (view.start_ns, view.attributes, view.parent_span_id) == (5, {"k": "v"}, f"{1:016x}")

    def test_the_keys_before_1_0(self) -> None:
        group = {"instrumentationLibrary": {"name": "lib", "version": "1"}, "spans": [span(2, "s")]}
        (view,) = decode({"resourceSpans": [{"instrumentationLibrarySpans": [group]}]}).spans
        assert (view.scope, view.scope_version) == ("lib", "1")

    def test_a_list_of_documents(self) -> None:
        assert len(decode([traces(span(1, "a")), traces(span(2, "b"))]).spans) == 2

    def test_a_span_without_ids_costs_only_itself(self) -> None:
        batch = decode(traces({**span(1, "a"), "traceId": "nonsense"}, span(2, "b"), {**span(3, "c"), "spanId": 7}))
        assert [s.name for s in batch.spans] == ["b"]
        assert batch.faults == ["a span without a readable trace id", "a span without a readable span id"]

    @pytest.mark.parametrize("document", [1, None, "text", [], {}, {"resourceSpan": []}, [1, {"a": 1}]])
    def test_what_is_no_otlp(self, document: Any) -> None:
        batch = decode(document)
        assert not batch.known
        assert len(batch.faults) == 1

    def test_metrics_are_known_and_counted(self) -> None:
        batch = decode({"resourceMetrics": [{}, {}]})
        assert (batch.known, batch.metrics, batch.faults) == (True, 2, [])

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "resourceSpans",
                            "scopeSpans",
                            "scope",
                            "spans",
                            "traceId",
                            "attributes",
                            "key",
                            "value",
                            "stringValue",
                            "values",
                            "status",
                            "arrayValue",
                            "kvlistValue",
                            "events",
                            "links",
                            "resourceLogs",
                            "scopeLogs",
                            "logRecords",
                            "resource",
                            "body",
                        ]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=30,
        )
    )
    def test_nothing_raises(self, document: Any) -> None:
        decode(document)


class TestLogs:
    def test_an_event(self) -> None:
        (view,) = decode(logs({**log("gen_ai.choice", 2, {"k": "v"}), "body": value({"a": [1, None]})})).logs
        assert (view.trace_id, view.span_id, view.event_name) == (TRACE, f"{2:016x}", "gen_ai.choice")
        assert (view.observed_ns, view.ts_ns, view.body, view.attributes) == (5, None, {"a": [1, None]}, {"k": "v"})

    def test_the_old_place_of_the_name_and_a_record_of_no_span(self) -> None:
        (view,) = decode(logs({"traceId": "", "attributes": pairs({"event.name": "old"}), "timeUnixNano": 9})).logs
        assert (view.event_name, view.trace_id, view.span_id, view.ts_ns) == ("old", None, None, 9)


class TestValues:
    @pytest.mark.parametrize(
        ("any_of", "expected"),
        [
            ({}, None),
            (None, None),
            ({"stringValue": None}, None),
            ({"stringValue": ""}, ""),
            ({"intValue": "9223372036854775807"}, 9223372036854775807),
            ({"intValue": 7}, 7),
            ({"intValue": "seven"}, "seven"),
            ({"doubleValue": 1}, 1.0),
            ({"doubleValue": "-Infinity"}, -math.inf),
            ({"doubleValue": "1E400"}, "1E400"),
            ({"boolValue": False}, False),
            ({"boolValue": "true"}, True),
            ({"bytesValue": "AP8="}, b"\x00\xff"),
            ({"bytesValue": "not base64!"}, "not base64!"),
            ({"arrayValue": {}}, []),
            ({"kvlistValue": {}}, {}),
            ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
            ({"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}}, {"k": True}),
            ({"int_value": 7}, 7),
            ("bare", "bare"),
            ({"futureValue": 1}, {"futureValue": 1}),
        ],
    )
    def test_each_kind(self, any_of: Any, expected: Any) -> None:
        found = any_value(any_of)
        assert found == expected
        assert type(found) is type(expected)

    def test_not_a_number(self) -> None:
        assert math.isnan(any_value({"doubleValue": "NaN"}))

    def test_depth_is_bounded(self) -> None:
        deep: Any = {"intValue": "1"}
        for _ in range(300):
            deep = {"arrayValue": {"values": [deep]}}
        found, depth = any_value(deep), 0
        while isinstance(found, list):
            found, depth = found[0], depth + 1
        assert depth == 64
        assert "arrayValue" in found

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        )
    )
    def test_every_value_comes_back(self, told: Any) -> None:
        assert any_value(value(told)) == told

    @given(st.binary(min_size=8, max_size=8).filter(any))
    def test_an_id_is_the_same_in_every_spelling(self, raw: bytes) -> None:
        import base64

        spelt = [raw.hex(), raw.hex().upper(), "0x" + raw.hex(), base64.b64encode(raw).decode()]
        spelt.append(base64.urlsafe_b64encode(raw).decode().rstrip("="))
        assert {hex_id(s, 8) for s in spelt} == {raw.hex()}

    @pytest.mark.parametrize("odd", ["", "abc", "0" * 16, None, 7, "g" * 16, "é" * 16])
    def test_no_id(self, odd: Any) -> None:
        assert hex_id(odd, 8) is None

    @pytest.mark.parametrize(
        ("told", "expected"),
        [("12", 12), (" 12 ", 12), (12.0, 12), (1.5, None), (True, None), ("1e3", None), ([], None)],
    )
    def test_integers(self, told: Any, expected: int | None) -> None:
        assert integer(told) == expected
