"""One recorded call once more. The first part holds what ai4j's own tests demand of its NodeReplayer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture.emit import agent_run
from otel_agentrec.capture.processors import AgentRecSpanProcessor
from otel_agentrec.clients.ready import OpenAIChatClient, OpenAIResponsesClient
from otel_agentrec.demo.script import Call, Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import RecordedError, RecordingTampered
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.nodes.sinks import InMemoryIoCaptureSink, JsonlIoCaptureSink
from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentPrompt, AgentToolCall, AgentToolResult
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.replay.node import NodeReplayer

Json = Any

PROMPT = AgentPrompt("m", "Will it rain?", system_prompt="Be brief.", tools=[{"type": "function", "name": "weather"}])
RAW = {
    "id": "r1",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "captured ",
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
                ],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3},
}


def model(**more: Any) -> NodeIoRecord:
    return NodeIoRecord("r1", NodeType.MODEL, "model@run|turn|1", model_id="m", inputs=PROMPT.to_json(), **more)


def tool(**more: Any) -> NodeIoRecord:
    inputs = {"name": "weather", "arguments": {"city": "Oslo"}, "callId": "c1"}
    return NodeIoRecord("t1", NodeType.TOOL, "tool@run|turn|1|c1", inputs=inputs, **{"tool_name": "weather", **more})


class Asked:
    """A model client that keeps what it was asked."""

    def __init__(self) -> None:
        self.prompts: list[AgentPrompt] = []

    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        self.prompts.append(prompt)
        return AgentModelResult("fresh")

    def create_stream(self, prompt: AgentPrompt, listener: Any = None) -> AgentModelResult:
        raise AssertionError("a live replay asks for the whole answer")


def by_way(way: str, tmp_path: Path, record: NodeIoRecord) -> NodeIoRecord:
    """The record as it comes back from memory, or from a file."""
    if way == "memory":
        sink = InMemoryIoCaptureSink()
        sink.capture(record)
        return sink.records()[0]
    path = tmp_path / "nodes.jsonl"
    JsonlIoCaptureSink(path).capture(record)
    return JsonlIoCaptureSink.load(path)[0]


@pytest.fixture(params=["memory", "file"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[NodeIoRecord], NodeIoRecord]:
    return lambda record: by_way(request.param, tmp_path, record)


Kept = Callable[[NodeIoRecord], NodeIoRecord]

# --- ai4j's assertions ----------------------------------------------------------------------------------------------------


def test_mock_prefers_the_raw_payload_and_keeps_the_text(kept: Kept) -> None:
    result = NodeReplayer().replay_model_mock(kept(model(outputs=RAW, output_text="captured ")))
    assert (result.raw_response, result.output_text) == (RAW, "captured ")


def test_mock_without_a_raw_payload_gives_the_text(kept: Kept) -> None:
    result = NodeReplayer().replay_model_mock(kept(model(output_text="only text")))
    assert (result.raw_response, result.output_text) == ("only text", "only text")


def test_mock_takes_outputs_that_are_a_string_as_the_text(kept: Kept) -> None:
    result = NodeReplayer().replay_model_mock(kept(model(outputs="a string")))
    assert (result.raw_response, result.output_text) == ("a string", "a string")


def test_live_asks_the_client_with_the_captured_prompt(kept: Kept) -> None:
    client = Asked()
    assert NodeReplayer().replay_model_live(kept(model()), client).output_text == "fresh"
    assert client.prompts == [PROMPT]


@pytest.mark.parametrize("inputs", [None, "text", {"name": "f", "arguments": {}}, ["a"]])
def test_live_rejects_what_is_no_prompt(inputs: Json) -> None:
    record = NodeIoRecord("r1", NodeType.MODEL, "model@", inputs=inputs)
    with pytest.raises(ValueError, match="AgentPrompt"):
        NodeReplayer().replay_model_live(record, Asked())


def test_a_tool_is_called_again_as_the_caller_binds_it(kept: Kept) -> None:
    calls: list[AgentToolCall] = []

    def reinvoke(call: AgentToolCall) -> AgentToolResult:
        calls.append(call)
        return AgentToolResult(call.name, call.call_id, "rain")

    result = NodeReplayer().replay_tool_live(kept(tool()), reinvoke)
    assert (calls, result.output) == ([AgentToolCall("weather", {"city": "Oslo"}, "c1")], "rain")


@pytest.mark.parametrize(
    ("replay", "record", "says"),
    [
        (lambda r, x: r.replay_model_mock(x), tool(), "needs a MODEL record, and .* is TOOL"),
        (lambda r, x: r.replay_model_live(x, Asked()), tool(), "needs a MODEL record, and .* is TOOL"),
        (lambda r, x: r.replay_tool_mock(x), model(), "needs a TOOL record, and .* is MODEL"),
        (lambda r, x: r.replay_tool_live(x, lambda c: 1), model(), "needs a TOOL record, and .* is MODEL"),
        (lambda r, x: r.replay_tool_mock(x), None, "needs a TOOL record, and None is NoneType"),
    ],
)
def test_a_wrong_node_type_is_refused_with_both_names(replay: Any, record: Json, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replay(NodeReplayer(), record)


# --- beyond ai4j: nothing of the answer is lost ---------------------------------------------------------------------------


def test_mock_gives_calls_reasoning_usage_and_finish_reason(kept: Kept) -> None:
    result = NodeReplayer().replay_model_mock(kept(model(outputs=RAW, output_text="captured ")))
    assert result.tool_calls == [AgentToolCall("weather", '{"city": "Oslo"}', "c1")]
    assert (result.reasoning_text, result.usage, result.finish_reasons) == ("Hm.", RAW["usage"], ["tool_calls"])
    assert result.memory_items == [RAW["choices"][0]["message"]]  # type: ignore[index]


def test_mock_fills_in_from_the_record_what_no_payload_tells(kept: Kept) -> None:
    messages = [{"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]}]
    record = model(
        outputs=messages,
        output_text="Hi",
        reasoning_text="Hm.",
        tool_calls=[{"id": "c1", "name": "weather", "arguments": {"city": "Oslo"}}],
        finish_reasons=["stop"],
        input_tokens=7,
        output_tokens=0,
    )
    result = NodeReplayer().replay_model_mock(kept(record))
    assert result == AgentModelResult(
        "Hi",
        messages,
        [AgentToolCall("weather", {"city": "Oslo"}, "c1")],
        "Hm.",
        {"input_tokens": 7, "output_tokens": 0},
        ["stop"],
        messages,
    )


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]}, "Hi"),
        ({"output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}}}, "Hi"),
    ],
    ids=["gemini", "bedrock"],
)
def test_a_payload_of_another_provider_can_go_on_in_any_conversation(payload: Json, text: str) -> None:
    record = model(outputs=payload, output_text=text, tool_calls=[{"id": "c", "name": "f", "arguments": {"a": 1}}])
    result = NodeReplayer().replay_model_mock(record)
    assert (result.raw_response, result.output_text) == (payload, "Hi")
    assert result.memory_items == [
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "Hi"},
                {"type": "tool_call", "id": "c", "name": "f", "arguments": {"a": 1}},
            ],
        }
    ]


def test_a_listener_hears_the_recorded_answer_marked_as_replayed() -> None:
    heard: list[AgentModelChunk] = []

    class Ear:
        def on_chunk(self, chunk: AgentModelChunk) -> None:
            heard.append(chunk)

    NodeReplayer().replay_model_mock(model(outputs=RAW), Ear())
    assert [(c.channel, c.text, c.replayed) for c in heard] == [
        ("reasoning", "Hm.", True),
        ("text", "captured ", True),
        ("tool_call", '{"city": "Oslo"}', True),
        ("usage", None, True),
        ("finish", "tool_calls", True),
    ]


def test_a_failed_call_fails_again() -> None:
    error = {"type": "openai.RateLimitError", "message": "slow down"}
    with pytest.raises(RecordedError, match=r"openai.RateLimitError: slow down") as caught:
        NodeReplayer().replay_model_mock(model(status="error", error=error))
    assert (caught.value.error_type, caught.value.partial) == ("openai.RateLimitError", None)
    with pytest.raises(RecordedError) as caught:
        NodeReplayer().replay_model_mock(model(status="error", error=error, output_text="Hel"))
    assert isinstance(caught.value.partial, AgentModelResult)
    assert caught.value.partial.output_text == "Hel"


def test_a_call_that_never_ended_has_no_answer_to_replay() -> None:
    with pytest.raises(RecordedError, match="interrupted: no answer was recorded"):
        NodeReplayer().replay_model_mock(model(status="interrupted"))
    with pytest.raises(RecordedError, match="interrupted"):
        NodeReplayer().replay_tool_mock(tool(status="interrupted"))


def test_the_answer_of_a_stream_that_was_left_is_what_was_heard() -> None:
    result = NodeReplayer().replay_model_mock(model(status="partial", output_text="Hel"))
    assert (result.output_text, result.finish_reasons) == ("Hel", [])


@pytest.mark.parametrize(
    ("record", "result"),
    [
        (tool(outputs="rain"), AgentToolResult("weather", "c1", "rain", ok=True)),
        (tool(outputs=None), AgentToolResult("weather", "c1", None, ok=True)),
        (tool(outputs={"output": 1}), AgentToolResult("weather", "c1", {"output": 1}, ok=True)),
        (
            tool(status="error", error={"type": "KeyError", "message": "no such city"}),
            AgentToolResult("weather", "c1", None, ok=False, error="no such city"),
        ),
        (
            tool(outputs={"name": "weather", "callId": "c1", "output": "rain", "trace": ["hit"]}),
            AgentToolResult("weather", "c1", "rain", ["hit"]),
        ),
    ],
    ids=["output", "none", "any dict", "failed", "as the seed's files have it"],
)
def test_a_tool_gives_what_it_gave(kept: Kept, record: NodeIoRecord, result: AgentToolResult) -> None:
    assert NodeReplayer().replay_tool_mock(kept(record)) == result


def test_a_tool_can_be_bound_as_an_executor_or_a_bare_function_waited_for_or_not() -> None:
    class Executor:
        def execute(self, call: AgentToolCall) -> Json:
            return call.arguments

    async def later(call: AgentToolCall) -> str:
        return "later"

    replayer = NodeReplayer()
    assert replayer.replay_tool_live(tool(), Executor()).output == {"city": "Oslo"}
    assert asyncio.run(replayer.replay_tool_live(tool(), later)).output == "later"


@pytest.mark.parametrize("lost", [{"$cut": {"bytes": 9}}, {"$erased": {"bytes": 9}}, {"$off": {"bytes": 9}}])
def test_what_was_not_kept_whole_is_neither_answered_nor_asked(lost: Json) -> None:
    replayer = NodeReplayer()
    with pytest.raises(ValueError, match=r"a part of it is (cut|erased|not recorded)"):
        replayer.replay_model_mock(model(outputs={"choices": [{"message": {"content": lost}}]}))
    with pytest.raises(ValueError, match="a part of it is"):
        replayer.replay_tool_mock(tool(outputs=[lost]))
    inputs = {"messages": [{"role": "user", "parts": [{"type": "text", "content": lost}]}]}
    with pytest.raises(ValueError, match="AgentPrompt"):
        replayer.replay_model_live(NodeIoRecord("r", NodeType.MODEL, "model@", inputs=inputs), Asked())


# --- from a recording -----------------------------------------------------------------------------------------------------


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two model calls and a tool call of a real client against the scripted model."""
    openai = pytest.importorskip("openai")
    provider = TracerProvider()
    provider.add_span_processor(AgentRecSpanProcessor(tmp_path / "rec"))
    turns = [
        Turn(tool_calls=[Call("weather", {"city": "Oslo"}, id="c1")], reasoning="Hm."),
        Turn("It is {tool_results}."),
    ]
    with ScriptedServer(turns, seed="s") as server, agent_run("planner", tracer_provider=provider) as run:
        client = OpenAIChatClient(openai.OpenAI(base_url=server.base_url, api_key="none"))
        prompt = PROMPT
        for _ in turns:
            with run.step() as step:
                with step.model_call(prompt) as call:
                    result = client.create_stream(prompt, call)
                    call.response(result)
                items: list[Json] = [*prompt.items, *result.memory_items]
                for asked in result.tool_calls:
                    with step.tool_call(asked.name, asked.parsed, call_id=asked.call_id) as tool_call:
                        tool_call.result("wet")
                    items.append(AgentToolResult(asked.name, asked.call_id, "wet").to_item())
                prompt = AgentPrompt("m", items, system_prompt="Be brief.", tools=PROMPT.tools)
    provider.shutdown()
    return tmp_path / "rec"


