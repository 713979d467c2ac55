"""Claude Code's spans and log events."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import claude_code, read
from otel_agentrec.capture.dialects.claude_code import KINDS
from otel_agentrec.capture.spans import ERROR, LogView, SpanEvent
from otel_agentrec.journal.facts import Facts, Kind

from .frameworks import HELLO, HI, reading, span, text

SCOPE = "com.anthropic.claude_code.tracing"


def facts(type_: str, attributes: dict[str, Any], **fields: Any) -> Facts:
    return reading(SCOPE, {"span.type": type_, **attributes}, **fields)[1]


def log(name: str, attributes: dict[str, Any], scope: str = "com.anthropic.claude_code.events") -> LogView:
    return LogView("1" * 32, "2" * 16, name, scope=scope, attributes=attributes)


@pytest.mark.parametrize(
    ("told", "expected"), [*sorted(KINDS.items()), ("tool.blocked_on_user", (Kind.STEP, "tool.blocked_on_user"))]
)
def test_the_type_decides(told: str, expected: tuple[str, str]) -> None:
    for fields in ({"attributes": {"span.type": told}}, {"attributes": {}, "name": f"claude_code.{told}"}):
        kind, found = reading(SCOPE, **fields)
        assert (kind, found.operation, found.dialect) == (*expected, "claude-code")


def test_a_request_counts_its_attempts() -> None:
    tokens = {"gen_ai.usage.input_tokens": 140, "input_tokens": 120, "attempt": 3}
    events = tuple(SpanEvent("gen_ai.request.attempt", n, {"attempt": n}) for n in (1, 2, 3))
    told = facts("llm_request", tokens, events=events)
    assert (told.input_tokens, told.retry_count) == (140, 2)
    assert told.attributes == {"input_tokens": 120}
    assert facts("llm_request", {"attempt": 1}, events=events[:1]).retry_count is None


def test_a_tool_has_the_name_that_the_model_calls_it_by() -> None:
    attributes = {"gen_ai.tool.name": "f", "tool_use_id": "c1", "tool_name": "mcp__s__f"}
    output = SpanEvent("tool.output", 1, {"output": "one"})
    told = facts("tool", attributes, events=(output,))
    assert (told.tool_name, told.tool_call_id, told.result) == ("mcp__s__f", "c1", "one")
    assert told.attributes is None
    assert facts("tool", {**attributes, "tool_name": "mcp_tool"}).tool_name == "f"


def test_failures() -> None:
    told = facts("tool.execution", {"success": False, "error": "no ✗"})
    assert (told.status, told.error_message) == ("error", "no ✗")
    told = facts("tool.execution", {"success": False, "error": "no"}, status_code=ERROR, status_message="no ✗")
    assert (told.status, told.error_message) == ("error", "no ✗")


def test_the_prompt_from_the_span_or_its_log_event() -> None:
    assert facts("interaction", {"user_prompt": "hi"}).messages == [HI]
    view = span(SCOPE, {"span.type": "interaction"})
    for event, told in ((log("user_prompt", {"prompt": "hi"}), [HI]), (log("user_prompt", {}, "other"), None)):
        found = read(view, [event])
        assert found is not None
        assert found[1].messages == told


class TestLogEvents:
    def test_an_answer(self) -> None:
        told = claude_code.tell(log("assistant_response", {"response": "hello"}))
        assert told is not None
        assert told.output_messages == [HELLO]

    def test_a_tool(self) -> None:
        told = claude_code.tell(log("tool_result", {"tool_use_id": "c1", "tool_input": '{"a":1}', "success": "true"}))
        assert told is not None
        assert (told.tool_call_id, told.arguments, told.status) == ("c1", '{"a":1}', None)
        failed = {"tool_use_id": "c1", "success": "false", "error": "no ✗", "error_type": "E"}
        told = claude_code.tell(log("tool_result", failed))
        assert told is not None
        assert (told.status, told.error_type, told.error_message) == ("error", "E", "no ✗")

    def test_raw_bodies(self) -> None:
        request = {"model": "m", "system": "be brief", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}
        told = claude_code.tell(log("api_request_body", {"body": text(request)}))
        assert told is not None
        assert (told.messages, told.parameters) == ([HI], {"max_tokens": 9})
        assert told.system_instructions == [{"type": "text", "content": "be brief"}]
        answer = {
            "id": "r1",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}],
            "stop_reason": "tool_use",
        }
        told = claude_code.tell(log("api_response_body", {"body": text(answer)}))
        assert told is not None
        assert (told.calls, told.response_id, told.finish_reasons) == ([{"id": "c1", "name": "f"}], "r1", ["tool_use"])

    @pytest.mark.parametrize(
        "event",
        [
            log("assistant_response", {"response": "hello"}, "another.scope"),
            log("assistant_response", {}),
            log("tool_result", {"success": "true"}),
            log("api_request_body", {"body": '{"messages":[{"ro'}),
            log("api_response_body", {"body": 7}),
            log("api_request", {}),
        ],
    )
    def test_others_tell_nothing(self, event: LogView) -> None:
        assert claude_code.tell(event) is None
