"""Messages, answers and results as LlamaIndex serialises them."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import llamaindex, pythonrepr, raw

RAW = {
    "id": "r1",
    "model": "m",
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
}
BLOCKS = [
    {"content": "hm"},
    {"text": "hello"},
    {"tool_call_id": "c1", "tool_name": "f", "tool_kwargs": '{"a": 1}'},
    {"url": "http://x/y", "block_type": "image"},
    {"data": "…", "block_type": "citation"},
]


def test_blocks_are_told_by_their_keys() -> None:
    told = llamaindex.message({"role": "assistant", "blocks": BLOCKS, "additional_kwargs": {}})
    assert told["parts"] == [
        {"type": "reasoning", "content": "hm"},
        {"type": "text", "content": "hello"},
        {"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"a": 1}'},
        {"type": "uri", "modality": "image", "uri": "http://x/y"},
        {"type": "citation", "data": "…"},
    ]


def test_calls_that_only_stand_beside_the_blocks() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    told = llamaindex.message({"role": "assistant", "blocks": [], "additional_kwargs": {"tool_calls": [call]}})
    assert told["parts"] == [{"type": "tool_call", "id": "c1", "name": "f", "arguments": "{}"}]


def test_an_answer_holds_the_providers_own() -> None:
    got = raw.said({"message": {"role": "assistant", "blocks": BLOCKS[:2]}, "raw": RAW})
    assert got is not None
    assert [p["type"] for p in got.messages[0]["parts"]] == ["reasoning", "text"]
    assert (got.finish_reasons, got.response_id, got.model, got.raw) == (["stop"], "r1", "m", RAW)
    got = raw.said({"message": {"role": "assistant", "blocks": []}, "raw": None})
    assert got is not None
    assert (got.messages, got.raw) == ([{"role": "assistant", "parts": []}], None)


def test_a_request_in_repr_text() -> None:
    got = raw.asked(
        {
            "messages": [
                "ChatMessage(role=<MessageRole.USER: 'user'>, additional_kwargs={}, blocks=[TextBlock(block_type='text', text='hi')])",
                "ChatMessage(role=<MessageRole.TOOL: 'tool'>, additional_kwargs={'tool_call_id': 'c1'}, "
                "blocks=[TextBlock(block_type='text', text='1')])",
            ],
            "kwargs": {"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto"},
        }
    )
    assert got is not None
    assert got.messages == [
        {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "1"}]},
    ]
    assert (got.tools, got.parameters) == ([{"type": "function", "name": "f"}], {"tool_choice": "auto"})


@pytest.mark.parametrize(
    "messages", [["no repr at all"], ["Other(role='user')"], ["ChatMessage(role='user', blocks=[..."], [1], []]
)
def test_repr_text_that_is_no_message_is_no_request(messages: Any) -> None:
    assert raw.asked({"messages": messages}) is None


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"raw_output": "21°", "tool_name": "f", "is_error": False, "blocks": [{"text": "21°"}]}, ("21°", False)),
        (
            {"raw_output": None, "tool_name": "f", "is_error": True, "blocks": [{"text": "a"}, {"text": "b"}]},
            ("ab", True),
        ),
        ({"raw_output": {"t": 21}, "tool_name": "f"}, ({"t": 21}, False)),
        ({"raw_output": 1}, None),
        ("text", None),
    ],
)
def test_results_of_tools(told: Any, expected: Any) -> None:
    assert llamaindex.tool_output(told) == expected


def test_repr_and_json_give_the_same_message() -> None:
    text = (
        "ChatMessage(role=<MessageRole.ASSISTANT: 'assistant'>, additional_kwargs={}, blocks=[TextBlock(text='hello')])"
    )
    json_form = {"role": "assistant", "additional_kwargs": {}, "blocks": [{"text": "hello"}]}
    assert llamaindex.message(pythonrepr.parse(text)) == llamaindex.message(json_form)
