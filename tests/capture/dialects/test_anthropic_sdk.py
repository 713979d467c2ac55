"""The spans that Anthropic's SDK makes of itself."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import read, scope_verdict
from otel_agentrec.capture.dialects.anthropic_sdk import SCOPE
from otel_agentrec.capture.spans import ERROR, SpanView
from otel_agentrec.journal.facts import Facts, Kind

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f", "gen_ai.tool.call.id": "c1"}


def facts(attributes: dict[str, Any], **fields: Any) -> Facts:
    base = SpanView("1" * 32, "2" * 16, None, "anthropic.messages.create", 3, SCOPE, "2.14.0", 1, 2)
    reading = read(base._replace(attributes=attributes, **fields))
    assert reading is not None
    return reading[1]


def test_a_call() -> None:
    told = facts(
        {
            **CHAT,
            "anthropic.message.stop_reason": "end_turn",
            "anthropic.thinking.type": "enabled",
            "anthropic.thinking.budget_tokens": 1024,
            "http.request.resend_count": 1,
            "anthropic.request.id": "req_1",
        }
    )
    assert (told.dialect, told.provider, told.finish_reasons) == ("anthropic-sdk", "anthropic", ["end_turn"])
    assert told.parameters == {"thinking.type": "enabled", "thinking.budget_tokens": 1024}
    assert told.retry_count == 1
    assert told.attributes == {"anthropic.request.id": "req_1"}


def test_a_call_that_failed_has_no_message() -> None:
    told = facts({**CHAT, "error.type": "api_error"}, status_code=ERROR)
    assert (told.status, told.error_type, told.error_message) == ("error", "api_error", None)


@pytest.mark.parametrize(
    ("content", "result"),
    [
        ('[{"type":"text","text":"北京"}]', "北京"),
        ([{"type": "text", "text": "7"}], "7"),
        (
            '[{"type":"text","text":"a"},{"type":"text","text":"b"}]',
            '[{"type":"text","text":"a"},{"type":"text","text":"b"}]',
        ),
        ('[{"type":"image","source":{}}]', '[{"type":"image","source":{}}]'),
        ("[]", "[]"),
        ("plain", "plain"),
    ],
)
def test_the_result_of_a_tool_runner(content: Any, result: Any) -> None:
    told = facts({**TOOL, "anthropic.tool_result.content": content})
    assert (told.tool_name, told.tool_call_id, told.result) == ("f", "c1", result)


def test_every_span_is_a_step() -> None:
    reading = read(SpanView("1" * 32, "2" * 16, None, "anthropic.something", scope=SCOPE))
    assert reading is not None
    assert reading[0] == Kind.STEP
    assert scope_verdict(SCOPE) == "agent"
