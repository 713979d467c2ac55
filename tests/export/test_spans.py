"""Law: what is exported and ingested again gives the same records."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan

from otel_agentrec import (
    AgentModelResult,
    AgentPrompt,
    ResumableModelClient,
    ResumeCache,
    agent_run,
    configure,
    ingest,
    read_nodes,
    verify,
)
from otel_agentrec.export.spans import Exported
from otel_agentrec.journal.reader import Recording
from otel_agentrec.journal.stamps import stamp_of
from otel_agentrec.nodes.spanattributes import attributes_of, text_of
from otel_agentrec.resume.attempt import forget_attempts
from tests.export.kept.collector import spans_line, stamped_spans, write

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
SCENARIOS = sorted(p for p in CORPUS.glob("*/*.expected.json") if list(p.parent.glob(f"{p.name[:-14]}.*.jsonl")))
MEANT_TO_DIFFER = ("journal", "dialect", "attributes", "copiesSeen", "retries")
"""Where and in which convention a record was told, and what only HTTP spans told."""

Json = Any


def recorded(expected: Path, out: Path) -> Recording:
    name = expected.name.removesuffix(".expected.json")
    ingest(sorted(expected.parent.glob(f"{name}.*.jsonl")), out)
    return Recording(out)


def exported(recording: Recording) -> list[ReadableSpan]:
    return [span for _, _, span in Exported(recording).spans()]


def told(record: dict[str, Json]) -> dict[str, Json]:
    """A record but for what OTLP attributes can't say."""
    record = {key: value for key, value in record.items() if key not in MEANT_TO_DIFFER}
    inputs = record["inputs"] or {}
    if inputs.get("parameters"):  # nested values are JSON text there
        inputs = {**inputs, "parameters": {k: text_of(v) for k, v in inputs["parameters"].items()}}
    if record["nodeType"] == "MODEL" and not isinstance(record["outputs"], list):
        record["outputs"] = None  # the provider's own payload
    record["flags"] = [flag for flag in record["flags"] if flag != "operation_inferred"]
    if record["status"] == "partial":
        record["status"] = "ok"
    return {**record, "inputs": inputs}


@pytest.mark.parametrize(
    "expected", SCENARIOS[::12], ids=lambda p: f"{p.parent.name}/{p.name.removesuffix('.expected.json')}"
)
def test_the_same_records_come_back(expected: Path, tmp_path: Path) -> None:
    recording = recorded(expected, tmp_path / "a")
    (tmp_path / "spans.pb").write_bytes(encode_spans(exported(recording)).SerializeToString())
    ingest([tmp_path / "spans.pb"], tmp_path / "b")
    before = [told(r.to_json()) for r in read_nodes(tmp_path / "a")]
    after = [told(r.to_json()) for r in read_nodes(tmp_path / "b")]
    for one, other in zip(before, after, strict=True):
        if one["nodeType"] == "MODEL" and one["outputs"] is None:
            other["outputs"] = None
        assert other == one


def test_each_span_carries_the_place_of_its_event(tmp_path: Path) -> None:
    recording = recorded(SCENARIOS[0], tmp_path / "a")
    events = {(e.stream, e.seq): e for s in recording.streams() for e in s.events()}
    records = {r.record_id: r for r in read_nodes(recording)}
    stamps = [stamp_of(span.attributes or {}) for span in exported(recording)]
    assert stamps
    for stamp in stamps:
        assert stamp is not None
        event = events[stamp.stream, stamp.seq]
        assert (stamp.hash, stamp.prev_hash) == (event.hash, event.prev_hash)
    assert records.keys() <= {stamp.record_id for stamp in stamps if stamp is not None}


def test_ids_and_times_are_those_that_were_recorded(tmp_path: Path) -> None:
    recording = recorded(SCENARIOS[0], tmp_path / "a")
    spans = {f"{s.context.span_id:016x}": s for s in exported(recording)}
    for record in read_nodes(recording):
        span = spans[record.span_id or ""]
        assert f"{span.context.trace_id:032x}" == record.trace_id
        assert (span.start_time or 0) // 1_000_000 == record.started_at_epoch_ms
        assert (span.end_time or 0) // 1_000_000 == record.captured_at_epoch_ms
        assert (span.parent and f"{span.parent.span_id:016x}") == record.parent_span_id


