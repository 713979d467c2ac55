"""Messages between AutoGen's agents."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import read
from otel_agentrec.journal.facts import Kind

from .frameworks import reading, span, text

SCOPE = "autogen SingleThreadedAgentRuntime"
NAME = "autogen process planner"
REQUEST = {"type": "ToolCallRequestEvent", "content": [{"id": "c1", "name": "f", "arguments": '{"a": 1}'}]}
DONE = {
    "type": "ToolCallExecutionEvent",
    "content": [{"call_id": "c1", "name": "f", "content": "one", "is_error": False}],
}


def message(value: Any) -> dict[str, Any]:
    return {"message": text(value), "messaging.operation": "process", "message_context": "{}"}


@pytest.mark.parametrize("value", [{"message": DONE}, {"response": {"inner_messages": [DONE]}}, {"messages": [DONE]}])
def test_results_wherever_they_stand(value: Any) -> None:
    kind, told = reading(SCOPE, message(value), name=NAME)
    assert (kind, told.operation, told.dialect) == (Kind.STEP, "process", "autogen")
    part = {"type": "tool_call_response", "id": "c1", "name": "f", "response": "one"}
    assert told.messages == [{"role": "tool", "parts": [part]}]
    assert told.calls == [{"id": "c1", "name": "f"}]


def test_calls() -> None:
    _, told = reading(SCOPE, message({"message": REQUEST}), name=NAME)
    part = {"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"a": 1}'}
    assert told.messages == [{"role": "assistant", "parts": [part]}]


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        (NAME, message({"message": {"type": "TextMessage", "content": "hello"}})),
        (NAME, message({"message": {"type": "TextMessage", "content": "a ToolCallExecutionEvent"}})),
        (NAME, message({"message": {**DONE, "content": "one"}})),
        (NAME, {"message": '{"type": "ToolCallExecutionEvent'}),
        (NAME, {}),
        ("another", message({"message": DONE})),
    ],
)
def test_other_messages_are_not_read(name: str, attributes: dict[str, Any]) -> None:
    assert read(span(SCOPE, attributes, name=name)) is None
