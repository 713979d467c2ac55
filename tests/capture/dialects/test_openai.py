"""Requests and answers of OpenAI's APIs."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import openai

HI = {"role": "user", "parts": [{"type": "text", "content": "hi"}]}
HELLO = {"role": "assistant", "parts": [{"type": "text", "content": "hello"}]}
CALL = {"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"a": 1}'}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
ITEM_CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "f",
    "arguments": '{"a": 1}',
    "status": "completed",
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
TOLD = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "hello", "annotations": [], "logprobs": []}],
}


class TestRequests:
    def test_of_the_chat_api(self) -> None:
        got = openai.asked(
            {
                "model": "m",
                "stream": True,
                "messages": [
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
                    {"role": "tool", "tool_call_id": "c1", "content": "1"},
                ],
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
                "max_completion_tokens": 5,
                "stop": "END",
                "temperature": None,
                "user": "u",
            }
        )
        assert got is not None
        result = {"type": "tool_call_response", "id": "c1", "response": "1"}
        assert got.messages == [HI, {"role": "assistant", "parts": [CALL]}, {"role": "tool", "parts": [result]}]
        assert (got.model, got.streamed, got.instructions) == ("m", True, None)
        assert got.tools == [{"type": "function", "name": "f", "parameters": {}}]
        assert got.parameters == {"max_tokens": 5, "stop_sequences": ["END"], "user": "u"}

    def test_of_responses(self) -> None:
        got = openai.asked(
            {
                "model": "m",
                "instructions": "Be brief.",
                "previous_response_id": "r0",
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                    THOUGHT,
                    ITEM_CALL,
                    {**ITEM_CALL, "call_id": "c2"},
                    {"type": "function_call_output", "call_id": "c1", "output": "1"},
                ],
            }
        )
        assert got is not None
        assert got.messages == [
            HI,
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}]},
            {"role": "assistant", "parts": [CALL, {**CALL, "id": "c2"}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "1"}]},
        ]
        assert got.instructions == [{"type": "text", "content": "Be brief."}]
        assert got.parameters == {"previous_response_id": "r0"}

    @pytest.mark.parametrize("request_", [{"model": "m", "input": "hi"}, {"model": "m", "prompt": "hi"}])
    def test_a_text_is_what_the_user_says(self, request_: Any) -> None:
        got = openai.asked(request_)
        assert got is not None
        assert got.messages == [HI]

    @pytest.mark.parametrize(
        "value",
        [
            None,
            "hi",
            [],
            {},
            {"messages": "hi"},
            {"messages": [1]},
            {"messages": [{"content": "no role"}]},
            {"messages": [{"role": "user", "content": [{"text": "a block of another API"}]}]},
            {"prompt": "of anything"},
        ],
    )
    def test_other_shapes_are_not_taken_for_requests(self, value: Any) -> None:
        assert openai.asked(value) is None


class TestAnswers:
    def test_of_the_chat_api(self) -> None:
        raw = {
            "id": "r1",
            "model": "m-2",
            "choices": [
                {
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "content": "hello",
                        "refusal": None,
                        "annotations": [],
                        "reasoning_content": "hm",
                        "tool_calls": [{**CHAT_CALL, "index": 0}],
                    },
                }
            ],
        }
        got = openai.said(raw)
        assert got is not None
        assert got.messages == [
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, *HELLO["parts"], CALL]}
        ]
        assert (got.finish_reasons, got.response_id, got.model, got.raw) == (["tool_calls"], "r1", "m-2", raw)

    def test_an_answer_becomes_the_input_message_that_it_is_in_the_next_request(self) -> None:
        answer = openai.said(
            {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}}]}
        )
        request = openai.asked({"messages": [{"role": "assistant", "tool_calls": [CHAT_CALL]}]})
        assert answer is not None
        assert request is not None
        assert answer.messages == request.messages
        answer = openai.said({"status": "completed", "output": [THOUGHT, TOLD, ITEM_CALL]})
        request = openai.asked({"input": [THOUGHT, TOLD, ITEM_CALL]})
        assert answer is not None
        assert request is not None
        assert answer.messages == request.messages

    def test_completions_and_what_models_refuse(self) -> None:
        got = openai.said({"choices": [{"text": "hello", "finish_reason": "stop"}]})
        assert got is not None
        assert got.messages == [HELLO]
        got = openai.said({"choices": [{"message": {"role": "assistant", "refusal": "hello"}}]})
        assert got is not None
        assert got.messages == [HELLO]

    @pytest.mark.parametrize(
        ("told", "reasons"),
        [
            ({"status": "completed", "output": [THOUGHT, TOLD]}, ["stop"]),
            ({"status": "completed", "output": [ITEM_CALL, ITEM_CALL]}, ["tool_calls"]),
            ({"status": "completed", "output": [TOLD, ITEM_CALL]}, ["stop", "tool_calls"]),
            ({"status": "completed", "output": []}, ["stop"]),
            ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}, ["length"]),
            (
                {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []},
                ["content_filter"],
            ),
            ({"status": "incomplete", "output": []}, ["incomplete"]),
            ({"status": "failed", "output": []}, ["error"]),
            ({"status": "in_progress", "output": []}, None),
        ],
    )
    def test_finish_reasons_of_responses_are_those_of_the_chat_api(self, told: Any, reasons: Any) -> None:
        got = openai.said(told)
        assert got is not None
        assert got.finish_reasons == reasons

    def test_sealed_thoughts_and_tools_that_the_server_runs_are_kept(self) -> None:
        search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": None}
        got = openai.items(
            [{"type": "reasoning", "summary": [], "encrypted_content": "…"}, {"type": "reasoning"}, search]
        )
        assert [m["parts"] for m in got] == [
            [{"type": "reasoning", "encrypted_content": "…"}],
            [{"type": "web_search_call", "id": "ws_1", "status": "completed"}],
        ]

    @pytest.mark.parametrize(
        "value", [None, [], {}, {"choices": "x"}, {"choices": [1]}, {"output": "text"}, {"output": []}]
    )
    def test_other_shapes_are_not_taken_for_answers(self, value: Any) -> None:
        assert openai.said(value) is None
