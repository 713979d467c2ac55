"""Langfuse shows our runs right: its mapping rules over the bytes that were sent to it. Not run against a Langfuse server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import read_nodes
from otel_agentrec.demo import stage
from otel_agentrec.journal.stamps import Stamp
from otel_agentrec.nodes.record import NodeIoRecord
from tests.capture.forward.sinks import HttpSink, Request
from tests.servers.collector import Collector
from tests.servers.feeding import export, stamps
from tests.servers.langfuse import MAX_BODY_BYTES, Observation, Refused, Trace, observation, traces

Json = Any
Sent = Callable[[Path], list[Request]]

OURS = {"MODEL": "GENERATION", "TOOL": "TOOL"}


@pytest.fixture(params=["export", pytest.param("collector", marks=pytest.mark.servers)])
def sent(request: pytest.FixtureRequest, hosted: HttpSink) -> Iterator[Sent]:
    """The requests that a recording becomes: those of ``export`` itself, and those that left through ``langfuse.yaml``."""

    def send(recording: Path) -> list[Request]:
        hosted.came.clear()
        if request.param == "export":
            count = export(recording, f"{hosted.url}/api/public/otel", "--again")
        else:
            start: Callable[..., Collector] = request.getfixturevalue("collector")
            one = start("langfuse.yaml", LANGFUSE_HOST=hosted.url)
            count = export(recording, one.http_url, "--again")
        assert len(hosted.wait_for(count)) == count
        return list(hosted.came)

    yield send


def mapped(requests: list[Request]) -> dict[str, Trace]:
    assert {one.path for one in requests} == {"/api/public/otel/v1/traces"}
    return traces(one.message() for one in requests)


def by_span(found: dict[str, Trace]) -> dict[tuple[str, str], Observation]:
    return {(one.trace_id, one.id): one for trace in found.values() for one in trace.observations}


def said(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def test_the_demo_is_one_trace_whose_root_says_what_was_asked_and_answered(demo: Path, sent: Sent) -> None:
    [trace] = mapped(sent(demo)).values()
    assert stage.QUESTION in said(trace.input)
    assert stage.ANSWER in said(trace.output)
    assert sorted(one.type for one in trace.observations) == ["AGENT", "GENERATION", "GENERATION", "TOOL", "TOOL"]
    assert {one.name for one in trace.observations if one.type == "TOOL"} == {"weather", "last_train"}
    models = [one for one in trace.observations if one.type == "GENERATION"]
    for one in models:
        assert one.tool_definitions
        assert one.usage["input"] > 0 and one.usage["output"] > 0
        assert stage.QUESTION in said(one.input)
    assert stage.ANSWER in said(models[-1].output)
    assert trace.creations == 1, "only the root names the session: each other span that does costs a write of the trace"


def test_what_was_recorded_is_what_is_shown(many: Path, sent: Sent) -> None:
    """Runs of many frameworks: kinds, both sides, models, tokens, sessions, failures, names."""
    requests = sent(many)
    shown = by_span(mapped(requests))
    records = [one for one in read_nodes(many) if one.span_id]
    assert len(records) > 50
    for record in records:
        one = shown[str(record.trace_id), str(record.span_id)]
        assert one.type == OURS[record.node_type.value], record
        assert one.level == ("ERROR" if record.status == "error" else "DEFAULT")
        shows_both_sides(record, one)
        if record.node_type == "MODEL":
            assert one.model == (record.response_model or record.model_id)
            cached = (record.cache_read_tokens or 0) + (record.cache_write_tokens or 0)
            if record.input_tokens is not None:
                assert one.usage["input"] == max(0, record.input_tokens - cached)
            assert one.usage.get("output") == record.output_tokens
        elif record.tool_name:
            assert one.name == record.tool_name
        if record.session_id:
            assert one.session_id == record.session_id


def shows_both_sides(record: NodeIoRecord, one: Observation) -> None:
    inputs: Json = record.inputs or {}
    if record.node_type == "TOOL":
        given, gave = inputs.get("arguments"), record.outputs
    else:
        given, gave = inputs.get("messages"), record.output_text
    if given:
        assert one.input is not None, record
    if gave:
        assert one.output is not None, record
    if record.node_type == "TOOL" and isinstance(given, dict):  # some instrumentations put more around the arguments
        assert all(str(value) in said(one.input) for value in given.values() if isinstance(value, (str, int))), record
    if record.node_type == "MODEL" and gave:
        assert json.dumps(gave, ensure_ascii=False)[1:-1] in said(one.output), record


def test_a_line_of_the_recording_can_be_found_from_what_is_filtered_by(demo: Path, sent: Sent) -> None:
    found = set()
    for one in by_span(mapped(sent(demo))).values():
        values = {key.removeprefix("agentrec_"): value for key, value in one.metadata.items()}
        found.add(Stamp(**values))
    assert found == stamps(demo)


def test_no_request_and_no_span_is_larger_than_it_takes(many: Path, sent: Sent) -> None:
    requests = sent(many)
    assert all(len(one.body) <= MAX_BODY_BYTES for one in requests)
    assert not any(one.warnings for one in by_span(mapped(requests)).values())


def test_one_bad_span_is_a_refused_request() -> None:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    with pytest.raises(Refused):
        observation(Span(name="chat", span_id=b"1" * 8, start_time_unix_nano=1))
