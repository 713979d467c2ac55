"""Google's ADK: what is particular to its telemetry."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import google_adk
from otel_agentrec.journal.facts import Kind

from .frameworks import reading


def text(*parts: str) -> dict[str, Any]:
    return {"role": "assistant", "parts": [{"type": "text", "content": part} for part in parts]}


def call(call_id: str | None = "c1", arguments: Any = "{}", name: str = "f") -> dict[str, Any]:
    part = {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}
    return {"role": "assistant", "parts": [{key: value for key, value in part.items() if value is not None}]}


CALL = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": "{}"}]}


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ([text("It "), text("rains."), text("It rains.")], [text("It rains.")]),
        ([text("It "), text("rains."), text("It ", "rains.")], [text("It ", "rains.")]),
        ([text("It rains."), text("It rains.")], [text("It rains."), text("It rains.")]),
        ([text("It "), CALL, text("It ")], [text("It "), CALL, text("It ")]),
        ([CALL, CALL, CALL], [CALL]),
        ([call(None, None), call("begun", None), CALL], [CALL]),
        ([text("It "), call(None, None), text("It ")], [text("It "), call(None, None), text("It ")]),
        ([call(None, None, "g"), CALL, CALL], [call(None, None, "g"), CALL, CALL]),
        ([text("one"), text("two"), text("three")], [text("one"), text("two"), text("three")]),
    ],
)
def test_a_streamed_answer_is_told_once(told: list[Any], kept: list[Any]) -> None:
    assert google_adk._without_pieces(told) == kept


def test_what_it_writes_where_a_tool_raised_is_no_id_and_no_result() -> None:
    kind, facts = reading(
        google_adk.SCOPE,
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "f",
            "gen_ai.tool.call.id": "<not specified>",
            "gen_ai.tool.call.arguments": '{"a": 1}',
            "gcp.vertex.agent.tool_response": '{"result": "<not specified>"}',
            "error.type": "ValueError",
        },
    )
    assert (kind, facts.tool_name, facts.tool_call_id, facts.result) == (Kind.TOOL, "f", None, None)
    assert (facts.arguments, facts.status) == ('{"a": 1}', "error")


@pytest.mark.parametrize(("told", "provider"), [("gcp.vertex.agent", None), ("openai", "openai")])
def test_the_framework_is_no_provider(told: str, provider: str | None) -> None:
    _, facts = reading(google_adk.SCOPE, {"gen_ai.operation.name": "generate_content", "gen_ai.system": told})
    assert facts.provider == provider
