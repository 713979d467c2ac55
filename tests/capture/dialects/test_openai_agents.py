"""OpenAI Agents through ``openai-agents-v2``: answers that stand as repr text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agentrec.capture.dialects import openai_agents, read
from otel_agentrec.capture.dialects.openai_agents import SCOPE, message
from otel_agentrec.capture.spans import SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList

CONSTANT = {"gen_ai.agent.name": "OpenAI Agent", "gen_ai.agent.id": "agent"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", **CONSTANT}
CALL = {"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"city": "Zürich"}'}


def span(attributes: dict[str, Any], **fields: Any) -> SpanView:
    base = SpanView("1" * 32, "2" * 16, "3" * 16, "chat m", 3, SCOPE, None, 1, 2)
    return base._replace(attributes=attributes, **fields)


def facts(view: SpanView) -> Facts:
    reading = read(view)
    assert reading is not None
    return reading[1]


def said(*texts: str) -> Facts:
    parts = [{"type": "text", "content": text} for text in texts]
    return facts(span({**CHAT, "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])}))


def parts(*texts: str) -> Any:
    (answer,) = said(*texts).output_messages or ()
    return answer["parts"]


ITEM = "ResponseFunctionToolCall(arguments='{\"city\": \"Zürich\"}', call_id='c1', name='f', type='function_call', id='fc_1')"
TOOL_CALLS = "[{'id': 'c1', 'function': {'arguments': '{\"city\": \"Zürich\"}', 'name': 'f'}, 'type': 'function'}]"


def test_items_of_the_responses_api() -> None:
    told = said(ITEM, ITEM.replace("c1", "c2"))
    assert told.output_messages == [{"role": "assistant", "parts": [CALL, {**CALL, "id": "c2"}]}]
    assert told.calls == [{"id": "c1", "name": "f"}, {"id": "c2", "name": "f"}]
    assert told.attributes is not None
    assert "fc_1" in told.attributes["gen_ai.output.messages"], "what a call has no place for is kept"
    assert "gen_ai.output.messages" not in (said("hello").attributes or {})
    thought = "ResponseReasoningItem(id='rs_1', summary=[Summary(text='hm', type='summary_text')], type='reasoning')"
    assert parts(thought, ITEM) == [{"type": "reasoning", "content": "hm"}, CALL]


def test_a_chat_message() -> None:
    assert parts(f"{{'content': None, 'refusal': None, 'role': 'assistant', 'tool_calls': {TOOL_CALLS}}}") == [CALL]


def test_a_whole_response() -> None:
    answer = "{'content': [{'text': 'hello', 'type': 'output_text'}], 'role': 'assistant', 'type': 'message', "
    answer += "'provider_data': {'model': 'm', 'response_id': 'chatcmpl-1'}}"
    told = said(f"{{'id': '__fake_id__', 'object': 'response', 'status': None, 'output': [{answer}]}}")
    assert told.output_messages == [{"role": "assistant", "parts": [{"type": "text", "content": "hello"}]}]
    assert told.response_id == "chatcmpl-1"


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "{'a': 1}",
        "f(x=1)",
        "Point(x=1, y=2)",
        "{'role': 'x'}",
        "{'content': open('/etc')",
        "__import__('os')",
        "{}",
        ")",
    ],
)
def test_anything_else_is_what_the_model_said(text: str) -> None:
    assert parts(text) == [{"type": "text", "content": text}]


def test_long_texts_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_agents, "MAX_REPR", len(ITEM) - 1)
    assert parts(ITEM) == [{"type": "text", "content": ITEM}]


def test_a_result_is_told_once() -> None:
    response = {"type": "tool_call_response", "id": "c1", "result": "7"}
    told = message({"role": "tool", "parts": [{"type": "text", "content": "7"}, response]})
    assert told == {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "7"}]}
    other = {"role": "tool", "parts": [{"type": "text", "content": "8"}, response]}
    assert len(message(other)["parts"]) == 2


def test_the_history_is_read_when_it_is_stored() -> None:
    told = facts(span({**CHAT, "gen_ai.input.messages": '[{"role": "user", "parts": []}]'}))
    assert told.messages == RawList('[{"role": "user", "parts": []}]', message)


def test_the_constant_agent_is_no_agent() -> None:
    told = facts(span(CHAT))
    assert (told.agent_name, told.agent_id, told.attributes) == (None, None, CONSTANT)
    assert (
        facts(span({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"})).agent_name == "planner"
    )


def test_handoffs_and_turns_are_steps() -> None:
    handoff = read(span({"gen_ai.operation.name": "agent_handoff", "gen_ai.handoff.to_agent": "b"}))
    turn = read(span({"gen_ai.operation.name": "unknown"}, name="unknown"))
    assert handoff is not None
    assert turn is not None
    assert (handoff[0], handoff[1].operation) == (Kind.STEP, "handoff")
    assert (turn[0], turn[1].operation) == (Kind.STEP, "unknown")


def test_the_other_instrumentation_of_that_name_is_traceloops() -> None:
    told = {"gen_ai.operation.name": "chat"}
    assert facts(span(told, name="openai.response", scope_version="0.62.4")).dialect == "traceloop"
    assert facts(span({"traceloop.span.kind": "agent"}, name="a.agent")).dialect == "traceloop"
    assert facts(span(told, scope_version="0.2")).dialect == facts(span(told)).dialect == "openai-agents-v2"
