"""The two sinks, as ai4j's tests have them, and what those leave open."""

from __future__ import annotations

import json
import os
import threading

import pytest

from otel_agentrec.nodes.sinks import InMemoryIoCaptureSink, JsonlIoCaptureSink
from otel_agentrec.records import IoCaptureSink, NodeIoRecord, NodeType

MODEL = NodeIoRecord(
    record_id="r-model",
    node_type=NodeType.MODEL,
    node_id="model@run-1|turn-1|1",
    run_id="run-1",
    model_id="demo-large",
    inputs={"model": "demo-large", "messages": [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]},
    output_text="hello world",
    outputs={"usage": {"prompt_tokens": 0}},
    started_at_epoch_ms=1_000,
    captured_at_epoch_ms=1_500,
    duration_ms=500,
    reasoning_text="A\nB",
    retry_count=1,
    input_tokens=0,
    output_tokens=12,
    span_id="s-model",
)
TOOL = NodeIoRecord(
    record_id="r-tool",
    node_type=NodeType.TOOL,
    node_id="tool@run-1|turn-1|1|c1",
    run_id="run-1",
    outputs={"n": 12345678901234567890},
    started_at_epoch_ms=1_100,
    captured_at_epoch_ms=1_200,
    duration_ms=100,
    span_id="s-tool",
)


@pytest.fixture(params=["memory", "jsonl"])
def sink(request, tmp_path):
    made = InMemoryIoCaptureSink() if request.param == "memory" else JsonlIoCaptureSink(tmp_path / "io" / "nodes.jsonl")
    yield made
    made.close()


def test_parity_8_records_in_cause_order_when_the_tool_was_flushed_first(sink):
    sink.capture(TOOL)
    sink.capture(MODEL)
    assert [r.node_type for r in sink.records()] == [NodeType.MODEL, NodeType.TOOL]
    assert [r.record_id for r in sink.records(NodeType.TOOL)] == ["r-tool"]
    assert [r.record_id for r in sink.records("MODEL")] == ["r-model"]


def test_a_millisecond_tie_keeps_the_order_of_capture(sink):
    for name in "cab":
        sink.capture(NodeIoRecord(record_id=name, node_type=NodeType.TOOL, node_id=name, started_at_epoch_ms=5))
    assert [r.node_id for r in sink.records()] == ["c", "a", "b"]


def test_a_record_without_a_start_stays_behind_the_one_before_it(sink):
    for name, start in (("m1", 1_000), ("recovered", None), ("m2", 2_000)):
        sink.capture(NodeIoRecord(record_id=name, node_type=NodeType.MODEL, node_id=name, started_at_epoch_ms=start))
    assert [r.node_id for r in sink.records()] == ["m1", "recovered", "m2"]


def test_find_and_size(sink):
    assert sink.size() == 0 and sink.find("tool@run-1|turn-1|1|c1") is None
    sink.capture(MODEL)
    sink.capture(TOOL)
    assert sink.size() == 2
    assert sink.find("tool@run-1|turn-1|1|c1") == TOOL
    assert sink.find("tool@run-1|turn-1|2|c1") is None


def test_a_record_told_again_replaces_the_earlier_telling(sink):
    sink.capture(NodeIoRecord.from_json({**MODEL.to_json(), "outputText": "hel"}))
    sink.capture(TOOL)
    sink.capture(MODEL)
    assert sink.records() == [MODEL, TOOL]


def test_spans_that_another_record_names_as_merged_are_gone(sink):
    sink.capture(MODEL)
    outer = {**MODEL.to_json(), "recordId": "r-outer", "spanId": "s-outer", "mergedSpanIds": ["s-model"]}
    sink.capture(NodeIoRecord.from_json(outer))
    assert [r.record_id for r in sink.records()] == ["r-outer"]


def test_both_are_sinks(sink):
    assert isinstance(sink, IoCaptureSink)


