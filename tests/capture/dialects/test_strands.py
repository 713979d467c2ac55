"""Strands Agents: the GenAI conventions with Bedrock's content blocks."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import bedrock, strands
from otel_agentrec.capture.spans import SpanEvent

from .frameworks import HELLO, HI, reading, text

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.system": "strands-agents"}


def test_messages_in_events_and_no_provider() -> None:
    events = (
        SpanEvent("gen_ai.user.message", 1, {"content": text([{"text": "hi"}])}),
        SpanEvent("gen_ai.choice", 2, {"message": text([{"text": "hello"}]), "finish_reason": "end_turn"}),
    )
    _, told = reading(strands.SCOPE, CHAT, events=events)
    assert (told.dialect, told.provider) == ("strands", None)
    assert (told.messages, told.output_messages, told.finish_reasons) == ([HI], [HELLO], ["end_turn"])


def test_a_tool_that_failed_tells_it_by_its_own_status() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": text([{"text": "Error: no"}])}
    assert reading(strands.SCOPE, {**tool, "gen_ai.tool.status": "success"})[1].status is None
    _, told = reading(strands.SCOPE, {**tool, "gen_ai.tool.status": "error"})
    assert (told.status, told.result, told.error_message) == ("error", "Error: no", "Error: no")


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([{"text": "21°"}], "21°"),
        ([{"json": {"t": 21}}], {"t": 21}),
        ([{"text": "a"}, {"text": "b"}], [{"text": "a"}, {"text": "b"}]),
        ([{"image": {}}], [{"image": {}}]),
        ("plain", "plain"),
        (None, None),
    ],
)
def test_blocks_of_a_result(blocks: Any, expected: Any) -> None:
    assert bedrock.result(blocks) == expected
    if isinstance(blocks, list):
        told = bedrock.result(text(blocks))
        assert told == (expected if expected != blocks else text(blocks))
