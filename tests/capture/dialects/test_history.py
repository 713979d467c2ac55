"""A chat history inside the text of a request stays text where each message is read for itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agentrec.capture.dialects import history, raw
from otel_agentrec.journal.facts import RawList

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "1"},
] * 4
BLOCKS = [
    {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image", "source": {"type": "new"}}]}
] * 12
SYSTEM = [{"role": "system", "content": "Be brief."}]


@pytest.mark.parametrize(
    "request_",
    [
        {"model": "m", "messages": CHAT, "temperature": 1, "stream": True},
        {"messages": [*SYSTEM, *CHAT], "model": "m", "tools": [{"type": "function", "function": {"name": "f"}}]},
        {"model": "m", "system": "Be brief.", "messages": BLOCKS, "max_tokens": 5},
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_it_tells_what_the_parsed_request_tells(request_: dict[str, Any], indent: int | None) -> None:
    got, parsed = history.asked(json.dumps(request_, indent=indent)), raw.asked(request_)
    assert got is not None
    assert parsed is not None
    assert isinstance(got.messages, RawList)
    assert [got.messages.element(m) for m in json.loads(got.messages.text)] == parsed.messages
    assert (got.instructions, got.tools, got.model) == (parsed.instructions, parsed.tools, parsed.model)
    assert (got.streamed, got.parameters) == (parsed.streamed, parsed.parameters)
    assert got.has_instructions() == parsed.has_instructions()


@pytest.mark.parametrize(
    "value",
    [
        None,
        "hi",
        "[1]",
        '{"messages": [',
        json.dumps({"messages": CHAT[:8]}),
        json.dumps({"messages": ["text"] * 12}),
        json.dumps({"messages": [[m] for m in CHAT]}),
        json.dumps({"messages": [{"type": "human", "role": "user", "content": "hi"}] * 12}),
        json.dumps({"messages": [{"role": "user", "content": [{"text": "of another API"}]}] * 12}),
        json.dumps({"input": CHAT}),
    ],
)
def test_everything_else_is_left_to_others(value: Any) -> None:
    assert history.asked(value) is None
