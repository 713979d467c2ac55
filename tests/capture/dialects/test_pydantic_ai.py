"""Pydantic AI: the GenAI conventions with its own names, which changed from format to format."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import pydantic_ai, read
from otel_agentrec.journal.facts import Facts, Kind

from .frameworks import HELLO, HI, reading, span, text

SCOPE = pydantic_ai.SCOPE
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f"}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
EVENTS = [
    {"event.name": "gen_ai.user.message", "role": "user", "content": "hi"},
    {
        "event.name": "gen_ai.choice",
        "index": 0,
        "message": {
            "role": "assistant",
            "content": [{"kind": "thinking", "text": "hm"}, {"kind": "text", "text": "hello"}],
            "tool_calls": [CALL],
        },
    },
]


def facts(attributes: dict[str, Any]) -> Facts:
    return reading(SCOPE, attributes)[1]


def test_the_names_of_its_first_formats() -> None:
    told = facts({**TOOL, "tool_arguments": '{"a":1}', "tool_response": "one"})
    assert (told.dialect, told.arguments, told.result) == ("pydantic-ai", '{"a":1}', "one")
    assert told.attributes is None


def test_names_of_the_convention_lead() -> None:
    told = facts({**TOOL, "tool_arguments": "{}", "gen_ai.tool.call.arguments": '{"a":1}'})
    assert told.arguments == '{"a":1}'


def test_events_listed_in_an_attribute() -> None:
    told = facts({"gen_ai.operation.name": "chat", "events": text(EVENTS)})
    assert told.messages == [HI]
    assert told.output_messages == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm"},
                {"type": "text", "content": "hello"},
                {"type": "tool_call", "id": "c1", "name": "f", "arguments": "{}"},
            ],
        }
    ]
    assert told.calls == [{"id": "c1", "name": "f"}]
    assert told.attributes is None


@pytest.mark.parametrize("events", ["[]", "no json", '[{"other": 1}]', 7])
def test_another_attribute_called_events_stays_what_it_is(events: Any) -> None:
    told = facts({"gen_ai.operation.name": "chat", "events": events})
    assert (told.messages, told.attributes) == (None, {"events": events})


def test_an_agent_tells_its_history_and_its_result() -> None:
    kind, told = reading(
        SCOPE,
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "planner",
            "pydantic_ai.all_messages": [HI, HELLO],
            "final_result": "hello",
        },
    )
    assert (kind, told.agent_name) == (Kind.AGENT, "planner")
    assert (told.messages, told.output_text) == ([HI, HELLO], "hello")


def test_a_result_that_is_no_text_is_kept_as_text() -> None:
    assert facts({"gen_ai.operation.name": "invoke_agent", "final_result": 7}).output_text == "7"


def test_other_scopes_are_not_its_own() -> None:
    told = read(span("an.app", {**TOOL, "tool_arguments": "{}"}))
    assert told is not None
    assert (told[1].dialect, told[1].arguments) == ("otel-genai", None)
