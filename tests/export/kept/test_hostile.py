"""Files that were damaged anywhere: a verdict or one clear error, never a crash, and never a pass for another history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData

from otel_agentrec import verify
from otel_agentrec.errors import AgentRecError

from ...journal import build
from . import collector
from .conftest import ONE

Json = Any


def evidence(recording: Path, form: str) -> bytes:
    """Event records and stamps as JSON lines, event records as protobuf, or stamps as Jaeger answers them."""
    records, spans = collector.event_records(recording), collector.stamped_spans(recording)
    if form == "json":
        documents = [*collector.batched(records, 5), collector.spans_line(spans)]
        return b"".join(json.dumps(d, ensure_ascii=False).encode() + b"\n" for d in documents)
    if form == "jaeger":
        return json.dumps(collector.jaeger(spans)).encode()
    messages = [json_format.ParseDict(d, LogsData()).SerializeToString() for d in collector.batched(records, 5)]
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


@pytest.mark.parametrize("form", ["json", "protobuf", "jaeger"])
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_gives_a_verdict_or_one_clear_error(
    form: str, recording: build.Recording, tmp_path: Path, data: st.DataObject
) -> None:
    whole = evidence(recording.directory, form)
    at = data.draw(st.integers(0, len(whole) - 1), label="at")
    length = data.draw(st.integers(0, 12), label="cut")
    put = data.draw(st.binary(max_size=12), label="put")
    path = tmp_path / "evidence"
    path.write_bytes(whole[:at] + put + whole[at + length :])
    for how in ({}, {"against": path}):
        try:
            report = verify(recording.directory if how else path, **how)
        except AgentRecError as e:
            assert str(e)
            assert e.hint
            continue
        assert report.exit_code in (0, 1, 3, 4)
        json.dumps(report.to_json())
        if not how and report.exit_code == 0:
            assert report.events == 16, "what is called whole is all of it"


def record(**changes: Json) -> Json:
    return {"eventName": "agentrec.event", "body": {"stringValue": "{}"}, "attributes": [], **changes}


@pytest.mark.parametrize(
    "bad",
    [
        record(),
        record(body={"stringValue": "[" * 5000}),
        record(body={"stringValue": '{"seq":1e400,"stream":null}'}),
        record(body={"bytesValue": "AAAA"}),
        record(body=None),
        record(attributes=[collector.attribute("agentrec.stream", "\x1b[31m\n")]),
        record(attributes=[collector.attribute("agentrec.seq", "9" * 5000)]),
        record(attributes=[collector.attribute("agentrec.seq", -1), collector.attribute("agentrec.stream", ONE)]),
    ],
)
def test_records_that_no_recorder_writes(bad: Json, recording: build.Recording, tmp_path: Path) -> None:
    records = [*collector.event_records(recording.directory), bad]
    path = collector.write(tmp_path / "evidence.jsonl", collector.batched(records))
    assert verify(path).exit_code == 1
    assert verify(recording.directory, against=path).exit_code == 4


@pytest.mark.parametrize("beginning", [0, 1])
@pytest.mark.parametrize("seq", ["9" * 5000, "\u0663", "", 2**70, -1, "-1", {"intValue": 2**70}, {"intValue": -1}])
def test_stamps_with_numbers_that_are_none(
    seq: Json, beginning: int, recording: build.Recording, tmp_path: Path
) -> None:
    spans = collector.stamped_spans(recording.directory)
    collector.set_attribute(spans[0], "agentrec.seq", 0 if isinstance(seq, dict) else seq)
    if isinstance(seq, dict):
        next(a for a in spans[0]["attributes"] if a["key"] == "agentrec.seq")["value"] = seq
    records = collector.event_records(recording.directory)[beginning:]
    path = collector.write(tmp_path / "kept.jsonl", [*collector.batched(records), collector.spans_line(spans)])
    assert verify(recording.directory, against=path).exit_code == 4
    report = verify(path)
    assert "anchor_invalid" in [stream.kind for stream in report.streams or ()]
    assert report.exit_code == 4


def test_a_checkpoint_of_more_events_than_a_stream_can_have(recording: build.Recording, tmp_path: Path) -> None:
    head = collector.checkpoint(ONE, 1, "a" * 64)
    next(a for a in head["attributes"] if a["key"] == "agentrec.size")["value"] = {"intValue": 2**70}
    records = collector.event_records(recording.directory)
    path = collector.write(tmp_path / "kept.jsonl", [*collector.batched(records), collector.spans_line([head])])
    for report in (verify(path), verify(recording.directory, against=path)):
        assert (report.exit_code, report.kind) == (4, "anchor_invalid")