def test_a_whole_loop_runs_on_mock(recording: Path) -> None:
    replayer = NodeReplayer(recording)
    first, tool_record, last = read_nodes(recording)
    asked = replayer.replay_model_mock(first)
    assert [(c.name, c.parsed, c.call_id) for c in asked.tool_calls] == [("weather", {"city": "Oslo"}, "c1")]
    assert asked.reasoning_text == "Hm."
    assert replayer.replay_tool_mock(tool_record).output == "wet"
    assert replayer.replay_model_mock(last).output_text == "It is wet."


def test_a_record_of_the_recording_is_put_to_another_model(recording: Path) -> None:
    openai = pytest.importorskip("openai")
    replayer = NodeReplayer(recording)
    last = [r for r in read_nodes(recording) if r.node_type is NodeType.MODEL][-1]
    with ScriptedServer(["Sunny."], seed="s") as server:
        client = OpenAIChatClient(openai.OpenAI(base_url=server.base_url, api_key="none"))
        assert replayer.replay_model_live(replayer.record(last.record_id), client).output_text == "Sunny."
        body = server.requests[0].body or {}
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "c1", "content": "wet"}


def test_a_recording_that_was_changed_is_refused(recording: Path) -> None:
    records = list(read_nodes(recording))
    (stream,) = [p for p in recording.glob("*.jsonl") if b"NODE_RECORDED" in p.read_bytes()]
    data = stream.read_bytes()
    stream.write_bytes(data.replace(b'"planner"', b'"Planner"', 1))
    with pytest.raises(RecordingTampered):
        NodeReplayer(recording).replay_tool_mock(records[1])
    assert NodeReplayer(recording, verify=False).replay_tool_mock(records[1]).output == "wet"


