"""LangSmith's OTel export of LangChain and LangGraph."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects.langsmith import KINDS
from otel_agentrec.capture.spans import OK, SpanEvent
from otel_agentrec.journal.facts import Facts, Kind, RawList

from .frameworks import HELLO, HI, reading, text


def constructor(name: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


ASKED = text({"messages": [[constructor("HumanMessage", {"content": "hi", "type": "human"})]]})
META = {"model_name": "m-2", "finish_reason": "stop", "id": "r1"}
SAID = text(
    {
        "generations": [
            [{"text": "hello", "message": constructor("AIMessage", {"content": "hello", "response_metadata": META})}]
        ]
    }
)
RESULT = {"type": "tool", "content": "21°", "tool_call_id": "c1", "status": "success"}


def facts(kind: str, attributes: dict[str, Any], **fields: Any) -> Facts:
    return reading("langsmith", {"langsmith.span.kind": kind, **attributes}, **fields)[1]


@pytest.mark.parametrize(("told", "expected"), sorted(KINDS.items()))
def test_the_kind_decides(told: str, expected: tuple[str, str]) -> None:
    kind, read = reading("another", {"langsmith.span.kind": told, "gen_ai.usage.output_tokens": 3})
    assert (kind, read.operation, read.dialect) == (*expected, "langsmith")


def test_graphs_are_agents_and_their_nodes_are_steps() -> None:
    chain = {"langsmith.span.kind": "chain", "langsmith.metadata.lc_agent_name": "planner"}
    assert reading("langsmith", chain, name="model")[0] == Kind.STEP
    for fields in ({"name": "planner"}, {"name": "top", "parent_span_id": None}):
        kind, told = reading("langsmith", chain, **fields)
        assert (kind, told.operation, told.agent_name) == (Kind.AGENT, "invoke_agent", "planner")


def test_a_model_call() -> None:
    told = facts(
        "llm",
        {
            "gen_ai.system": "openai",
            "gen_ai.request.model": "m",
            "gen_ai.prompt": ASKED,
            "gen_ai.completion": SAID,
            "gen_ai.usage.input_tokens": 9,
            "gen_ai.usage.output_tokens": 3,
            "langsmith.metadata.usage_metadata": text(
                {"input_tokens": 9, "output_tokens": 3, "input_token_details": {"cache_read": 4}}
            ),
            "langsmith.metadata.thread_id": "s1",
        },
    )
    assert (told.messages, told.output_messages) == ([HI], [HELLO])
    assert (told.model, told.response_model, told.response_id, told.finish_reasons) == ("m", "m-2", "r1", ["stop"])
    assert (told.input_tokens, told.output_tokens, told.cache_read_tokens) == (9, 3, 4)
    assert (told.provider, told.session_id, told.attributes) == ("openai", "s1", None)


def test_no_input_tokens_means_that_they_were_not_told() -> None:
    told = facts("llm", {"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 3})
    assert (told.input_tokens, told.output_tokens) == (None, 3)


@pytest.mark.parametrize(
    ("completion", "result"),
    [({"output": RESULT}, "21°"), ({"output": {"a": 1}}, {"a": 1}), ({}, None), ({"a": 1}, '{"a": 1}')],
)
def test_results_of_tools(completion: Any, result: Any) -> None:
    told = facts("tool", {"gen_ai.prompt": '{"a":1}', "gen_ai.completion": text(completion)}, name="f")
    assert (told.tool_name, told.arguments, told.result, told.provider) == ("f", '{"a":1}', result, None)


def test_a_result_may_say_that_it_is_an_error() -> None:
    told = facts("tool", {"gen_ai.completion": text({"output": {**RESULT, "status": "error"}})})
    assert (told.status, told.error_message, told.tool_call_id) == ("error", "21°", "c1")


def test_an_exception_is_a_failure_although_the_status_is_ok() -> None:
    message = "BadRequestError('no ✗')Traceback (most recent call last):\n  File …"
    thrown = SpanEvent("exception", 1, {"exception.type": "Exception", "exception.message": message})
    told = facts("llm", {"gen_ai.prompt": ASKED}, events=(thrown,), status_code=OK)
    assert (told.status, told.error_type, told.error_message) == ("error", "BadRequestError", "BadRequestError('no ✗')")
    assert told.messages == [HI]


def test_the_state_of_a_graph() -> None:
    state = text({"messages": [{"type": "human", "content": "hi"}]})
    told = facts("chain", {"gen_ai.prompt": state, "gen_ai.completion": '{"count":1}'})
    assert (told.messages, told.output_messages) == ([HI], None)
    assert told.attributes == {"gen_ai.completion": '{"count":1}'}


def test_what_was_cut_or_has_another_shape_is_kept() -> None:
    told = facts("llm", {"gen_ai.prompt": '{"messages":[[', "gen_ai.completion": '{"x":1}'})
    assert isinstance(told.messages, RawList)
    assert (told.flags, told.attributes) == (["input_truncated"], {"gen_ai.completion": '{"x":1}'})
