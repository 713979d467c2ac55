"""Files of node records, ai4j's and our own sink's, come out as they went in."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from otel_agentrec import ingest, read_nodes, verify
from otel_agentrec.errors import UsageError
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.sinks import JsonlIoCaptureSink
from otel_agentrec.records import NodeIoRecord, NodeType

from .otlp_files import agent, chat, span, traces, write

Json = Any
PROMPT = {
    "model": "glm-5.1",
    "items": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather in Oslo?"}]},
        {"type": "function_call", "call_id": "c0", "name": "where", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c0", "output": "Norway"},
    ],
    "systemPrompt": "Be brief.",
    "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
    "temperature": 0.5,
    "stream": True,
}
RAW = {
    "id": "resp-1",
    "model": "glm-5.1-0901",
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 0, "completion_tokens": 9},
}
MODEL = {
    "recordId": "5f0c0d3e-0000-4000-8000-000000000001",
    "runId": "run-1",
    "sessionId": "s-1",
    "turnId": "turn-1",
    "step": 1,
    "nodeType": "MODEL",
    "nodeId": "model@run-1|turn-1|1",
    "modelId": "glm-5.1",
    "inputs": PROMPT,
    "outputText": "I look. ",
    "outputs": RAW,
    "startedAtEpochMs": 1_728_380_000_000,
    "capturedAtEpochMs": 1_728_380_000_700,
    "durationMs": 700,
    "reasoningText": "A\nB",
    "retryCount": 1,
    "inputTokens": 0,
    "outputTokens": 9,
}
TOOL = {
    "recordId": "5f0c0d3e-0000-4000-8000-000000000002",
    "runId": "run-1",
    "sessionId": "s-1",
    "turnId": "turn-1",
    "step": 1,
    "nodeType": "TOOL",
    "nodeId": "tool@run-1|turn-1|1|c1",
    "inputs": {"name": "weather", "arguments": '{"city":"Oslo"}', "callId": "c1"},
    "outputs": {"name": "weather", "callId": "c1", "output": "5", "ok": True},
    "startedAtEpochMs": 1_728_380_000_700,
    "capturedAtEpochMs": 1_728_380_000_900,
    "durationMs": 200,
    "retryCount": 0,
}
ORPHAN = {  # a result that nobody asked for: ai4j captures it without input, started at 0
    "recordId": "5f0c0d3e-0000-4000-8000-000000000003",
    "runId": "run-1",
    "turnId": "turn-1",
    "nodeType": "TOOL",
    "nodeId": "tool@run-1|turn-1|null|anon",
    "outputs": "TOOL_ERROR: no such tool",
    "startedAtEpochMs": 0,
    "capturedAtEpochMs": 1_728_380_000_950,
    "durationMs": 0,
    "retryCount": 0,
}


def ai4j(path: Path, *records: Json) -> Path:
    lines = (r if isinstance(r, str) else json.dumps(r, ensure_ascii=False) for r in records)
    path.write_text("\n".join(lines) + "\n")
    return path


def read(out: Path) -> list[dict[str, Json]]:
    return [record.to_json() for record in read_nodes(out)]


class TestAi4j:
    def test_records_come_out_as_they_went_in(self, tmp_path: Path) -> None:
        report = ingest(ai4j(tmp_path / "io.jsonl", MODEL, TOOL, ORPHAN), tmp_path / "rec")
        assert (report.records, report.models, report.tools, report.quarantined_count) == (3, 1, 2, 0)
        by_id = {r["recordId"]: r for r in read(tmp_path / "rec")}
        for given_ in (MODEL, TOOL, ORPHAN):
            out = by_id[given_["recordId"]]
            assert {key: out[key] for key in given_ if key != "inputs"} == {
                key: v for key, v in given_.items() if key != "inputs"
            }
            assert out["dialect"] == "ai4j"
        assert verify(tmp_path / "rec").exit_code == 0

    def test_a_prompt_is_in_the_message_schema_like_any_other(self, tmp_path: Path) -> None:
        ingest(ai4j(tmp_path / "io.jsonl", MODEL), tmp_path / "rec")
        (model,) = read(tmp_path / "rec")
        assert model["inputs"]["messages"] == [
            {"role": "user", "parts": [{"type": "text", "content": "Weather in Oslo?"}]},
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c0", "name": "where", "arguments": "{}"}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c0", "response": "Norway"}]},
        ]
        assert model["inputs"]["systemInstructions"] == [{"type": "text", "content": "Be brief."}]
        assert model["inputs"]["parameters"] == {"temperature": 0.5}
        assert model["inputs"]["tools"][0]["name"] == "weather"

    def test_what_the_raw_answer_tells_beyond_the_fields_of_ai4j(self, tmp_path: Path) -> None:
        ingest(ai4j(tmp_path / "io.jsonl", MODEL, TOOL, ORPHAN), tmp_path / "rec")
        orphan, model, tool = read(tmp_path / "rec")
        assert model["toolCalls"] == [{"id": "c1", "name": "weather", "arguments": {"city": "Oslo"}}]
        assert (model["responseId"], model["responseModel"], model["finishReasons"]) == (
            "resp-1", "glm-5.1-0901", ["tool_calls"],
        )  # fmt: skip
        assert (tool["toolName"], tool["toolCallId"], tool["status"]) == ("weather", "c1", "ok")
        assert tool["inputs"] == {"name": "weather", "arguments": {"city": "Oslo"}, "callId": "c1"}
        assert (orphan["status"], orphan["error"]["message"]) == ("error", "TOOL_ERROR: no such tool")
        assert orphan["inputs"] == {"name": None, "arguments": None, "callId": None}

    def test_tokens_and_text_that_ai4j_did_not_know_are_not_filled_in(self, tmp_path: Path) -> None:
        bare = {k: v for k, v in MODEL.items() if k not in ("inputTokens", "outputTokens", "outputText")}
        ingest(ai4j(tmp_path / "io.jsonl", bare), tmp_path / "rec")
        (model,) = read(tmp_path / "rec")
        assert (model["inputTokens"], model["outputTokens"], model["outputText"]) == (None, None, None)

    def test_they_make_a_run_whose_calls_are_answered(self, tmp_path: Path) -> None:
        ingest(ai4j(tmp_path / "io.jsonl", MODEL, TOOL), tmp_path / "rec")
        (run,) = fold(Recording(tmp_path / "rec")).runs
        assert (run.id, run.session, run.records, run.unpaired) == ("run-1", "s-1", 2, [])
        assert run.tokens == {"input": 0, "output": 9}

    def test_an_unknown_node_type_is_a_model_call_and_ids_are_made_where_there_are_none(self, tmp_path: Path) -> None:
        bare = {"nodeType": "PLAN", "nodeId": "model@r|t|1", "runId": "r", "turnId": "t", "step": 1}
        path = ai4j(tmp_path / "io.jsonl", bare)
        ingest(path, tmp_path / "rec")
        ingest(path, tmp_path / "rec")
        (record,) = read(tmp_path / "rec")
        assert (record["nodeType"], record["copiesSeen"], record["nodeId"]) == ("MODEL", 2, "model@r|t|1")

    def test_without_what_was_said_they_still_say_what_happened(self, tmp_path: Path) -> None:
        ingest(ai4j(tmp_path / "io.jsonl", MODEL, ORPHAN), tmp_path / "rec")
        orphan, model = (r for _, r in fold(Recording(tmp_path / "rec")).calls(contents=False))
        assert (model.record_id, model.output_text, model.input_tokens) == (MODEL["recordId"], None, 0)
        assert model.tool_calls == [{"id": "c1", "name": "weather", "arguments": None}]
        assert (orphan.status, orphan.error) == ("error", {"type": "tool_error", "message": None})


class TestBadLines:
    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ('{"nodeType":"MODEL","nodeId":', "not JSON"),
            ("[1]", "no JSON object"),
            ('{"resourceSpans":[]}', "it needs nodeType"),
            ('{"nodeType":"TOOL","nodeId":"x","step":"one"}', "step is not a whole number"),
            ('{"nodeType":"TOOL","nodeId":"x","inputTokens":true}', "inputTokens is not a whole number"),
            ('{"nodeType":"TOOL","nodeId":"x","flags":[1]}', "flags is not such a list"),
            ('{"nodeType":"TOOL","nodeId":7}', "nodeId is not text"),
        ],
    )
    def test_one_is_left_out_counted_and_told(self, tmp_path: Path, line: str, why: str) -> None:
        report = ingest(ai4j(tmp_path / "io.jsonl", MODEL, line, TOOL), tmp_path / "rec")
        assert (report.records, report.quarantined_count, report.quarantined[0].line) == (2, 1, 2)
        assert why in report.quarantined[0].reason
        assert verify(tmp_path / "rec").gaps[0]["count"] == 1

    def test_a_torn_last_line_costs_itself(self, tmp_path: Path) -> None:
        path = tmp_path / "io.jsonl"
        path.write_text(json.dumps(MODEL) + "\n" + json.dumps(TOOL)[:50])
        report = ingest(path, tmp_path / "rec")
        assert (report.records, report.quarantined_count) == (1, 1)

    def test_a_file_may_begin_with_bad_lines(self, tmp_path: Path) -> None:
        report = ingest(ai4j(tmp_path / "io.jsonl", "oops", MODEL), tmp_path / "rec")
        assert (report.records, report.quarantined_count) == (1, 1)


def test_files_of_all_kinds_in_one_go_plain_or_packed(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", traces(agent(1), chat(2, 1)))
    (tmp_path / "b.jsonl").write_bytes(gzip.compress(json.dumps(MODEL).encode() + b"\n"))
    (tmp_path / "c.jsonl").write_text('{"seq":1,"type":"SESSION_STARTED","payload":{"scenario":"x"}}\n')
    seen: list[tuple[int, int]] = []
    report = ingest(
        sorted(tmp_path.glob("*.jsonl")), tmp_path / "rec", progress=lambda done, total: seen.append((done, total))
    )
    assert (report.spans, report.records) == (2, 1)
    assert report.sessions == ["s-1", "c"], "that of the record, and that of the event log"
    assert seen[-1][0] == seen[-1][1]
    assert len(read(tmp_path / "rec")) == 2
    assert verify(tmp_path / "rec").exit_code == 0


def test_a_stream_of_a_recording_need_not_be_ingested(tmp_path: Path) -> None:
    report = ingest(ai4j(tmp_path / "io.jsonl", MODEL), tmp_path / "rec")
    with pytest.raises(UsageError, match="is a stream of a recording"):
        ingest(tmp_path / "rec" / f"{report.stream}.jsonl", tmp_path / "other")
    assert not (tmp_path / "other").exists()


class TestOurOwnSink:
    def sunk(self, tmp_path: Path, *records: NodeIoRecord) -> list[dict[str, Json]]:
        sink = JsonlIoCaptureSink(tmp_path / "sink.jsonl")
        for record in records:
            sink.capture(record)
        sink.close()
        ingest(sink.path, tmp_path / "rec")
        return read(tmp_path / "rec")

    def test_what_was_recorded_of_telemetry_survives_the_way_through_a_file(self, tmp_path: Path) -> None:
        said = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "f", "arguments": {"n": 2}}]}]
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f", "gen_ai.tool.call.id": "c"}
        model = chat(2, 1, **{"output.messages": json.dumps(said), "usage.input_tokens": 3, "request.seed": 1})
        path = write(
            tmp_path / "t.jsonl",
            traces(agent(1), model, span(3, "execute_tool f", {**tool, "gen_ai.tool.call.result": '{"a":1}'}, 1)),
        )
        ingest(path, tmp_path / "first")
        before = list(read_nodes(tmp_path / "first"))
        after = self.sunk(tmp_path, *before)
        for one, other in zip(before, after, strict=True):
            told = one.to_json()
            assert {k: v for k, v in other.items() if k != "journal"} == {
                k: v for k, v in told.items() if k != "journal"
            }

    def test_a_record_counts_as_it_was_told_last_and_merged_ones_are_gone(self, tmp_path: Path) -> None:
        early = NodeIoRecord("a", NodeType.MODEL, "model@r|t|1", span_id="1")
        late = NodeIoRecord("a", NodeType.MODEL, "model@r|t|1", span_id="1", output_text="hi", merged_span_ids=["2"])
        inner = NodeIoRecord("b", NodeType.MODEL, "model@r|t|1", span_id="2")
        (only,) = self.sunk(tmp_path, early, inner, late)
        assert (only["recordId"], only["outputText"]) == ("a", "hi")

    def test_judgements_are_judgements(self, tmp_path: Path) -> None:
        judged = {"name": "good", "score": 1, "label": "yes", "explanation": "it is", "evaluatedAtEpochMs": 5}
        (record,) = self.sunk(tmp_path, NodeIoRecord("a", NodeType.MODEL, "m", evaluations=[judged]))
        assert record["evaluations"] == [judged]


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-1e9, 1e9).map(lambda x: x + 0.0) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
counts = st.none() | st.integers(0, 2**40)
texts = st.none() | words
parts = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["text", "reasoning"]), "content": words}),
    st.fixed_dictionaries({"type": st.just("tool_call"), "id": texts, "name": texts, "arguments": values}),
)
messages = st.lists(st.fixed_dictionaries({"role": words, "parts": st.lists(parts, max_size=3)}), max_size=3)
model_inputs = st.fixed_dictionaries(
    {
        "model": texts,
        "messages": messages | values,
        "systemInstructions": messages | values,
        "tools": values,
        "parameters": values,
    }
)
common = {
    "node_id": st.text("ab|@", min_size=1),
    "run_id": texts,
    "session_id": texts,
    "turn_id": texts,
    "step": st.none() | st.integers(0, 9),
    "output_text": texts,
    "started_at_epoch_ms": counts,
    "captured_at_epoch_ms": counts,
    "duration_ms": st.integers(0, 9),
    "reasoning_text": texts,
    "retry_count": st.integers(0, 3),
    "status": st.sampled_from(["ok", "error", "interrupted", "partial"]),
    "error": st.none() | st.fixed_dictionaries({"type": texts, "message": texts}),
    "provider": texts,
    "agent_name": texts,
    "dialect": st.just("genai"),
    "trace_id": texts,
    "span_id": texts,
    "flags": st.lists(words, max_size=2, unique=True),
    "attributes": st.none() | st.dictionaries(words, values, max_size=2),
    "keys": st.dictionaries(words, words, max_size=1),
    "streamed": st.none() | st.booleans(),
    "merged_span_ids": st.just([]),
}
calls = st.lists(st.fixed_dictionaries({"id": texts, "name": texts, "arguments": values}), max_size=2)
a_model = st.fixed_dictionaries(
    {
        "node_type": st.just(NodeType.MODEL),
        "inputs": model_inputs,
        "outputs": messages | values,
        "model_id": texts,
        "tool_calls": st.none() | calls,
        "input_tokens": counts,
        "finish_reasons": st.lists(words, max_size=2),
        **common,
    }
)
a_tool = st.fixed_dictionaries(
    {
        "node_type": st.just(NodeType.TOOL),
        "inputs": st.fixed_dictionaries({"name": texts, "arguments": values, "callId": texts}),
        "outputs": values,
        "tool_name": texts,
        "tool_call_id": texts,
        **common,
    }
)


def but(record: dict[str, Json], *keys: str) -> dict[str, Json]:
    return {key: v for key, v in record.items() if key not in keys}


@given(st.lists(a_model | a_tool, min_size=1, max_size=2))
@settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_any_record_comes_out_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, given_: list[dict[str, Any]]
) -> None:
    where = tmp_path_factory.mktemp("any")
    records = [NodeIoRecord(record_id=f"r{n}", **fields) for n, fields in enumerate(given_)]
    sink = JsonlIoCaptureSink(where / "sink.jsonl")
    for record in records:
        sink.capture(record)
    sink.close()
    ingest(sink.path, where / "rec", redact="off")
    by_id = {r["recordId"]: r for r in read(where / "rec")}
    for record in records:
        told, back = record.to_json(), by_id[record.record_id]
        # the fold may find that one is the other once more
        assert set(back["flags"]) - {"probable_reexport"} == set(told["flags"])
        assert but(back, "journal", "flags") == but(told, "journal", "flags")