def test_a_record_that_was_changed_on_its_way_is_refused(recording: Path) -> None:
    record = next(r for r in read_nodes(recording) if r.node_type is NodeType.TOOL)
    edited = NodeIoRecord.from_json({**json.loads(json.dumps(record.to_json())), "outputs": "dry"})
    with pytest.raises(RecordingTampered, match="outputs differ"):
        NodeReplayer(recording).replay_tool_mock(edited)
    stranger = NodeIoRecord.from_json({**record.to_json(), "recordId": "another"})
    with pytest.raises(RecordingTampered, match="no record another"):
        NodeReplayer(recording).replay_tool_mock(stranger)
    same = NodeIoRecord.from_json(json.loads(json.dumps(record.to_json())))
    assert NodeReplayer(recording).replay_tool_mock(same).output == "wet"


def test_a_record_is_found_by_its_id_only_in_a_recording() -> None:
    with pytest.raises(ValueError, match="no recording"):
        NodeReplayer().record("r1")


# --- A and B --------------------------------------------------------------------------------------------------------------


def test_several_models_answer_the_same_recorded_prompt() -> None:
    class Same(Asked):
        def create(self, prompt: AgentPrompt) -> AgentModelResult:
            super().create(prompt)
            return AgentModelResult("captured ", tool_calls=[AgentToolCall("weather", {"city": "Oslo"}, "another id")])

    class Broken(Asked):
        def create(self, prompt: AgentPrompt) -> AgentModelResult:
            raise ConnectionError("no such host")

    a, b = Same(), Asked()
    comparison = NodeReplayer().compare_live(model(outputs=RAW), {"a": a, "b": b, "c": Broken()}, repeats=2)
    assert [(t.client, t.repeat) for t in comparison.trials] == [
        ("a", 1),
        ("b", 1),
        ("c", 1),
        ("a", 2),
        ("b", 2),
        ("c", 2),
    ]
    assert a.prompts == b.prompts == [PROMPT, PROMPT]
    assert [comparison.same_as_recorded(t) for t in comparison.trials[:3]] == [True, False, False]
    assert [type(t.error).__name__ for t in comparison.of("c")] == ["ConnectionError", "ConnectionError"]
    failed = NodeReplayer().compare_live(model(status="error", error={"type": "E", "message": "m"}), {"b": b})
    assert (failed.recorded, failed.trials[0].result) == (None, AgentModelResult("fresh"))


