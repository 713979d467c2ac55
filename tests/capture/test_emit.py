"""Hand-written agents: ``agent_run`` emits spans, tells listeners, and gives the same records as an instrumented agent.

The first part carries the names of the assertions of ai4j: what its own tests demand of capture and sinks.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_agentrec.capture.configure import configure
from otel_agentrec.capture.emit import agent_run
from otel_agentrec.capture.feeding import feed
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.journal.chain import HashChainedEventLog
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.nodes.sinks import InMemoryIoCaptureSink, JsonlIoCaptureSink
from otel_agentrec.prompts import AgentModelResult, AgentToolCall, AgentToolResult
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.replay.node import NodeReplayer
from otel_agentrec.resume.cache import ResumeCache

SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
RAW = {"id": "resp-1", "usage": {"prompt_tokens": 12, "completionTokens": 5}}
WAYS = ["sink of configure", "sink as listener", "recording"]


class Told:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def on_event(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


class Capture:
    """One run, and the node records of it by one of three ways."""

    def __init__(self, way: str, path: Path) -> None:
        self.way = way
        self.sink = InMemoryIoCaptureSink()
        self.recorder = configure(path, sinks=[self.sink] if way == WAYS[0] else [])

    def run(self, **more: Any) -> Any:
        listeners = [self.sink] if self.way == WAYS[1] else []
        listeners += more.pop("listeners", [])
        ids = {"session_id": "s-1", "run_id": "run-1", "turn_id": "turn-1", **more}
        return agent_run("planner", listeners=listeners, **ids)

    def records(self) -> list[NodeIoRecord]:
        if self.way == WAYS[2]:
            return list(read_nodes(self.recorder.path))
        return self.sink.records()


@pytest.fixture(params=WAYS)
def capture(request: pytest.FixtureRequest, tmp_path: Path, otel_globals: None) -> Iterator[Capture]:
    capture = Capture(request.param, tmp_path / "rec")
    yield capture
    capture.recorder.shutdown()


@pytest.fixture
def recorder(tmp_path: Path, otel_globals: None) -> Iterator[Recorder]:
    with configure(tmp_path / "rec") as recorder:
        yield recorder


class TestTheSeed:
    def test_1_model_and_tool_nodes_are_paired_with_text_raw_payload_and_ids(self, capture: Capture) -> None:
        with capture.run() as run:
            with run.step() as step:
                with step.model_call({"model": "glm-5.1", "messages": [{"role": "user", "content": "hi"}]}) as call:
                    call.delta("hello ")
                    call.delta("world")
                    call.response(RAW)
                with step.tool_call("search", {"q": "otel"}, call_id="c1") as tool:
                    tool.result("found")
            with run.step() as step, step.model_call("and now?", model="glm-5.1") as call:
                call.response(None, text="done")
        model, tool_node, second = capture.records()
        assert [model.node_type, tool_node.node_type, second.node_type] == [
            NodeType.MODEL, NodeType.TOOL, NodeType.MODEL,
        ]  # fmt: skip
        assert (model.output_text, model.outputs, model.model_id) == ("hello world", RAW, "glm-5.1")
        assert model.node_id == "model@run-1|turn-1|1"
        assert second.node_id == "model@run-1|turn-1|2"
        assert tool_node.node_id == "tool@run-1|turn-1|1|c1"
        assert (tool_node.inputs, tool_node.outputs) == (
            {"name": "search", "arguments": {"q": "otel"}, "callId": "c1"},
            "found",
        )
        assert (model.run_id, model.session_id, model.turn_id, model.step) == ("run-1", "s-1", "turn-1", 1)

    def test_2_raw_payload_and_text_with_its_blanks_are_both_kept(self, capture: Capture) -> None:
        with capture.run() as run, run.step() as step, step.model_call("x", model="m") as call:
            call.delta("captured ")
            call.response(RAW)
        (node,) = capture.records()
        assert (node.outputs, node.output_text) == (RAW, "captured ")

    def test_3_a_null_payload_after_the_raw_one_keeps_the_raw_one(self, capture: Capture) -> None:
        with capture.run() as run, run.step() as step, step.model_call("x", model="m") as call:
            call.response(RAW)
            call.response(None)
        (node,) = capture.records()
        assert node.outputs == RAW

    def test_7_reasoning_blocks_retries_and_tokens(self, capture: Capture) -> None:
        with capture.run() as run, run.step() as step, step.model_call("x", model="m") as call:
            call.retry(TimeoutError("slow"))
            call.reasoning("A")
            call.reasoning("B", new_block=True)
            call.response(RAW, text="yes")
        (node,) = capture.records()
        assert (node.reasoning_text, node.retry_count, node.input_tokens, node.output_tokens) == ("A\nB", 1, 12, 5)

    def test_8_records_stand_in_cause_order_though_the_tool_was_told_first(self) -> None:
        sink = InMemoryIoCaptureSink()
        with agent_run("a", listeners=[sink]) as run, run.step() as step, step.model_call("x", model="m") as call:
            time.sleep(0.002)
            with step.tool_call("t", call_id="c1") as tool:
                tool.result("1")
            assert sink.size() == 1
            call.response(RAW)
        assert [node.node_type for node in sink.records()] == [NodeType.MODEL, NodeType.TOOL]

    def test_9_a_sub_trace_of_a_tool_flows_through(self, capture: Capture) -> None:
        result = {"output": "answer", "trace": [{"hit": 1}, {"hit": 2}]}
        with capture.run() as run, run.step() as step, step.tool_call("rag", {}, call_id="c") as tool:
            tool.result(result)
        (node,) = capture.records()
        assert node.outputs == result

    def test_9_a_whole_result_keeps_its_sub_trace(self, capture: Capture) -> None:
        cache = ResumeCache()
        feed(capture.recorder, cache)
        with capture.run() as run, run.step() as step, step.tool_call("rag", {"q": "x"}, call_id="c") as tool:
            tool.result(AgentToolResult("rag", "c", "answer", trace=[{"hit": 1}]))
        (node,) = capture.records()
        replayed = NodeReplayer().replay_tool_mock(node)
        assert (replayed.output, replayed.trace, replayed.call_id) == ("answer", [{"hit": 1}], "c")
        assert cache.lookup_tool(AgentToolCall("rag", {"q": "x"})) == "answer", "a resumed program gets the bare output"

    def test_6_one_line_per_node_survives_a_reload(self, tmp_path: Path, recorder: Recorder) -> None:
        sink = JsonlIoCaptureSink(tmp_path / "nodes.jsonl")
        with agent_run("a", listeners=[sink]) as run, run.step() as step:
            with step.model_call("x", model="m") as call:
                call.reasoning("hm")
                call.response(RAW, text="yes")
            with step.tool_call("t", {"a": 1}, call_id="c") as tool:
                tool.result("r")
        assert len((tmp_path / "nodes.jsonl").read_text().splitlines()) == 2
        model = next(r for r in JsonlIoCaptureSink.load(tmp_path / "nodes.jsonl") if r.node_type is NodeType.MODEL)
        assert (model.model_id, model.output_text, model.reasoning_text, model.input_tokens) == ("m", "yes", "hm", 12)
        assert model.started_at_epoch_ms

    def test_10_a_throwing_sink_or_listener_never_propagates(
        self, tmp_path: Path, otel_globals: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        class Broken:
            def on_event(self, event: Any) -> None:
                raise ValueError("listener")

            def capture(self, record: NodeIoRecord) -> None:
                raise ValueError("sink")

            def close(self) -> None:
                raise ValueError("close")

        sink, after = InMemoryIoCaptureSink(), Told()
        with configure(tmp_path / "rec", sinks=[Broken(), sink]) as recorder:
            run = agent_run("a", listeners=[Broken(), after])
            with run, run.step() as step, step.model_call("x", model="m") as call:
                call.response(RAW)
            assert sink.size() == 1, "the sink behind it is told"
            assert "MODEL_RESPONSE" in after.types, "the listener behind it is told"
            assert recorder.stats()["swallowed.a listener"] >= 1
            assert recorder.stats()["swallowed.a sink"] == 1
        assert "ValueError in a sink was swallowed" in capsys.readouterr().err

    def test_13_a_hash_chained_log_is_a_listener(self) -> None:
        log = HashChainedEventLog()
        messages = [{"role": "user", "content": "hi"}]
        run = agent_run("a", listeners=[log])
        with run, run.step() as step, step.model_call(messages, model="m") as call:
            call.response(RAW)
        messages.append({"role": "user", "content": "the program goes on with its list"})
        assert log.sequence == 4
        assert log.verify_chain().is_valid


def test_listeners_get_every_event_in_order_in_the_seeds_shape(recorder: Recorder) -> None:
    told = Told()
    with agent_run("a", run_id="r", session_id="s", turn_id="t", listeners=[told]) as run:
        with run.step() as step:
            with step.model_call("x", model="m") as call:
                call.retry("RateLimitError", status_code=429)
                call.reasoning("hm")
                call.delta("y")
                call.response(RAW)
            with step.tool_call("t1", {"a": 1}, call_id="c") as tool:
                tool.result("r")
        with run.agent("b") as other, other.step() as step, step.model_call("z", model="m") as call:
            call.response(text="w")
        run.event("MEMORY_COMPRESS", payload={"kept": 3})
        run.final_output("bye")
    assert told.types == [
        "STEP_START", "MODEL_REQUEST", "MODEL_RETRY", "MODEL_REASONING", "MODEL_RESPONSE", "MODEL_RESPONSE", "TOOL_CALL",
        "TOOL_RESULT", "STEP_END", "HANDOFF_START", "STEP_START", "MODEL_REQUEST", "MODEL_RESPONSE", "STEP_END",
        "HANDOFF_END", "MEMORY_COMPRESS", "FINAL_OUTPUT",
    ]  # fmt: skip
    keys = {"eventId", "runId", "sessionId", "turnId", "type", "step", "message", "payload"}
    assert all(set(event) == keys for event in told.events)
    assert {(e["runId"], e["sessionId"], e["turnId"]) for e in told.events} == {("r", "s", "t")}
    assert [e["step"] for e in told.events if e["type"] == "MODEL_REQUEST"] == [1, 2]
    assert told.events[6]["payload"] == {"name": "t1", "arguments": {"a": 1}, "callId": "c"}
    json.dumps(told.events)


def test_an_answer_that_is_plain_text_is_the_answer(capture: Capture) -> None:
    with capture.run() as run, run.step() as step:
        with step.model_call("x", model="m") as call:
            call.response("yes")
        with step.model_call("x", model="m") as call:
            call.delta("ye")
            call.delta("s")
            call.response("yes")
    assert [(node.output_text, node.outputs) for node in capture.records()] == [
        ("yes", [{"role": "assistant", "parts": [{"type": "text", "content": "yes"}]}])
    ] * 2


def test_a_clients_result_without_raw_answer_tells_calls_tokens_and_reasons(capture: Capture) -> None:
    result = AgentModelResult(
        "I look.",
        tool_calls=[AgentToolCall("search", '{"q": "otel"}', "c1"), AgentToolCall("now")],
        usage={"input_tokens": 12, "output_tokens": 5, "cache_read_input_tokens": 3},
        finish_reasons=["tool_use"],
    )
    with capture.run() as run, run.step() as step, step.model_call("x", model="m") as call:
        call.response(result)
    (node,) = capture.records()
    assert node.output_text == "I look."
    assert [(c.get("id"), c["name"], c.get("arguments")) for c in node.tool_calls or ()] == [
        ("c1", "search", {"q": "otel"}),
        (None, "now", None),
    ]
    assert (node.input_tokens, node.output_tokens, node.finish_reasons) == (15, 5, ["tool_use"])


def test_what_the_raw_answer_of_a_result_tells_counts(capture: Capture) -> None:
    result = AgentModelResult("yes", RAW, [AgentToolCall("other")], usage={"input_tokens": 1, "output_tokens": 1})
    with capture.run() as run, run.step() as step, step.model_call("x", model="m") as call:
        call.response(result)
    (node,) = capture.records()
    assert (node.outputs, node.input_tokens, node.output_tokens) == (RAW, 12, 5)


def test_a_model_call_that_raises_is_a_record_with_its_error(capture: Capture) -> None:
    told = Told()
    with (
        pytest.raises(RuntimeError, match="boom"),
        capture.run(listeners=[told]) as run,
        run.step() as step,
        step.model_call("x", model="m") as call,
    ):
        call.delta("half an ")
        raise RuntimeError("boom")
    (node,) = capture.records()
    assert (node.status, node.error, node.output_text) == (
        "error",
        {"type": "RuntimeError", "message": "boom"},
        "half an ",
    )
    assert told.types.count("ERROR") == 1, "told where it was raised, not again at each block it leaves"


def test_a_tool_may_fail_by_raising_or_by_saying_so(capture: Capture) -> None:
    with capture.run() as run, run.step() as step:
        with pytest.raises(KeyError), step.tool_call("a", call_id="1"):
            raise KeyError("k")
        with step.tool_call("b", call_id="2") as tool:
            tool.result("TOOL_ERROR: no", error="no")
    raised, said = capture.records()
    assert (raised.status, raised.error) == ("error", {"type": "KeyError", "message": "'k'"})
    assert (said.status, said.error, said.outputs) == (
        "error",
        {"type": "tool_error", "message": "no"},
        "TOOL_ERROR: no",
    )


def test_a_handoff_keeps_run_session_and_turn_and_its_calls_are_its_own(capture: Capture) -> None:
    with capture.run() as run, run.step() as step:
        with step.model_call("x", model="m") as call:
            call.response(text="ask the other one")
        with agent_run("expert") as other, other.step() as inner, inner.model_call("x", model="m2") as call:
            call.response(text="here")
    first, second = capture.records()
    assert (first.agent_name, second.agent_name) == ("planner", "expert")
    assert (first.run_id, first.session_id, first.turn_id) == (second.run_id, second.session_id, second.turn_id)
    assert (first.step, second.step) == (1, 2)


def test_a_call_that_is_cut_short_keeps_what_was_said(recorder: Recorder) -> None:
    run = agent_run("a")
    run.__enter__()
    call = run.step().model_call("x", model="m")
    call.__enter__()
    call.delta("so far")
    recorder.shutdown()
    (node,) = read_nodes(recorder.path)
    assert (node.status, node.output_text) == ("partial", "so far")
    assert node.inputs["messages"][0]["parts"][0]["content"] == "x"
    call.__exit__(None, None, None)
    run.__exit__(None, None, None)


def test_the_start_of_a_call_is_journalled_with_what_was_asked(recorder: Recorder) -> None:
    with agent_run("a") as run, run.step() as step, step.model_call("what a kill would lose", model="m"):
        content = "".join(file.read_text() for file in Path(recorder.path).glob("*.content.jsonl"))
        assert "what a kill would lose" in content


@pytest.mark.parametrize(("switch", "on_spans"), [(None, False), ("SPAN_ONLY", True), ("NO_CONTENT", False)])
def test_content_stands_on_spans_only_when_the_content_switch_is_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, otel_globals: None, switch: str | None, on_spans: bool
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    with configure(tmp_path / "rec") as recorder:
        if switch is None:
            monkeypatch.delenv(SWITCH)
        else:
            monkeypatch.setenv(SWITCH, switch)
        with agent_run("a", input="top secret") as run:
            with run.step() as step:
                with step.model_call("secret question", model="m", instructions="be secret") as call:
                    call.response(text="secret answer")
                with step.tool_call("t", {"secret": 1}) as tool:
                    tool.result("secret result")
            run.final_output("secret end")
    spans = {span.name: dict(span.attributes or {}) for span in exporter.get_finished_spans()}
    assert spans["chat m"]["gen_ai.operation.name"] == "chat"
    assert spans["chat m"]["agentrec.step"] == 1
    assert ("secret" in json.dumps(spans)) is on_spans
    model, _ = read_nodes(recorder.path)
    assert (model.output_text, model.inputs["systemInstructions"]) == (
        "secret answer",
        [{"type": "text", "content": "be secret"}],
    )


def test_without_an_sdk_listeners_and_sinks_are_told_all_the_same(otel_globals: None) -> None:
    told, sink = Told(), InMemoryIoCaptureSink()
    with agent_run("a", listeners=[told, sink]) as run, run.step() as step, step.model_call("x", model="m") as call:
        call.response(RAW, text="y")
    assert told.types[-1] == "STEP_END"
    (node,) = sink.records()
    assert (node.output_text, node.run_id, node.journal) == ("y", told.events[0]["runId"], None)


def test_async_blocks_and_parallel_tools(capture: Capture) -> None:
    async def tool(step: Any, n: int) -> None:
        async with step.tool_call("t", {"n": n}, call_id=f"c{n}") as call:
            await asyncio.sleep(0.01 * (3 - n))
            call.result(n)

    async def main() -> None:
        async with capture.run() as run, run.step() as step:
            async with step.model_call("x", model="m") as call:
                await asyncio.sleep(0)
                call.response(RAW)
            await asyncio.gather(*(tool(step, n) for n in range(3)))

    asyncio.run(main())
    _, *tools = sorted(capture.records(), key=lambda node: node.tool_call_id or "")
    assert [(node.tool_call_id, node.inputs["arguments"], node.outputs) for node in tools] == [
        (f"c{n}", {"n": n}, n) for n in range(3)
    ]
    assert {node.parent_span_id for node in tools} == {tools[0].parent_span_id}


def test_tools_in_threads_belong_to_the_run_that_started_them(capture: Capture) -> None:
    with capture.run() as run, run.step() as step, ThreadPoolExecutor(4) as pool:

        def work(n: int) -> None:
            with step.tool_call("t", call_id=f"c{n}") as call:
                call.result(threading.get_ident())

        list(pool.map(work, range(8)))
    nodes = capture.records()
    assert len(nodes) == 8
    assert {(node.run_id, node.trace_id, node.agent_name) for node in nodes} == {
        ("run-1", nodes[0].trace_id, "planner")
    }


def test_listeners_of_configure_hear_every_run(tmp_path: Path, otel_globals: None) -> None:
    told = Told()
    with configure(tmp_path / "rec", listeners=[told]):
        for name in ("a", "b"):
            with agent_run(name) as run:
                run.final_output(name)
    with agent_run("c") as run:
        run.final_output("c")
    assert [event["message"] for event in told.events] == ["a", "b"]


class Unruly:
    """An object that fails at whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError(name)

    def __str__(self) -> str:
        raise ValueError("str")


def test_odd_prompts_and_answers_do_not_hurt_the_agent(recorder: Recorder) -> None:
    for odd in (
        None,
        7,
        b"\xff",
        Unruly(),
        {"messages": 3, "tools": "x"},
        ["\ud800"],
        [[[]]],
        {"role": 1, "content": 2},
    ):
        with agent_run("a", input=odd) as run, run.step() as step:
            with step.model_call(odd, parameters={"temperature": float("nan")}, instructions=odd) as call:
                call.response(odd)
            with step.tool_call("t", odd) as tool:
                tool.result(odd)
            run.final_output(odd)
    assert recorder.stats()["swallowed"] == 0
    assert recorder.stats()["nodes"] == 16
    assert len(list(read_nodes(recorder.path))) == 16
