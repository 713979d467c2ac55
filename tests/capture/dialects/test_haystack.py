"""Haystack's spans and messages."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import haystack
from otel_agentrec.capture.dialects.haystack import KINDS
from otel_agentrec.journal.facts import Facts, Kind

from .frameworks import HELLO, HI, reading, text


def facts(name: str, attributes: dict[str, Any]) -> Facts:
    return reading("haystack", attributes, name=name)[1]


@pytest.mark.parametrize(("name", "expected"), [*sorted(KINDS.items()), ("haystack.x", (Kind.STEP, "x"))])
def test_the_name_decides(name: str, expected: tuple[str, str]) -> None:
    kind, told = reading("another", {}, name=name)
    assert (kind, told.operation) == expected


META = {"model": "m-2", "finish_reason": "stop", "usage": {"prompt_tokens": 9, "completion_tokens": 3}}


def test_a_model_call() -> None:
    told = facts(
        "haystack.agent.step.llm",
        {
            "haystack.agent.step.llm.input": text(
                {"messages": [{"role": "user", "content": [{"text": "hi"}], "meta": {}}], "tools": [{"name": "f"}]}
            ),
            "haystack.agent.step.llm.output": text(
                {"replies": [{"role": "assistant", "content": [{"text": "hello"}], "meta": META}]}
            ),
        },
    )
    assert (told.messages, told.output_messages, told.calls) == ([HI], [HELLO], [])
    assert (told.response_model, told.finish_reasons) == ("m-2", ["stop"])
    assert (told.input_tokens, told.output_tokens, told.tools) == (9, 3, [{"name": "f"}])
    assert told.attributes is None


@pytest.mark.parametrize(
    ("component", "asked", "replies", "metas"),
    [
        ("OpenAIChatGenerator", {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}, None, None),
        ("AnthropicChatGenerator", {"messages": "hi", "tools": None}, None, None),
        ("OpenAIGenerator", {"prompt": "hi", "generation_kwargs": None}, ["hello"], [META]),
    ],
)
def test_a_model_call_of_a_pipeline(component: str, asked: Any, replies: Any, metas: Any) -> None:
    replies = replies or [{"role": "assistant", "content": [{"text": "hello"}], "meta": META}]
    kind, told = reading(
        "haystack",
        {
            "haystack.component.name": "llm",
            "haystack.component.type": component,
            "haystack.component.input": text(asked),
            "haystack.component.output": text({"replies": replies, "meta": metas}),
        },
        name="haystack.component.run",
    )
    assert (kind, told.messages, told.output_messages, told.calls) == (Kind.MODEL, [HI], [HELLO], [])
    assert (told.response_model, told.finish_reasons, told.input_tokens, told.output_tokens) == ("m-2", ["stop"], 9, 3)
    assert told.attributes == {"haystack.component.name": "llm", "haystack.component.type": component}


PRINTED = """{'messages': [ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[TextContent(text='hi')], _name=None, _meta={}), \
ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[ReasoningContent(reasoning_text='hm', extra={}), \
ToolCall(tool_name='f', arguments={'a': 1}, id='c1', extra=None)], _name=None, _meta={}), \
ChatMessage(_role=<ChatRole.TOOL: 'tool'>, _content=[ToolCallResult(result='one', origin=ToolCall(tool_name='f', \
arguments={'a': 1}, id='c1', extra=None), error=False)], _name=None, _meta={})], \
'streaming_callback': <function show at 0x7f7e214ff100>, \
'tools': [Tool(name='f', description='d', parameters={'type': 'object'}, function=<function f at 0x7f7e3316f4c0>)]}"""


def test_the_request_of_a_stream_is_told_as_python_prints_it() -> None:
    told = facts("haystack.agent.step.llm", {"haystack.agent.step.llm.input": PRINTED})
    call = {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}}
    assert told.messages == [
        HI,
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, call]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "name": "f", "response": "one"}]},
    ]
    assert told.tools == [{"name": "f", "description": "d", "parameters": {"type": "object"}}]
    assert told.flags == []
    cut = facts("haystack.agent.step.llm", {"haystack.agent.step.llm.input": PRINTED[:-9]})
    assert (cut.messages, cut.attributes) == (None, {"haystack.agent.step.llm.input": PRINTED[:-9]})


@pytest.mark.parametrize("component", ["PromptBuilder", "OpenAIImageGenerator", "Agent", None, 7])
def test_other_components_are_steps(component: Any) -> None:
    kind, told = reading("haystack", {"haystack.component.type": component}, name="haystack.component.run")
    assert (kind, told.operation) == (Kind.STEP, "component.run")


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            {"tool_call": {"id": "c1", "tool_name": "f", "arguments": {"a": 1}}},
            {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
        ),
        (
            {"tool_call_result": {"result": "one", "error": False, "origin": {"id": "c1", "tool_name": "f"}}},
            {"type": "tool_call_response", "id": "c1", "name": "f", "response": "one"},
        ),
        ({"reasoning": {"reasoning_text": "hm"}}, {"type": "reasoning", "content": "hm"}),
        ({"image": {"base64_image": "QQ=="}}, {"type": "image", "base64_image": "QQ=="}),
    ],
)
def test_blocks(block: Any, expected: Any) -> None:
    assert haystack.message({"role": "x", "content": [block]}) == {"role": "x", "parts": [expected]}
    assert haystack.message({"_role": "x", "_content": [block]}) == {"role": "x", "parts": [expected]}


@pytest.mark.parametrize("value", [None, "hi", {}, {"role": "user"}, {"role": "user", "content": "hi"}])
def test_what_is_no_message(value: Any) -> None:
    assert haystack.message(value) is None


@pytest.mark.parametrize("start", ["haystack.agent.step.tool.", "haystack.tool."])
def test_a_tool_tells_its_failure_only_itself(start: str) -> None:
    told = facts(
        "haystack.agent.step.tool", {"haystack.tool.name": "f", f"{start}input": '{"a":1}', f"{start}output": "no ✗"}
    )
    assert (told.tool_name, told.arguments, told.result, told.status) == ("f", '{"a":1}', "no ✗", None)
    for output in ("no ✗", '{"error": "no ✗"}'):
        told = facts("haystack.agent.step.tool", {f"{start}output": output, "haystack.tool.error": True})
        assert (told.status, told.error_message, told.attributes) == ("error", "no ✗", None)
