"""The older telemetry of the Vercel AI SDK, and its messages."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import aisdk, scope_verdict
from otel_agentrec.capture.spans import ERROR
from otel_agentrec.journal.facts import Facts, Kind, RawList

from .frameworks import HELLO, HI, THROWN, reading, text


def facts(operation: str, attributes: dict[str, Any], **fields: Any) -> Facts:
    return reading("ai", {"ai.operationId": operation, **attributes}, **fields)[1]


def model(attributes: dict[str, Any], **fields: Any) -> Facts:
    return facts("ai.generateText.doGenerate", attributes, **fields)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("ai.generateText", (Kind.AGENT, "invoke_agent")),
        ("ai.streamObject", (Kind.AGENT, "invoke_agent")),
        ("ai.generateText.doGenerate", (Kind.MODEL, "chat")),
        ("ai.streamObject.doStream", (Kind.MODEL, "chat")),
        ("ai.toolCall", (Kind.TOOL, "execute_tool")),
        ("ai.embedMany.doEmbed", (Kind.STEP, "embeddings")),
        ("ai.rerank.doRerank", (Kind.STEP, "rerank")),
    ],
)
def test_the_operation_decides(operation: str, expected: tuple[str, str]) -> None:
    kind, told = reading("another.scope", {"ai.operationId": operation})
    assert (kind, told.operation) == expected


def test_its_scope_is_known() -> None:
    assert scope_verdict("ai") == "agent"


def test_a_model_call() -> None:
    told = model(
        {
            "ai.model.id": "m",
            "ai.model.provider": "openai.chat",
            "gen_ai.system": "openai.chat",
            "ai.prompt.messages": text([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]),
            "ai.prompt.tools": [text({"type": "function", "name": "f", "inputSchema": {"type": "object"}})],
            "ai.prompt.toolChoice": '{"type":"auto"}',
            "ai.settings.maxRetries": 2,
            "ai.response.text": "hello",
            "ai.response.reasoning": "hm",
            "ai.response.toolCalls": text([{"toolCallId": "c1", "toolName": "f", "input": {"a": 1}}]),
            "ai.response.finishReason": "tool-calls",
            "ai.response.id": "r1",
            "ai.response.model": "m-2",
            "ai.usage.inputTokens": 9,
            "ai.usage.outputTokens": "3",
            "ai.telemetry.metadata.sessionId": "s1",
        }
    )
    assert (told.provider, told.model, told.response_model, told.response_id) == ("openai", "m", "m-2", "r1")
    assert told.messages == [HI]
    assert told.output_messages == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm"},
                {"type": "text", "content": "hello"},
                {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
            ],
        }
    ]
    assert (told.calls, told.finish_reasons) == ([{"id": "c1", "name": "f"}], ["tool-calls"])
    assert (told.input_tokens, told.output_tokens, told.session_id) == (9, 3, "s1")
    assert told.tools == [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    assert told.parameters == {"maxRetries": 2, "tool_choice": {"type": "auto"}}
    assert (told.streamed, told.status, told.attributes) == (False, None, None)


def test_an_agent_has_a_name_and_the_prompt() -> None:
    prompt = {"system": "be brief", "messages": [{"role": "user", "content": "hi"}]}
    told = facts(
        "ai.generateText",
        {"ai.prompt": text(prompt), "ai.response.text": "hello", "ai.telemetry.functionId": "planner"},
    )
    assert told.agent_name == "planner"
    assert (told.messages, told.system_instructions) == ([HI], [{"type": "text", "content": "be brief"}])
    assert told.output_messages == [HELLO]
    assert facts("ai.generateText", {"ai.prompt": '{"prompt":"hi"}'}).messages == [HI]


def test_a_tool_call() -> None:
    told = facts("ai.toolCall", {"ai.toolCall.name": "f", "ai.toolCall.id": "c1", "ai.toolCall.args": '{"a":1}'})
    assert (told.tool_name, told.tool_call_id, told.arguments, told.result) == ("f", "c1", '{"a":1}', None)
    failed = facts("ai.toolCall", {}, status_code=ERROR, status_message="Error: no", events=(THROWN,))
    assert (failed.status, failed.error_type, failed.error_message) == ("error", "ValueError", "no ✗")


def test_a_stream_without_an_end_is_partial() -> None:
    assert facts("ai.streamText.doStream", {"ai.response.text": "hel"}).status == "partial"
    ended = facts("ai.streamText.doStream", {"ai.response.text": "hello", "ai.response.finishReason": "stop"})
    assert (ended.status, ended.streamed) == (None, True)


def test_what_was_cut_stays_text() -> None:
    told = model({"ai.prompt.messages": '[{"role":"user","con', "ai.response.toolCalls": '[{"toolCallId":"c1'})
    assert isinstance(told.messages, RawList)
    assert told.flags == ["input_truncated", "output_truncated"]
    assert told.attributes == {"ai.response.toolCalls": '[{"toolCallId":"c1'}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            {"type": "tool-call", "toolCallId": "c", "toolName": "f", "args": {}},
            {"type": "tool_call", "id": "c", "name": "f", "arguments": {}},
        ),
        (
            {"type": "tool-result", "toolCallId": "c", "toolName": "f", "output": {"type": "json", "value": [1]}},
            {"type": "tool_call_response", "id": "c", "name": "f", "response": [1]},
        ),
        (
            {"type": "tool-result", "toolCallId": "c", "result": 1},
            {"type": "tool_call_response", "id": "c", "response": 1},
        ),
        (
            {"type": "file", "data": "QQ==", "mediaType": "image/png", "filename": "a.png"},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "QQ==", "filename": "a.png"},
        ),
        ({"type": "image", "image": "https://x/y"}, {"type": "uri", "modality": "image", "uri": "https://x/y"}),
        ({"type": "reasoning", "text": "hm"}, {"type": "reasoning", "content": "hm"}),
        ({"type": "file", "data": {"0": 1}}, {"type": "file", "data": {"0": 1}}),
    ],
)
def test_its_parts(part: Any, expected: Any) -> None:
    assert aisdk.listed([{"role": "user", "content": [part]}]) == [{"role": "user", "parts": [expected]}]


@pytest.mark.parametrize("value", [None, "hi", [], ["hi"], [{"content": "hi"}]])
def test_what_is_no_list_of_messages(value: Any) -> None:
    assert aisdk.listed(value) is None
