"""Answers of Jaeger's API are read as what they are: spans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import ingest, read_nodes
from otel_agentrec.capture.jaeger_json import decode
from otel_agentrec.capture.otlp import OtlpFile

Json = Any

SPAN = {
    "traceID": "af7651916cd43dd8448eb211c80319c",
    "spanID": "7ad6b7169203331",
    "operationName": "chat gpt-5",
    "references": [
        {"refType": "FOLLOWS_FROM", "traceID": "b" * 32, "spanID": "1" * 16},
        {"refType": "CHILD_OF", "traceID": "0af7651916cd43dd8448eb211c80319c", "spanID": "b9c7c989f97918e1"},
    ],
    "startTime": 1_700_000_000_000_001,
    "duration": 1500,
    "tags": [
        {"key": "span.kind", "type": "string", "value": "client"},
        {"key": "otel.scope.name", "type": "string", "value": "test"},
        {"key": "otel.scope.version", "type": "string", "value": "1"},
        {"key": "otel.status_code", "type": "string", "value": "ERROR"},
        {"key": "otel.status_description", "type": "string", "value": "too long"},
        {"key": "error", "type": "bool", "value": True},
        {"key": "gen_ai.operation.name", "type": "string", "value": "chat"},
        {"key": "gen_ai.request.model", "type": "string", "value": "gpt-5"},
        {"key": "gen_ai.usage.input_tokens", "type": "int64", "value": "9007199254740993"},
        {"key": "share", "type": "float64", "value": 0.5},
    ],
    "logs": [
        {
            "timestamp": 1_700_000_000_000_700,
            "fields": [
                {"key": "event", "type": "string", "value": "exception"},
                {"key": "exception.type", "type": "string", "value": "Timeout"},
            ],
        }
    ],
    "processID": "p1",
}
ANSWER = {
    "data": [
        {
            "traceID": SPAN["traceID"],
            "spans": [SPAN],
            "processes": {"p1": {"serviceName": "clerk", "tags": [{"key": "host", "type": "string", "value": "a"}]}},
        }
    ],
    "total": 0,
    "errors": None,
}


def test_a_span_has_what_otlp_would_say() -> None:
    batch = decode(ANSWER)
    assert batch is not None
    (span,) = batch.spans
    assert (span.trace_id, span.span_id) == ("0af7651916cd43dd8448eb211c80319c", "07ad6b7169203331")
    assert span.parent_span_id == "b9c7c989f97918e1"
    assert (span.name, span.kind, span.scope, span.scope_version) == ("chat gpt-5", 3, "test", "1")
    assert (span.start_ns, span.end_ns) == (1_700_000_000_000_001_000, 1_700_000_000_001_501_000)
    assert (span.status_code, span.status_message) == (2, "too long")
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.usage.input_tokens": 9007199254740993,
        "share": 0.5,
    }
    assert span.resource == {"service.name": "clerk", "host": "a"}
    ((name, at, fields),) = span.events
    assert (name, at, fields) == ("exception", 1_700_000_000_000_700_000, {"exception.type": "Timeout"})


@pytest.mark.parametrize(
    "document",
    [{}, {"data": 1}, {"data": [1]}, {"data": [{"spans": 1}]}, {"result": 1}, {"result": {}, "more": 1}, [], None, "x"],
    ids=json.dumps,
)
def test_what_is_no_such_answer(document: Json) -> None:
    assert decode(document) is None


@pytest.mark.parametrize("span", [1, {}, {**SPAN, "spanID": None}, {**SPAN, "traceID": "zz"}])
def test_a_span_without_ids_is_a_fault(span: Json) -> None:
    batch = decode({"data": [{"traceID": "x", "spans": [span, SPAN]}]})
    assert batch is not None
    assert (len(batch.spans), batch.faults) == (1, ["a span without a readable id"])


@pytest.mark.parametrize("member", [*SPAN])
@pytest.mark.parametrize("value", [None, 1, "x", [1], {"a": 1}], ids=repr)
def test_nothing_in_a_span_can_stop_it(member: str, value: Json) -> None:
    batch = decode({"data": [{"traceID": "x", "spans": [{**SPAN, member: value}]}]})
    assert batch is not None
    assert len(batch.spans) + len(batch.faults) == 1


def test_one_trace_as_the_ui_saves_it(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(ANSWER["data"][0], indent=2))  # type: ignore[index]
    (batch,) = OtlpFile(tmp_path / "trace.json").batches()
    assert len(batch.spans) == 1


def test_both_answers_can_be_ingested(tmp_path: Path) -> None:
    otlp = {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "07ad6b7169203331",
        "name": "chat gpt-5",
        "kind": 3,
        "startTimeUnixNano": "1700000000000001000",
        "endTimeUnixNano": "1700000000001501000",
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.request.model", "value": {"stringValue": "gpt-5"}},
        ],
    }
    v3 = {"result": {"resourceSpans": [{"scopeSpans": [{"spans": [otlp]}]}]}}
    for name, answer in (("old", ANSWER), ("v3", v3)):
        (tmp_path / f"{name}.json").write_text(json.dumps(answer))
        ingest(tmp_path / f"{name}.json", tmp_path / name)
        (record,) = read_nodes(tmp_path / name)
        assert (record.model_id, record.span_id) == ("gpt-5", "07ad6b7169203331")
