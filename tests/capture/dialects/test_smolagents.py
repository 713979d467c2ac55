"""Messages and answers as smolagents serialises them."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import raw, smolagents

COMPLETION = (
    "ChatCompletion(id='r1', choices=[Choice(finish_reason='tool_calls', index=0, message=ChatCompletionMessage("
    "content='hello', role='assistant', annotations=[], tool_calls=[ChatCompletionMessageFunctionToolCall(id='c1', "
    "function=Function(arguments='{}', name='f'), type='function')], reasoning_content='hm'))], model='m')"
)
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}", "description": None}}
PARTS = [{"type": "text", "content": "hello"}, {"type": "tool_call", "id": "c1", "name": "f", "arguments": "{}"}]


def chat_message(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "hello", "tool_calls": [CALL], "raw": None, "token_usage": None, **fields}


def test_the_answer_of_the_provider_tells_more_than_the_message() -> None:
    got = raw.said(chat_message(raw=COMPLETION))
    assert got is not None
    assert got.messages == [{"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, *PARTS]}]
    assert (got.finish_reasons, got.response_id, got.model, got.raw) == (["tool_calls"], "r1", "m", None)


@pytest.mark.parametrize("told", [None, "{'out': tensor([[1]])}", "ChatCompletion(id='cut", 7])
def test_without_it_the_message_counts(told: Any) -> None:
    got = raw.said(chat_message(raw=told))
    assert got is not None
    assert (got.messages, got.response_id) == ([{"role": "assistant", "parts": PARTS}], None)


@pytest.mark.parametrize(
    ("role", "sent_as"), [("tool-call", "assistant"), ("tool-response", "user"), ("system", "system")]
)
def test_roles_that_only_the_framework_knows_are_told_as_models_see_them(role: str, sent_as: str) -> None:
    written = f"ChatMessage(role=<MessageRole.X: '{role}'>, content=[{{'type': 'text', 'text': 'hi'}}], tool_calls=None, raw=None)"
    got = raw.asked({"messages": [written], "stop_sequences": ["Observation:"], "tools_to_call_from": ["<T object>"]})
    assert got is not None
    assert got.messages == [{"role": sent_as, "parts": [{"type": "text", "content": "hi"}]}]
    assert got.parameters == {"stop_sequences": ["Observation:"]}


@pytest.mark.parametrize("value", [None, {}, {"role": "user", "content": "hi"}])
def test_other_shapes(value: Any) -> None:
    assert smolagents.message(value) is None
    assert smolagents.said(value) is None
