"""Google's requests and answers, and the Agent Development Kit that records them."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import google, google_adk
from otel_agentrec.journal.facts import Facts, Kind, RawList

from .frameworks import HELLO, HI, reading, text

REQUEST = {
    "model": "gemini",
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "config": {
        "system_instruction": "be brief",
        "temperature": 0.5,
        "tools": [{"function_declarations": [{"name": "f", "parameters": {"type": "OBJECT"}}]}],
    },
}
ANSWER = {"content": {"role": "model", "parts": [{"text": "hello"}]}, "finish_reason": "STOP", "partial": None}


def facts(name: str, attributes: dict[str, Any]) -> Facts:
    return reading(google_adk.SCOPE, attributes, name=name)[1]


def test_a_request() -> None:
    asked = google.asked(REQUEST)
    assert asked is not None
    assert (asked.messages, asked.model) == ([HI], "gemini")
    assert asked.instructions == [{"type": "text", "content": "be brief"}]
    assert asked.tools == [{"name": "f", "parameters": {"type": "OBJECT"}}]
    assert asked.parameters == {"temperature": 0.5}


def test_answers_of_the_api_and_of_adk() -> None:
    for value in (ANSWER, {"candidates": [{"content": ANSWER["content"], "finishReason": "STOP"}], "responseId": "r1"}):
        said = google.said(value)
        assert said is not None
        assert (said.messages, said.finish_reasons) == ([HELLO], ["STOP"])


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"text": "hm", "thought": True}, {"type": "reasoning", "content": "hm"}),
        (
            {"function_call": {"id": "c1", "name": "f", "args": {"a": 1}}, "text": None},
            {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
        ),
        (
            {"functionResponse": {"id": "c1", "name": "f", "response": {"result": 1}}},
            {"type": "tool_call_response", "id": "c1", "name": "f", "response": {"result": 1}},
        ),
        (
            {"inline_data": {"mime_type": "image/png", "data": "QQ=="}},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "QQ=="},
        ),
        (
            {"file_data": {"file_uri": "gs://x", "mime_type": "image/png"}},
            {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "gs://x"},
        ),
        ({"text": "hi", "thought_signature": "s"}, {"type": "text", "content": "hi", "thought_signature": "s"}),
        ({"executable_code": {"code": "1"}}, {"executable_code": {"code": "1"}}),
    ],
)
def test_parts(part: Any, expected: Any) -> None:
    said = google.said({"content": {"role": "model", "parts": [part]}})
    assert said is not None
    assert said.messages == [{"role": "assistant", "parts": [expected]}]


@pytest.mark.parametrize("value", [None, {}, {"content": "hi"}, {"content": {"role": "x"}}, {"candidates": 1}, []])
def test_what_is_neither(value: Any) -> None:
    assert google.asked(value) is None
    assert google.said(value) is None


def test_the_outer_span_of_schema_1_is_a_model_call_too() -> None:
    kind, told = reading(
        google_adk.SCOPE,
        {
            "gen_ai.request.model": "gemini",
            "gcp.vertex.agent.llm_request": text(REQUEST),
            "gcp.vertex.agent.llm_response": text(ANSWER),
            "gcp.vertex.agent.session_id": "s1",
            "gen_ai.usage.input_tokens": 9,
            "gen_ai.usage.output_tokens": 3,
        },
        name="call_llm",
    )
    assert (kind, told.dialect, told.session_id) == (Kind.MODEL, "google-adk", "s1")
    assert (told.messages, told.output_messages, told.calls) == ([HI], [HELLO], [])
    assert (told.input_tokens, told.output_tokens, told.finish_reasons) == (9, 3, ["STOP"])


def test_tools_of_schema_1_have_an_empty_request() -> None:
    told = facts(
        "execute_tool f",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "f",
            "gcp.vertex.agent.llm_request": "{}",
            "gcp.vertex.agent.tool_call_args": '{"a":1}',
            "gcp.vertex.agent.tool_response": '{"result":1}',
        },
    )
    assert (told.arguments, told.result, told.attributes) == ('{"a":1}', '{"result":1}', None)


def test_gathered_results_are_no_tool_call() -> None:
    kind, told = reading(google_adk.SCOPE, {"gen_ai.operation.name": "execute_tool"}, name="execute_tool (merged)")
    assert (kind, told.operation) == (Kind.STEP, "gather_results")


def test_what_was_cut() -> None:
    told = facts(
        "call_llm", {"gcp.vertex.agent.llm_request": '{"contents":[', "gcp.vertex.agent.llm_response": '{"con'}
    )
    assert isinstance(told.messages, RawList)
    assert told.flags == [
        "input_truncated",
        "output_truncated",
    ]
