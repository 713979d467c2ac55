"""Requests and answers of Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import anthropic, messages, raw

BLOCKS = [
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "text", "text": "hello", "citations": None},
    {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}, "caller": None},
]
PARTS = [
    {"type": "reasoning", "content": "hm", "signature": "s"},
    {"type": "text", "content": "hello"},
    {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
]


@pytest.mark.parametrize("system", ["Be brief.", [{"type": "text", "text": "Be brief."}]])
def test_a_request(system: Any) -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "1"}
    got = raw.asked(
        {
            "model": "m",
            "max_tokens": 9,
            "system": system,
            "messages": [{"role": "assistant", "content": BLOCKS}, {"role": "user", "content": [result]}],
            "tools": [
                {"name": "f", "input_schema": {"type": "object"}},
                {"type": "web_search_20250305", "name": "web_search"},
            ],
        }
    )
    assert got is not None
    answered = {"type": "tool_call_response", "id": "c1", "response": "1"}
    assert got.messages == [{"role": "assistant", "parts": PARTS}, {"role": "user", "parts": [answered]}]
    assert got.instructions == [{"type": "text", "content": "Be brief."}]
    assert got.parameters == {"max_tokens": 9}
    assert got.tools == [
        {"type": "function", "name": "f", "parameters": {"type": "object"}},
        {"type": "web_search_20250305", "name": "web_search"},
    ]


def test_an_answer() -> None:
    told = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": BLOCKS,
        "stop_reason": "tool_use",
    }
    got = raw.said(told)
    assert got is not None
    assert got.messages == [{"role": "assistant", "parts": PARTS}]
    assert (got.finish_reasons, got.response_id, got.model, got.raw) == (["tool_use"], "msg_1", "m", told)


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (
            {"type": "base64", "media_type": "image/png", "data": "AA=="},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AA=="},
        ),
        ({"type": "url", "url": "http://x/y"}, {"type": "uri", "modality": "image", "uri": "http://x/y"}),
        ({"type": "file", "file_id": "f1"}, {"type": "file", "modality": "image", "file_id": "f1"}),
        ({"type": "new"}, {"type": "image", "source": {"type": "new"}}),
    ],
)
def test_images(source: Any, part: Any) -> None:
    assert messages.part({"type": "image", "source": source}) == part


@pytest.mark.parametrize("value", [None, [], {}, {"content": "text"}, {"content": []}, {"content": [], "role": "user"}])
def test_other_shapes_are_not_taken_for_answers(value: Any) -> None:
    assert anthropic.said(value) is None
