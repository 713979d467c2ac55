"""The seed's plain types: they survive JSON, and a prompt is found again in what was recorded of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agentrec
from otel_agentrec.prompts import (
    AgentModelChunk,
    AgentModelResult,
    AgentPrompt,
    AgentToolCall,
    AgentToolResult,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TEXT = st.none() | st.text(max_size=8)
PROMPTS = st.builds(
    AgentPrompt,
    model=TEXT,
    items=st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.text()})),
    system_prompt=TEXT,
    instructions=TEXT,
    tools=st.none() | st.lists(st.fixed_dictionaries({"name": st.text(max_size=5)}), min_size=1, max_size=2),
    tool_choice=st.none() | st.sampled_from(["auto", "required"]),
    parallel_tool_calls=st.none() | st.booleans(),
    temperature=st.none() | st.floats(0, 2),
    max_output_tokens=st.none() | st.integers(1, 10_000),
    reasoning=st.none() | st.just({"effort": "low"}),
    stream=st.none() | st.booleans(),
    extra_body=st.none() | st.dictionaries(st.text(max_size=5), JSON, min_size=1, max_size=2),
)


@given(PROMPTS)
def test_a_prompt_comes_back_from_its_json(prompt: AgentPrompt) -> None:
    on_disk = json.loads(json.dumps(prompt.to_json()))
    assert AgentPrompt.from_json(on_disk) == prompt
    assert AgentPrompt.from_inputs(on_disk) == prompt


@given(JSON.filter(lambda v: v is not None), st.lists(st.builds(AgentToolCall, st.text(), JSON, TEXT), max_size=2))
def test_a_result_comes_back_from_its_json(raw: Any, calls: list[AgentToolCall]) -> None:
    chunks = [AgentModelChunk("text", "a"), AgentModelChunk("tool_call", "{}", 0, "f", "c1", replayed=True)]
    for held in (None, chunks):
        result = AgentModelResult("a", raw, calls, "why", {"input": 1}, ["stop"], [{"role": "assistant"}], held)
        assert AgentModelResult.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_json_has_the_keys_of_the_seed_and_leaves_out_what_is_absent() -> None:
    prompt = AgentPrompt("m", "Hello", system_prompt="Be brief.", max_output_tokens=5)
    assert prompt.to_json() == {
        "model": "m",
        "items": [{"role": "user", "content": "Hello"}],
        "systemPrompt": "Be brief.",
        "maxOutputTokens": 5,
    }
    assert AgentToolResult("f", "c1", 1).to_json() == {"name": "f", "callId": "c1", "output": 1}


def test_a_prompt_is_found_in_the_inputs_of_a_record() -> None:
    inputs = {
        "model": "m",
        "messages": [{"role": "user", "parts": [{"type": "text", "content": "Hello"}]}],
        "systemInstructions": [{"type": "text", "content": "Be brief."}, {"type": "text", "content": "In French."}],
        "tools": [{"type": "function", "name": "f", "parameters": {}}],
        "parameters": {
            "temperature": 0,
            "max_tokens": 9,
            "stop_sequences": ["."],
            "choice.count": 2,
            "encoding.formats": ["float"],
            "tool_choice": "auto",
            "extra_body": {"seed": 1},
        },
    }
    assert AgentPrompt.from_inputs(inputs) == AgentPrompt(
        "m",
        inputs["messages"],
        system_prompt="Be brief.",
        instructions="In French.",
        tools=inputs["tools"],
        tool_choice="auto",
        temperature=0,
        max_output_tokens=9,
        extra_body={"stop_sequences": ["."], "n": 2, "seed": 1},
    )


def test_instructions_that_are_more_than_text_stay_parts() -> None:
    parts = [{"type": "text", "content": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert AgentPrompt.from_inputs({"messages": [], "systemInstructions": parts}).system_prompt == parts


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        (None, "no AgentPrompt but NoneType"),
        ({"name": "f", "arguments": {}, "callId": None}, "neither items nor messages"),
        ({"model": "m", "messages": None}, "neither items nor messages"),
        ({"messages": [{"role": "user", "parts": [{"type": "text", "content": {"$cut": {"bytes": 9}}}]}]}, r"\$cut"),
        ({"messages": [{"$erased": {"bytes": 9}}]}, r"\$erased"),
    ],
)
def test_what_holds_no_whole_prompt_is_refused(inputs: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        AgentPrompt.from_inputs(inputs)


@pytest.mark.parametrize(
    ("given", "parsed"), [('{"a": 1}', {"a": 1}), ("", {}), (None, {}), ({"a": 1}, {"a": 1}), ("{not", "{not")]
)
def test_arguments_are_parsed(given: Any, parsed: Any) -> None:
    assert AgentToolCall("f", given).parsed == parsed


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        (AgentToolResult("f", output="fine"), False),
        (AgentToolResult("f", output=None), False),
        (AgentToolResult("f", ok=True, error=" "), False),
        (AgentToolResult("f", ok=False), True),
        (AgentToolResult("f", error="no such city"), True),
        (AgentToolResult("f", output="TOOL_ERROR: no such city"), True),
    ],
)
def test_when_a_tool_has_failed(result: AgentToolResult, failed: bool) -> None:
    assert result.failed is failed


def test_what_a_tool_gave_is_a_message_for_the_next_prompt() -> None:
    assert AgentToolResult("f", "c1", {"a": 1}).to_item() == {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "c1", "response": {"a": 1}}],
    }
    assert AgentToolResult("f", "c1", error="no").to_item()["parts"][0]["response"] == "no"


@pytest.mark.parametrize("name", ["AgentPrompt", "AgentModelResult", "AgentToolCall", "AgentToolResult", "ModelClient"])
def test_the_types_stand_on_the_public_face(name: str) -> None:
    assert getattr(otel_agentrec, name).__name__ == name