def test_agents_and_tools_show_their_input_and_output(tmp_path: Path) -> None:
    shown: dict[Any, int] = {}
    for expected in [s for s in SCENARIOS if s.parent.name.startswith("pydantic-ai")][:6]:
        for span in exported(recorded(expected, tmp_path / expected.name)):
            attributes = dict(span.attributes or {})
            operation = attributes["gen_ai.operation.name"]
            if operation in ("invoke_agent", "execute_tool"):
                assert ("input.value" in attributes) == ("output.value" in attributes)
                shown[operation] = shown.get(operation, 0) + ("input.value" in attributes)
                for side in ("input", "output"):
                    if attributes.get(f"{side}.mime_type") == "application/json":
                        json.loads(attributes[f"{side}.value"])
    assert shown["invoke_agent"] and shown["execute_tool"]


def test_each_message_of_an_answer_says_why_it_ended(tmp_path: Path) -> None:
    """The conventions require it, and a viewer that holds to them shows no answer without it."""
    seen = set()
    for expected in SCENARIOS[::40]:
        for span in exported(recorded(expected, tmp_path / expected.parent.name / expected.name)):
            attributes = dict(span.attributes or {})
            if attributes["gen_ai.operation.name"] != "chat" or "gen_ai.output.messages" not in attributes:
                continue
            messages = json.loads(str(attributes["gen_ai.output.messages"]))
            told = attributes.get("gen_ai.response.finish_reasons")
            assert [m["finish_reason"] for m in messages if m["finish_reason"]] == list(told or ())[-len(messages) :]
            seen.add(told is None)
    assert False in seen


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (["stop", "length"], ["stop", "length"]),
        (["stop"], ["", "stop"]),
        (["a", "b", "c"], ["", "c"]),
        ([], ["", ""]),
        (None, ["", ""]),
    ],
)
def test_reasons_go_to_the_messages_they_are_of(told: list[str] | None, shown: list[str]) -> None:
    said = [{"role": "assistant", "parts": [{"type": "text", "content": text}]} for text in ("one", "two")]
    facts = {"outputMessages": said, "finishReasons": told}
    messages = json.loads(str(attributes_of("MODEL", facts, {}, None)["gen_ai.output.messages"]))
    assert [m.pop("finish_reason") for m in messages] == shown
    assert messages == said


def placed(recording: Path, after: dict[str, int] | None = None) -> dict[tuple[str, int], dict[str, Json]]:
    """(stream, position) -> all that a span says."""
    spans = Exported(Recording(recording)).spans(after)
    return {(stream, at): json.loads(span.to_json()) for stream, at, span in spans}


class TestAProcessThatDied:
    @pytest.fixture
    def rec(self, tmp_path: Path) -> Path:
        """A copy of a recording in which an agent, its step and a tool had not ended: nobody writes it any more."""
        with configure(tmp_path / "alive"), agent_run("shop", session_id="s-1") as run, run.step() as step:
            with step.model_call(AgentPrompt("m", [{"role": "user", "content": "Buy it."}])) as call:
                call.response("I will.")
            with step.tool_call("pay", {"cents": 5}, call_id="c1"):
                assert len(placed(tmp_path / "alive")) == 1, "what goes on is not told as interrupted"
                shutil.copytree(tmp_path / "alive", tmp_path / "rec")
        return tmp_path / "rec"

    def test_what_was_open_is_there_as_interrupted(self, rec: Path) -> None:
        spans = {span["name"]: span for span in placed(rec).values()}
        ids = {span["context"]["span_id"] for span in spans.values()}
        assert {span["parent_id"] for span in spans.values()} - {None} <= ids, "no span stands without its parent"
        agent = next(span for span in spans.values() if span["parent_id"] is None)
        tool = next(span for span in spans.values() if span["attributes"].get("gen_ai.tool.name") == "pay")
        for one in (agent, tool):
            assert one["status"]["status_code"] == "ERROR"
            assert one["attributes"]["agentrec.interrupted"] == "its process died"
        assert (tool["attributes"]["input.value"], tool["attributes"]["output.value"]) == ('{"cents":5}', "")
        assert agent["attributes"]["input.value"] == "Buy it."
        ended = next(span for span in spans.values() if span["attributes"]["gen_ai.operation.name"] == "chat")
        assert ended["end_time"] <= tool["end_time"], "they end with the last that is known of their process"

    def test_its_stamps_are_those_of_what_is_recorded(self, rec: Path) -> None:
        kept = write(rec.parent / "kept.jsonl", [spans_line(stamped_spans(rec))])
        report = verify(rec, against=kept)
        assert report.against is not None
        assert not report.against["differences"] and report.against["spans"] == len(placed(rec))
        assert report.against["witnessed"] == report.against["nodes"] == 2

    def test_they_count_and_are_sent_once(self, rec: Path) -> None:
        whole = placed(rec)
        assert len(Exported(Recording(rec))) == len(whole)
        (stream,) = {name for name, _ in whole}
        last = Recording(rec).streams()[0].last()
        assert last is not None
        assert placed(rec, {stream: max(at for _, at in whole)}) == {}
        later = placed(rec, {stream: last.seq})
        assert later and later.items() < whole.items(), "what was sent while it lived is not sent again"


