"""A client inside ``agent_run``: one record for each call, whole or as a stream, also beside an instrumentation of the SDK."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture.emit import agent_run
from otel_agentrec.capture.processors import AgentRecSpanProcessor
from otel_agentrec.clients.ready import OpenAIChatClient, OpenAIResponsesClient
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.prompts import AgentModelResult, AgentPrompt, AgentToolResult
from otel_agentrec.records import NodeIoRecord, NodeType

from .scenes import ASKS, EXPECTED, PROMPT, SCRIPT

openai = pytest.importorskip("openai")


def played(
    path: Path, api: str, *, stream: bool, instrumented: bool = False
) -> tuple[list[NodeIoRecord], list[object]]:
    """One step of an agent: (what was recorded, the bodies that reached the server)."""
    provider = TracerProvider()
    processor = AgentRecSpanProcessor(path)
    provider.add_span_processor(processor)
    instrumentor = None
    if instrumented:
        genai = pytest.importorskip("opentelemetry.instrumentation.genai.openai")
        instrumentor = genai.OpenAIInstrumentor()
        instrumentor.instrument(tracer_provider=provider)
    try:
        with ScriptedServer(SCRIPT, seed="s") as server:
            sdk = openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0)
            client = (OpenAIChatClient if api == "chat" else OpenAIResponsesClient)(sdk)
            with agent_run("planner", tracer_provider=provider) as run, run.step() as step:
                with step.model_call(PROMPT) as call:
                    call.response(client.create_stream(PROMPT, call) if stream else client.create(PROMPT))
                with step.tool_call("weather", {"city": "Oslo"}, call_id="c1") as tool:
                    tool.result(AgentToolResult("weather", "c1", error="no such city"))
            bodies = [request.body for request in server.requests]
    finally:
        if instrumentor is not None:
            instrumentor.uninstrument()
        provider.shutdown()
    return list(read_nodes(path)), bodies


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_record_tells_all_that_was_asked_and_answered(tmp_path: Path, api: str, stream: bool) -> None:
    (model, tool), bodies = played(tmp_path, api, stream=stream)
    assert (model.node_type, model.model_id, model.input_tokens, model.output_tokens) == (NodeType.MODEL, "m", 20, 9)
    assert {
        "text": model.output_text,
        "reasoning": model.reasoning_text,
        "calls": [(c["name"], c["arguments"], c["id"]) for c in model.tool_calls or ()],
    } == EXPECTED
    assert (tool.status, (tool.error or {}).get("message")) == ("error", "no such city")

    again = AgentPrompt.from_inputs(NodeIoRecord.from_json(model.to_json()).inputs)
    with ScriptedServer(SCRIPT, seed="s") as server:
        sdk = openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        client = (OpenAIChatClient if api == "chat" else OpenAIResponsesClient)(sdk)
        assert client.create(again).output_text == ASKS.text
        sent = {k: v for k, v in (server.requests[0].body or {}).items() if k not in ("stream", "stream_options")}
    asked = {k: v for k, v in (bodies[0] or {}).items() if k not in ("stream", "stream_options")}  # type: ignore[attr-defined]
    assert sent == asked, "the recorded prompt is put to the model as it was"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_call_that_the_sdk_is_instrumented_for_is_recorded_once(tmp_path: Path, stream: bool) -> None:
    records, bodies = played(tmp_path, "chat", stream=stream, instrumented=True)
    assert len(bodies) == 1
    assert [r.node_type for r in records] == [NodeType.MODEL, NodeType.TOOL]
    assert (records[0].input_tokens, records[0].output_text) == (20, ASKS.text)
    assert len(records[0].merged_span_ids) == 1


def test_a_result_without_the_providers_payload_is_told_by_its_text(tmp_path: Path) -> None:
    provider = TracerProvider()
    provider.add_span_processor(AgentRecSpanProcessor(tmp_path))
    prompt = AgentPrompt("m", "Hello")
    with agent_run("planner", tracer_provider=provider) as run, run.step() as step, step.model_call(prompt) as call:
        call.response(AgentModelResult(output_text="Hi.", reasoning_text="A greeting."))
    provider.shutdown()
    (record,) = read_nodes(tmp_path)
    assert (record.output_text, record.reasoning_text) == ("Hi.", "A greeting.")