# --- the seed's own example -----------------------------------------------------------------------------------------------


def test_the_example_of_the_seed() -> None:
    sink, model_client = InMemoryIoCaptureSink(), Asked()
    run = agent_run("planner", listeners=[sink], tracer_provider=TracerProvider())
    with run, run.step() as step, step.model_call(PROMPT) as call:
        call.response(AgentModelResult("Yes.", RAW))
    model_nodes = sink.records(NodeType.MODEL)

    replayer = NodeReplayer()
    fresh = replayer.replay_model_live(model_nodes[0], model_client)
    same = replayer.replay_model_mock(model_nodes[0])

    assert (fresh.output_text, len(model_client.prompts)) == ("fresh", 1)
    assert same.raw_response == RAW


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_pieces_of_a_stream_come_back_from_the_wire(tmp_path: Path, api: str) -> None:
    openai = pytest.importorskip("openai")
    from otel_agentrec.otel.recording import AgentRecSpanProcessor as Recording

    provider = TracerProvider()
    provider.add_span_processor(Recording(tmp_path, wire=True))
    live: list[AgentModelChunk] = []
    heard: list[AgentModelChunk] = []

    class Ear:
        def on_chunk(self, chunk: AgentModelChunk) -> None:
            heard.append(chunk)

    turn = Turn("Let me look.", tool_calls=[Call("weather", {"city": "Oslo"}, id="c1")], reasoning="I had better.")
    run = agent_run("planner", tracer_provider=provider)
    with ScriptedServer([turn], seed="s") as server, run, run.step() as step, step.model_call(PROMPT) as call:
        sdk = openai.OpenAI(base_url=server.base_url, api_key="none")
        result = (OpenAIChatClient if api == "chat" else OpenAIResponsesClient)(sdk).create_stream(PROMPT, call)
        live.extend(result.chunks or ())
        call.response(result)
    provider.shutdown()

    (record,) = [r for r in read_nodes(tmp_path) if r.node_type is NodeType.MODEL]
    again = NodeReplayer(tmp_path).replay_model_mock(record, Ear())
    assert list(again.chunks or ()) == live
    assert heard == [replace(chunk, replayed=True) for chunk in live]
    assert (again.tool_calls, again.output_text) == (result.tool_calls, result.output_text)
    assert NodeReplayer().replay_model_mock(record).chunks is None, "without the recording nobody knows them"


@pytest.mark.parametrize("reloaded", [False, True])
def test_records_of_the_objects_themselves_are_replayed_from_memory_and_from_disk(
    tmp_path: Path, reloaded: bool
) -> None:
    prompt = AgentPrompt(model="m", items=[{"role": "user", "content": "q"}], temperature=0.5)
    call = AgentToolCall("pay", {"cents": 5}, "c1")
    result = AgentToolResult("pay", "c1", "paid", trace={"bank": "b"})
    model = NodeIoRecord(node_type=NodeType.MODEL, inputs=prompt, output_text="yes ")
    tool = NodeIoRecord(node_type=NodeType.TOOL, inputs=call, outputs=result)
    if reloaded:
        sink = JsonlIoCaptureSink(tmp_path / "nodes.jsonl")
        sink.capture(model)
        sink.capture(tool)
        model, tool = JsonlIoCaptureSink.load(sink.path)
    replayer = NodeReplayer()
    assert replayer.prompt(model) == prompt
    assert replayer.replay_model_mock(model).output_text == "yes "
    assert replayer.replay_tool_mock(tool) == result
    assert replayer.replay_tool_live(tool, lambda asked: asked.arguments).output == {"cents": 5}