def test_what_is_sent_after_an_interruption_is_what_would_have_been_sent(tmp_path: Path) -> None:
    """Agents too, which show what calls below them tell: those may have been sent before."""
    with configure(tmp_path / "rec"):
        for task in ("Where is Finse?", "And Voss?"):
            asked = AgentPrompt("m", [{"role": "user", "content": task}])
            with agent_run("guide") as run, run.step() as step, step.model_call(asked) as call:
                call.response("West of Oslo.")
    whole = placed(tmp_path / "rec")
    shown = [span["attributes"].get("input.value") for span in whole.values() if span["parent_id"] is None]
    assert shown == ["Where is Finse?", "And Voss?"]
    for stream, position in whole:
        rest = {key: span for key, span in whole.items() if key[1] > position}
        assert placed(tmp_path / "rec", {stream: position}) == rest


class Model:
    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        return AgentModelResult("42", {"usage": {"input_tokens": 7, "output_tokens": 3}})

    create_stream: Any = None


def test_a_call_that_was_answered_from_a_recording_says_so_and_cost_nothing(tmp_path: Path) -> None:
    client = ResumableModelClient(Model(), ResumeCache())
    asked = AgentPrompt("m", [{"role": "user", "content": "6 * 7?"}])
    with configure(tmp_path / "rec"), agent_run("sums") as run:
        for _ in range(2):
            with run.step() as step, step.model_call(asked) as call:
                call.response(client.create(asked))
    told = [span["attributes"] for span in placed(tmp_path / "rec").values()]
    models = [one for one in told if one["gen_ai.operation.name"] == "chat"]
    assert [
        (one.get("agentrec.answered_from"), one["gen_ai.usage.input_tokens"], one["gen_ai.usage.output_tokens"])
        for one in models
    ] == [(None, 7, 3), ("cache", 0, 0)]
    assert models[0]["gen_ai.output.messages"] == models[1]["gen_ai.output.messages"]


def test_an_attempt_is_linked_to_the_run_that_it_goes_on_with(tmp_path: Path) -> None:
    asked = AgentPrompt("m", [{"role": "user", "content": "6 * 7?"}])

    def attempt(cache: ResumeCache, *, crashes: bool) -> None:
        with configure(tmp_path / "rec"), agent_run("sums") as run:
            with run.step() as step, step.model_call(asked) as call:
                call.response(ResumableModelClient(Model(), cache).create(asked))
            if crashes:
                raise RuntimeError("the power is gone")

    try:
        with pytest.raises(RuntimeError, match="power"):
            attempt(ResumeCache(), crashes=True)
        attempt(ResumeCache.from_recording(tmp_path / "rec"), crashes=False)
    finally:
        forget_attempts()
    spans = sorted(exported(Recording(tmp_path / "rec")), key=lambda span: span.start_time or 0)
    first, second = (span for span in spans if span.parent is None)
    assert [(link.context.span_id, dict(link.attributes or {})) for link in second.links] == [
        (first.context.span_id, {"agentrec.resumes": f"{first.context.trace_id:032x}"})
    ]
    assert not any(span.links for span in spans if span is not second)
    answered = [(span.attributes or {}).get("agentrec.answered_from") for span in spans]
    assert answered.count(f"{first.context.trace_id:032x}") == 1
