"""Observations of Langfuse's SDK."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import read
from otel_agentrec.capture.dialects.langfuse import KINDS
from otel_agentrec.capture.spans import ERROR
from otel_agentrec.journal.facts import Facts, Kind, RawList

from .frameworks import HELLO, HI, reading, span, text

ASKED = [{"role": "user", "content": "hi"}]


def observed(type_: str, attributes: dict[str, Any]) -> dict[str, Any]:
    return {f"langfuse.observation.{key}": value for key, value in {"type": type_, **attributes}.items()}


def facts(type_: str, attributes: dict[str, Any], **fields: Any) -> Facts:
    return reading("langfuse-sdk", observed(type_, attributes), **fields)[1]


@pytest.mark.parametrize(("told", "expected"), [*sorted(KINDS.items()), ("guardrail", (Kind.STEP, "guardrail"))])
def test_the_type_decides(told: str, expected: tuple[str, str]) -> None:
    kind, found = reading("another", observed(told, {}))
    assert (kind, found.operation) == expected


def test_a_span_at_the_top_is_the_run() -> None:
    assert reading("langfuse-sdk", observed("span", {}), parent_span_id=None)[0] == Kind.AGENT
    assert reading("langfuse-sdk", observed("span", {}))[0] == Kind.STEP


def test_a_generation() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
    told = reading(
        "langfuse-sdk",
        {
            **observed(
                "generation",
                {
                    "input": text({"messages": ASKED, "tools": [{"type": "function", "function": {"name": "f"}}]}),
                    "output": text({"role": "assistant", "content": "hello"}),
                    "model.name": "m-2",
                    "usage_details": text(usage),
                    "model.parameters": '{"temperature":1}',
                },
            ),
            "session.id": "s1",
            "user.id": "u1",
        },
    )[1]
    assert (told.messages, told.output_messages, told.tools) == ([HI], [HELLO], [{"type": "function", "name": "f"}])
    assert (told.model, told.response_model) == (None, "m-2")
    assert (told.input_tokens, told.output_tokens, told.cache_read_tokens) == (9, 3, 4)
    assert (told.session_id, told.user_id, told.parameters) == ("s1", "u1", {"temperature": 1})
    assert told.attributes is None


def test_without_an_answer_the_model_is_the_requested_one() -> None:
    told = facts("generation", {"input": text(ASKED), "model.name": "m", "level": "ERROR", "status_message": "no"})
    assert (told.model, told.response_model, told.messages) == ("m", None, [HI])
    assert (told.status, told.error_message, told.attributes) == ("error", "no", None)
    failed = facts("generation", {"level": "ERROR", "status_message": "no"}, status_code=ERROR)
    assert (failed.status, failed.error_message) == ("error", "no")


def test_a_streamed_answer_is_a_text() -> None:
    told = facts("generation", {"output": "hello", "completion_start_time": "2026-01-01"})
    assert (told.output_messages, told.streamed) == ([HELLO], True)


def test_a_tool_is_a_python_call() -> None:
    told = facts("tool", {"input": text({"args": [], "kwargs": {"a": 1}}), "output": "one"}, name="f")
    assert (told.tool_name, told.arguments, told.result) == ("f", {"a": 1}, "one")
    assert facts("tool", {"input": '{"a":1}'}).arguments == '{"a":1}'


def test_what_was_cut() -> None:
    told = facts("generation", {"input": '{"messages":[{', "output": '{"role":"assis'})
    assert isinstance(told.messages, RawList)
    assert isinstance(told.output_messages, RawList)
    assert told.flags == ["input_truncated", "output_truncated"]


def test_spans_that_name_their_operation_are_of_that_convention() -> None:
    told = read(span("an.app", {**observed("generation", {}), "gen_ai.operation.name": "chat"}))
    assert told is not None
    assert told[1].dialect == "otel-genai"
