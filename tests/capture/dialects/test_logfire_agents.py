"""OpenAI Agents through Logfire: raw requests and answers under the framework's own names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agentrec.capture.dialects import read, scope_verdict
from otel_agentrec.capture.dialects.logfire_agents import SCOPE
from otel_agentrec.capture.spans import ERROR, SpanEvent, SpanView
from otel_agentrec.journal.facts import Facts, Kind

HI = {"role": "user", "parts": [{"type": "text", "content": "hi"}]}
HELLO = {"role": "assistant", "parts": [{"type": "text", "content": "hello"}]}
RESPONSES = "Responses API with {gen_ai.request.model!r}"
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "model": "m-2",
    "status": "completed",
    "instructions": "be brief",
    "tools": [{"type": "function", "name": "f", "parameters": {}}],
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "id": "fc_1"},
    ],
    "usage": {"input_tokens": 3, "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 1}},
}


def span(name: str, attributes: dict[str, Any], **fields: Any) -> SpanView:
    told = {key: value if isinstance(value, str) else json.dumps(value) for key, value in attributes.items()}
    base = SpanView("1" * 32, "2" * 16, "3" * 16, name, 1, SCOPE, "5.4.0", 1, 2)
    return base._replace(attributes=told, **fields)


def facts(name: str, attributes: dict[str, Any], **fields: Any) -> Facts:
    reading = read(span(name, attributes, **fields))
    assert reading is not None
    return reading[1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("OpenAI Agents trace: {name}", (Kind.AGENT, "invoke_workflow")),
        ("Agent run: {name!r}", (Kind.AGENT, "invoke_agent")),
        (RESPONSES, (Kind.MODEL, "chat")),
        ("Chat completion with {gen_ai.request.model!r}", (Kind.MODEL, "chat")),
        ("Function: {name}", (Kind.TOOL, "execute_tool")),
        ("Handoff: {from_agent} → {to_agent}", (Kind.STEP, "handoff")),
        ("Turn {turn} for agent a", (Kind.STEP, "turn")),
        ("Something new", (Kind.STEP, "custom")),
    ],
)
def test_the_title_says_what_a_span_is(name: str, expected: tuple[str, str]) -> None:
    reading = read(span(name, {}))
    assert reading is not None
    assert (reading[0], reading[1].operation) == expected
    assert scope_verdict(SCOPE) == "agent"


def test_a_call_over_the_responses_api() -> None:
    told = facts(
        RESPONSES,
        {
            "gen_ai.request.model": "m",
            "raw_input": [{"role": "user", "content": "hi"}],
            "response": RESPONSE,
            "events": [{"event.name": "gen_ai.user.message", "content": "hi"}],
            "model_settings": {"temperature": 0.5, "top_p": None, "metadata": {}},
            "usage": RESPONSE["usage"],
            "response_id": "resp_1",
            "logfire.json_schema": "{}",
            "logfire.msg": "Responses API with 'm'",
        },
    )
    call = {"type": "tool_call", "id": "c1", "name": "f", "arguments": "{}"}
    assert (told.model, told.response_model, told.response_id) == ("m", "m-2", "resp_1")
    assert told.messages == [HI]
    assert told.output_messages is not None
    assert [p for m in told.output_messages for p in m["parts"]] == [
        {"type": "reasoning", "content": "hm"},
        *HELLO["parts"],
        call,
    ]
    assert told.system_instructions == [{"type": "text", "content": "be brief"}]
    assert told.tools == [{"type": "function", "name": "f", "parameters": {}}]
    assert (told.finish_reasons, told.reasoning_tokens, told.parameters) == (
        ["stop", "tool_calls"],
        1,
        {"temperature": 0.5},
    )
    assert told.output_raw == RESPONSE
    assert told.attributes == {"logfire.msg": "Responses API with 'm'"}


def test_a_call_over_the_chat_api() -> None:
    told = facts(
        "Chat completion with {gen_ai.request.model!r}",
        {
            "request_data": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
            "response_data": {"message": {"role": "assistant", "content": "hello"}, "usage": None},
        },
    )
    assert (told.model, told.messages, told.output_messages, told.attributes) == ("m", [HI], [HELLO], None)


def test_a_plain_question() -> None:
    assert facts(RESPONSES, {"raw_input": "hi"}).messages == [HI]


def test_the_events_are_the_last_resort() -> None:
    events = [
        {"event.name": "gen_ai.user.message", "content": "hi", "role": "user"},
        {"event.name": "gen_ai.unknown"},
        7,
    ]
    told = facts(RESPONSES, {"events": events})
    assert (told.messages, told.attributes) == ([HI], {"events": [{"event.name": "gen_ai.unknown"}, 7]})
    assert facts(RESPONSES, {"events": [7]}).attributes == {"events": "[7]"}


def test_a_call_that_failed() -> None:
    told = facts(
        RESPONSES,
        {
            "gen_ai.request.model": "m",
            "response_id": "null",
            "usage": "null",
            "error": {"message": "Error getting response", "data": {"error": "Error code: 400"}},
        },
        status_code=ERROR,
        events=(SpanEvent("exception", 1, {"exception.type": "BadRequestError", "exception.message": "no"}),),
    )
    assert (told.status, told.error_type, told.error_message) == ("error", "BadRequestError", "no")
    assert told.attributes is not None
    assert list(told.attributes) == ["error"]
    assert facts("Agent run: {name!r}", {"error": {"message": "m", "data": {"error": "why"}}}).error_message == "why"
    assert facts("Agent run: {name!r}", {"error": {"message": "m", "data": None}}).error_message == "m"


def test_a_tool_call() -> None:
    told = facts("Function: {name}", {"name": "f", "input": '{"x": 1}', "output": "7", "mcp_data": "null"})
    assert (told.tool_name, told.arguments, told.result, told.attributes) == ("f", '{"x": 1}', "7", None)


def test_the_group_is_the_session() -> None:
    told = facts("OpenAI Agents trace: {name}", {"name": "chat-wf", "group_id": "g1", "metadata": "null"})
    assert (told.agent_name, told.session_id) == ("chat-wf", "g1")
    assert facts("OpenAI Agents trace: {name}", {"group_id": "null"}).session_id is None


def test_a_span_that_says_that_another_began_is_no_call() -> None:
    reading = read(span(RESPONSES, {"logfire.span_type": "pending_span", "gen_ai.request.model": "m"}))
    assert reading is not None
    assert (reading[0], reading[1].operation) == (Kind.STEP, "pending")
