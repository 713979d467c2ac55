"""Tool calls that are known twice, by a span and by the point that intercepted them: one record, one effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture.processors import AgentRecSpanProcessor
from otel_agentrec.intercept.protocol import ToolCall, ToolOutcome
from otel_agentrec.intercept.recording_tools import RecordingTools
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import read_effects
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.read import read_nodes

from .telling import Telling, does

WHERE = {"traceId": "t1", "spanId": "x"}


def intercepted(t: Telling, output: Any, codec: str | None = None) -> None:
    """What the point tells of the call that span x is."""
    began = {"effectId": "e1", "name": "f", "root": "t1", "effect": True, "arguments": {"q": 1}}
    t.tell("EFFECT_STARTED", began, WHERE)
    t.tell("EFFECT_DONE", {"effectId": "e1", "output": output, **({"codec": codec} if codec else {})}, WHERE)


def test_what_a_span_does_not_tell_the_ledger_does() -> None:
    t = Telling()
    intercepted(t, {"km": 3})
    t.tool("x", at=(2, 3), facts=does("f", call_id="c1"))
    t.tool("y", at=(4, 5), facts=does("f", call_id="c2"))
    found, other = fold(t.events).records()
    assert (found.inputs["arguments"], found.outputs) == ({"q": 1}, {"km": 3})
    assert (other.inputs["arguments"], other.outputs) == (None, None)


def test_what_a_span_tells_itself_leads() -> None:
    t = Telling()
    intercepted(t, "ledger")
    t.tool("x", at=(2, 3), facts={**does("f", '{"q": 2}', call_id="c1"), "result": "span"})
    (found,) = fold(t.events).records()
    assert (found.inputs["arguments"], found.outputs) == ({"q": 2}, "span")


def test_what_a_codec_made_of_a_result_is_none() -> None:
    t = Telling()
    intercepted(t, [{"type": "tool_result"}], codec="strands.events")
    t.tool("x", at=(2, 3), facts=does("f", call_id="c1"))
    (found,) = fold(t.events).records()
    assert found.outputs is None


@pytest.mark.usefixtures("otel_globals")
@pytest.mark.parametrize("is_current", [True, False], ids=["current", "made by callbacks"])
def test_a_call_with_a_span_is_one_record_and_one_effect(tmp_path: Path, is_current: bool) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    processor = AgentRecSpanProcessor(tmp_path / "rec")
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)
    tracer = provider.get_tracer("demo")
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "call-1"}
    agent = tracer.start_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"})
    tools = RecordingTools(processor.recorder)

    def call() -> None:
        begun = tools.answer(ToolCall("langchain", "weather", {"place": "Finse"}, "call-1"))
        assert isinstance(begun, ToolCall)
        tools.returned(begun, ToolOutcome("rain"))

    if is_current:
        with tracer.start_as_current_span("execute_tool weather", attributes=told):
            call()
    else:
        span = tracer.start_span("weather", attributes=told)
        call()
        span.end()
    agent.end()
    processor.shutdown()
    records = list(read_nodes(tmp_path / "rec"))
    assert [(r.tool_name, r.tool_call_id) for r in records] == [("weather", "call-1")]
    (effect,) = read_effects(Recording(tmp_path / "rec"), records)
    assert (effect.name, effect.effect, effect.state) == ("weather", True, "done")
