"""Shapes of messages come out as one schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agentrec.capture.dialects.messages import (
    calls_of,
    definition,
    finish_reasons_of,
    message,
    parsed_listing,
    part,
    raw_listing,
)
from otel_agentrec.journal.facts import RawList


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


TEXT = {"type": "text", "content": "hi"}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({**user(TEXT), "name": None, "finish_reason": "stop"}, user(TEXT)),
        ({**user(TEXT), "name": "Bo"}, {**user(TEXT), "name": "Bo"}),
        ({"role": "user", "parts": ["hi"]}, user(TEXT)),
        ({"role": "user", "parts": (TEXT,)}, user(TEXT)),
        ({"role": "user", "parts": []}, user()),
        ({"role": "user", "content": "hi"}, user(TEXT)),
        ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, user(TEXT)),
        ({"role": "user", "content": None}, {"role": "user"}),
        ("hi", {"parts": [TEXT]}),
        (7, 7),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "f", "arguments": "{}"}]},
        ),
        (
            {"role": "tool", "tool_call_id": "c", "content": "21"},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "21"}]},
        ),
        (
            {"role": "assistant", "content": "hi", "reasoning_content": "hm"},
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, TEXT]},
        ),
    ],
)
def test_messages(told: Any, expected: Any) -> None:
    assert message(told) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"type": "text", "content": "hi", "extra": 1, "gone": None}, {**TEXT, "extra": 1}),
        ({"type": "output_text", "text": "hi"}, TEXT),
        ({"type": "refusal", "refusal": "hi"}, TEXT),
        (
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "reasoning", "content": "hm", "signature": "s"},
        ),
        (
            {"type": "tool_call_response", "id": "c", "result": {"a": None}},
            {"type": "tool_call_response", "id": "c", "response": {"a": None}},
        ),
        (
            {"type": "tool_result", "tool_use_id": "c", "content": "21"},
            {"type": "tool_call_response", "id": "c", "response": "21"},
        ),
        (
            {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
            {"type": "tool_call", "id": "c", "name": "f", "arguments": {"a": 1}},
        ),
        ({"type": "tool_call", "arguments": '{"a": 1}'}, {"type": "tool_call", "arguments": '{"a": 1}'}),
        (
            {"type": "blob", "modality": "image", "content": b"\x00\xff"},
            {"type": "blob", "modality": "image", "content": "AP8="},
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AP8="}},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AP8="},
        ),
        (
            {"type": "input_image", "image_url": "http://a/b.png"},
            {"type": "uri", "modality": "image", "uri": "http://a/b.png"},
        ),
        ({"type": "server_tool_call", "name": "x"}, {"type": "server_tool_call", "name": "x"}),
        ({"type": 7}, {"type": 7}),
        (None, None),
    ],
)
def test_parts(told: Any, expected: Any) -> None:
    assert part(told) == expected


def test_an_answer_equals_the_input_that_it_becomes() -> None:
    said = {"role": "assistant", "parts": [TEXT], "finish_reason": "stop", "name": None}
    sent_again = {"role": "assistant", "parts": [TEXT], "name": None}
    assert message(said) == message(sent_again)


def test_definitions() -> None:
    nested = {"type": "function", "function": {"name": "f", "parameters": {}, "strict": None}}
    assert definition(nested) == definition({"type": "function", "name": "f", "parameters": {}, "description": None})


class TestListings:
    @pytest.mark.parametrize("text", ['[{"role":"user"}]', '  [ {"a": 1} , {"b": 2} ]\n'])
    def test_an_array_of_objects_stays_text(self, text: str) -> None:
        assert raw_listing(text, message) == (RawList(text, message), False)
        assert isinstance(parsed_listing(text, message)[0], list)

    @pytest.mark.parametrize(
        ("told", "expected"),
        [
            ("[]", []),
            ('{"role":"user","content":"hi"}', [user(TEXT)]),
            ('"hi"', [{"parts": [TEXT]}]),
            ('["hi"]', [{"parts": [TEXT]}]),
            ("hi", [{"parts": [TEXT]}]),
            ("[INST] hi", [{"parts": [{"type": "text", "content": "[INST] hi"}]}]),
            ("42", [{"parts": [{"type": "text", "content": "42"}]}]),
            ("null", None),
            ("", None),
            (None, None),
            (user(TEXT), [user(TEXT)]),
            ((user(TEXT),), [user(TEXT)]),
        ],
    )
    def test_everything_else_is_parsed(self, told: Any, expected: Any) -> None:
        assert raw_listing(told, message) == (expected, False)

    @pytest.mark.parametrize("text", ['[{"role":"user","parts":[{"ty', '{"role":"us', '["a', "[["])
    def test_cut_text_is_kept_and_told(self, text: str) -> None:
        assert raw_listing(text, message) == (RawList(text, message), True)
        assert parsed_listing(text, message) == (RawList(text, message), True)


def test_calls_and_finish_reasons() -> None:
    call = {"type": "tool_call", "id": "c", "name": "f", "arguments": {}}
    told = [
        {"parts": [TEXT, call], "finish_reason": "tool_call"},
        "odd",
        {"parts": "odd"},
        {"parts": [{"type": "tool_call"}]},
    ]
    assert calls_of(told) == [{"id": "c", "name": "f"}, {"id": None, "name": None}]
    assert finish_reasons_of(json.loads(json.dumps(told))) == ["tool_call"]
    assert finish_reasons_of("odd") == []
