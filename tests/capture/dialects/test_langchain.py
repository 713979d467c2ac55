"""Messages, requests and answers as LangChain serialises them."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import langchain


def constructor(name: str, /, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


CALL = {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}}
LC_CALL = {"name": "f", "args": {"a": 1}, "id": "c1", "type": "tool_call"}


@pytest.mark.parametrize(
    "told",
    [
        constructor("HumanMessage", content="hi", type="human"),
        constructor("HumanMessage", content="hi"),
        {"type": "human", "data": {"content": "hi", "type": "human", "name": None, "id": "1"}},
        {"type": "human", "content": "hi", "additional_kwargs": {}},
    ],
)
def test_the_three_forms_are_one_message(told: Any) -> None:
    assert langchain.message(told) == {"role": "user", "parts": [{"type": "text", "content": "hi"}]}


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("AIMessage", "assistant"),
        ("AIMessageChunk", "assistant"),
        ("SystemMessage", "system"),
        ("FunctionMessage", "tool"),
    ],
)
def test_roles_by_class(name: str, role: str) -> None:
    told = langchain.message(constructor(name, content=""))
    assert told == {"role": role, "parts": []}
    assert langchain.message({"type": name, "content": ""}) == told


def test_the_role_of_a_chat_message_is_its_own() -> None:
    assert langchain.message({"type": "chat", "role": "assistant", "content": ""}) == {"role": "assistant", "parts": []}


def test_an_answer_with_reasoning_text_and_calls() -> None:
    told = constructor(
        "AIMessage",
        content="hello",
        name="planner",
        additional_kwargs={"reasoning_content": "hm"},
        tool_calls=[LC_CALL],
        invalid_tool_calls=[{"name": "g", "args": "{cut", "id": "c2", "error": "…"}],
    )
    assert langchain.message(told) == {
        "role": "assistant",
        "name": "planner",
        "parts": [
            {"type": "reasoning", "content": "hm"},
            {"type": "text", "content": "hello"},
            CALL,
            {"type": "tool_call", "id": "c2", "name": "g", "arguments": "{cut"},
        ],
    }


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {}, "partial_json": '{"a": 1}', "index": 1},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
    ],
)
def test_a_call_among_the_blocks_and_beside_them_is_one(block: Any) -> None:
    told = constructor(
        "AIMessage", content=[block, {"type": "text", "text": "hello", "index": 0}], tool_calls=[LC_CALL]
    )
    assert langchain.message(told)["parts"] == [CALL, {"type": "text", "content": "hello"}]


def test_calls_without_ids_are_all_told() -> None:
    told = constructor("AIMessage", content="", tool_calls=[{"name": "f", "args": {}}, {"name": "f", "args": {}}])
    assert langchain.message(told)["parts"] == [{"type": "tool_call", "name": "f", "arguments": {}}] * 2


def test_a_result_of_a_tool() -> None:
    told = {"type": "tool", "data": {"content": "1", "tool_call_id": "c1", "name": "f", "status": "success"}}
    part = {"type": "tool_call_response", "id": "c1", "response": "1"}
    assert langchain.message(told) == {"role": "tool", "name": "f", "parts": [part]}
    found = langchain.tool_message({"graph": None, "update": {"messages": [told]}})
    assert found is not None
    assert found["content"] == "1"
    assert langchain.tool_message({"type": "ai", "content": "1"}) is None
    assert langchain.tool_message({"update": {"messages": [told, told]}}) is None


def test_a_request() -> None:
    hi = constructor("HumanMessage", content="hi")
    got = langchain.asked({"messages": [[hi], [hi]]})
    assert got is not None
    assert len(got.messages) == 2
    got = langchain.asked({"prompts": ["hi"]})
    assert got is not None
    assert got.messages == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    for other in (
        None,
        {},
        {"messages": []},
        {"messages": [[]]},
        {"messages": [{"role": "user", "content": "hi"}]},
        {"prompts": [1]},
    ):
        assert langchain.asked(other) is None


@pytest.mark.parametrize(
    "told",
    [
        {
            "generations": [
                [
                    {
                        "text": "hello",
                        "generation_info": {"finish_reason": "stop"},
                        "message": constructor(
                            "AIMessage", content="hello", response_metadata={"id": "r1", "model_name": "m"}
                        ),
                    }
                ]
            ],
            "llm_output": None,
        },
        {
            "generations": [[{"text": "hello", "generationInfo": {"finish_reason": "stop"}}]],
            "llmOutput": {"id": "r1", "model": "m"},
        },
    ],
)
def test_answers(told: Any) -> None:
    got = langchain.said(told)
    assert got is not None
    assert got.messages == [{"role": "assistant", "parts": [{"type": "text", "content": "hello"}]}]
    assert (got.finish_reasons, got.response_id, got.model, got.raw) == (["stop"], "r1", "m", None)


@pytest.mark.parametrize(("calls", "reason"), [([], "stop"), ([LC_CALL], "tool_calls")])
def test_the_responses_api_tells_that_it_completed_but_not_why(calls: Any, reason: str) -> None:
    told = constructor("AIMessage", content="", tool_calls=calls, response_metadata={"status": "completed"})
    got = langchain.said({"generations": [[{"text": "", "message": told}]]})
    assert got is not None
    assert got.finish_reasons == [reason]


@pytest.mark.parametrize("value", [None, [], {}, {"generations": "x"}, {"type": "message", "content": "hi"}])
def test_other_shapes(value: Any) -> None:
    assert langchain.said(value) is None
    assert langchain.message(value) is None
    assert langchain.listed([value]) is None
