"""Haystack's spans and messages."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import haystack
from otel_agentrec.capture.dialects.haystack import KINDS
from otel_agentrec.journal.facts import Facts, Kind

from .frameworks import HELLO, HI, reading, text


def facts(name: str, attributes: dict[str, Any]) -> Facts:
    return reading("haystack", attributes, name=name)[1]


@pytest.mark.parametrize(("name", "expected"), [*sorted(KINDS.items()), ("haystack.x", (Kind.STEP, "x"))])
def test_the_name_decides(name: str, expected: tuple[str, str]) -> None:
    kind, told = reading("another", {}, name=name)
    assert (kind, told.operation) == expected


def test_a_model_call() -> None:
    meta = {"model": "m-2", "finish_reason": "stop", "usage": {"prompt_tokens": 9, "completion_tokens": 3}}
    told = facts(
        "haystack.agent.step.llm",
        {
            "haystack.agent.step.llm.input": text(
                {"messages": [{"role": "user", "content": [{"text": "hi"}], "meta": {}}], "tools": [{"name": "f"}]}
            ),
            "haystack.agent.step.llm.output": text(
                {"replies": [{"role": "assistant", "content": [{"text": "hello"}], "meta": meta}]}
            ),
        },
    )
    assert (told.messages, told.output_messages, told.calls) == ([HI], [HELLO], [])
    assert (told.response_model, told.finish_reasons) == ("m-2", ["stop"])
    assert (told.input_tokens, told.output_tokens, told.tools) == (9, 3, [{"name": "f"}])
    assert told.attributes is None


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            {"tool_call": {"id": "c1", "tool_name": "f", "arguments": {"a": 1}}},
            {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
        ),
        (
            {"tool_call_result": {"result": "one", "error": False, "origin": {"id": "c1", "tool_name": "f"}}},
            {"type": "tool_call_response", "id": "c1", "name": "f", "response": "one"},
        ),
        ({"reasoning": {"reasoning_text": "hm"}}, {"type": "reasoning", "content": "hm"}),
        ({"image": {"base64_image": "QQ=="}}, {"type": "image", "base64_image": "QQ=="}),
    ],
)
def test_blocks(block: Any, expected: Any) -> None:
    assert haystack.message({"role": "x", "content": [block]}) == {"role": "x", "parts": [expected]}
    assert haystack.message({"_role": "x", "_content": [block]}) == {"role": "x", "parts": [expected]}


@pytest.mark.parametrize("value", [None, "hi", {}, {"role": "user"}, {"role": "user", "content": "hi"}])
def test_what_is_no_message(value: Any) -> None:
    assert haystack.message(value) is None


def test_a_tool_tells_its_failure_only_itself() -> None:
    told = facts(
        "haystack.agent.step.tool",
        {"haystack.tool.name": "f", "haystack.tool.input": '{"a":1}', "haystack.tool.output": "no ✗"},
    )
    assert (told.tool_name, told.arguments, told.result, told.status) == ("f", '{"a":1}', "no ✗", None)
    told = facts("haystack.agent.step.tool", {"haystack.tool.output": "no ✗", "haystack.tool.error": True})
    assert (told.status, told.error_message, told.attributes) == ("error", "no ✗", None)