def test_parity_6_jsonl_one_line_per_node_and_reload_keeps_all(tmp_path):
    path = tmp_path / "nodes.jsonl"
    sink = JsonlIoCaptureSink(path)
    sink.capture(MODEL)
    sink.capture(TOOL)
    lines = path.read_text("utf-8").splitlines()
    assert [json.loads(line)["nodeId"] for line in lines] == [MODEL.node_id, TOOL.node_id]
    assert JsonlIoCaptureSink.load(path) == [MODEL, TOOL]


def test_an_absent_file_holds_no_records(tmp_path):
    sink = JsonlIoCaptureSink(tmp_path / "none.jsonl")
    assert (sink.records(), sink.size(), sink.find("x"), JsonlIoCaptureSink.load(tmp_path / "none.jsonl")) == (
        [],
        0,
        None,
        [],
    )
    assert not (tmp_path / "none.jsonl").exists()


def test_lines_that_are_no_record_are_passed_over_and_counted(tmp_path):
    path = tmp_path / "nodes.jsonl"
    JsonlIoCaptureSink(path).capture(MODEL)
    with path.open("ab") as f:
        f.write(b"\n{not json}\n[1]\n\xff\xfe\n")
    sink = JsonlIoCaptureSink(path)
    assert sink.records() == [MODEL]
    assert sink.skipped == 3


def test_a_torn_last_line_spoils_no_further_one(tmp_path):
    path = tmp_path / "nodes.jsonl"
    JsonlIoCaptureSink(path).capture(MODEL)
    with path.open("ab") as f:
        f.write(b'{"recordId": "torn')
    sink = JsonlIoCaptureSink(path)
    sink.capture(TOOL)
    assert sink.records() == [MODEL, TOOL]
    assert sink.skipped == 1


def test_an_unknown_node_type_reads_as_model(tmp_path):
    path = tmp_path / "nodes.jsonl"
    path.write_text('{"recordId":"r","nodeId":"n","nodeType":"OTHER"}\n')
    assert JsonlIoCaptureSink.load(path)[0].node_type is NodeType.MODEL


def test_values_that_json_or_utf8_cannot_hold_do_not_lose_the_record(tmp_path):
    sink = JsonlIoCaptureSink(tmp_path / "nodes.jsonl")
    sink.capture(
        NodeIoRecord(record_id="r", node_type=NodeType.TOOL, node_id="n", outputs={"s": "\ud83d lone", "o": object})
    )
    (record,) = sink.records()
    assert record.outputs["s"] == "\ud83d lone"


def test_threads_write_whole_lines(tmp_path):
    path = tmp_path / "nodes.jsonl"
    sinks = [JsonlIoCaptureSink(path), JsonlIoCaptureSink(path)]

    def write(n: int) -> None:
        for i in range(50):
            sinks[n % 2].capture(
                NodeIoRecord(record_id=f"{n}-{i}", node_type=NodeType.TOOL, node_id="n", outputs="x" * 5_000)
            )

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sinks[0].size() == 200
    assert sinks[0].skipped == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_writes_to_the_same_file(tmp_path):
    sink = JsonlIoCaptureSink(tmp_path / "nodes.jsonl")
    sink.capture(MODEL)
    pid = os.fork()
    if pid == 0:
        sink.capture(TOOL)
        os._exit(0)
    os.waitpid(pid, 0)
    assert sink.records() == [MODEL, TOOL]


def test_a_descriptor_that_the_program_took_is_not_written_to(tmp_path):
    sink, own = JsonlIoCaptureSink(tmp_path / "nodes.jsonl"), tmp_path / "own"
    sink.capture(MODEL)
    with own.open("wb") as file:
        os.dup2(file.fileno(), sink._fd)
        taken = sink._fd
        sink.capture(TOOL)
    sink.close()
    os.close(taken)
    assert own.read_bytes() == b""
    assert sink.records() == [MODEL, TOOL]
