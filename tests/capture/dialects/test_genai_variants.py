"""Frameworks that speak the GenAI conventions with few words of their own: AG2, Semantic Kernel, LiteLLM."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from otel_agentrec.capture.dialects import read
from otel_agentrec.capture.spans import LogView
from otel_agentrec.journal.facts import Facts, Kind, RawList

from .frameworks import HELLO, HI, reading, span, text

AG2 = "opentelemetry.instrumentation.ag2"
USAGE = {"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 3}
FLAT = {
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": "hi",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": "hello",
    "gen_ai.completion.0.finish_reason": "stop",
}
CHAT = {"gen_ai.operation.name": "chat", **USAGE}


class TestAg2:
    def test_messages_as_openai_has_them(self) -> None:
        kind, told = reading(
            AG2, {**CHAT, "ag2.span.type": "llm", "gen_ai.input.messages": [{"role": "user", "content": "hi"}]}
        )
        assert (kind, told.dialect, told.messages, told.attributes) == (Kind.MODEL, "ag2", [HI], None)

    @pytest.mark.parametrize("attributes", [USAGE, CHAT, {**USAGE, "ag2.usage.kind": "subtask"}])
    def test_usage_beside_the_call_is_no_second_call(self, attributes: dict[str, object]) -> None:
        kind, told = reading(AG2, attributes, name="record_usage model_call")
        assert (kind, told.operation) == (Kind.STEP, "record_usage")

    @pytest.mark.parametrize(
        ("told", "kind"),
        [("tool", Kind.TOOL), ("agent", Kind.AGENT), ("conversation", Kind.AGENT), ("human_input", Kind.STEP)],
    )
    def test_the_type_decides(self, told: str, kind: str) -> None:
        assert reading("an.app", {"ag2.span.type": told})[0] == kind


class TestSemanticKernel:
    SCOPE = "semantic_kernel.utils.telemetry"

    def test_reasons_are_members_of_an_enum(self) -> None:
        _, told = reading(self.SCOPE, {**CHAT, "gen_ai.response.finish_reason": "FinishReason.TOOL_CALLS"})
        assert (told.dialect, told.finish_reasons) == ("semantic-kernel", ["tool_calls"])

    def test_its_older_names_of_operations(self) -> None:
        assert reading(self.SCOPE, {"gen_ai.operation.name": "chat.completions"})[0] == Kind.MODEL

    def test_messages_in_log_records_with_json_text(self) -> None:
        logs = [
            LogView("1" * 32, "2" * 16, name, body=text(body))
            for name, body in (
                ("gen_ai.user.message", {"role": "user", "content": "hi"}),
                (
                    "gen_ai.choice",
                    {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"},
                ),
            )
        ]
        found = read(span(self.SCOPE, CHAT), logs)
        assert found is not None
        assert (found[1].messages, found[1].output_messages) == ([HI], [HELLO])


class TestLiteLlm:
    def test_a_request(self) -> None:
        kind, told = reading("litellm", {**USAGE, **FLAT, "llm.is_streaming": "False"}, name="litellm_request")
        assert (kind, told.dialect, told.operation) == (Kind.MODEL, "litellm", "chat")
        assert (told.messages, told.output_messages, told.finish_reasons) == ([HI], [HELLO], ["stop"])
        assert (told.streamed, told.input_tokens, told.attributes) == (False, 9, None)

    def test_the_raw_request_below_it(self) -> None:
        kind, told = reading(
            "litellm",
            {
                "llm.openai.messages": text([{"role": "user", "content": "hi"}]),
                "llm.openai.choices": text([{"message": {"role": "assistant", "content": "hello"}}]),
            },
            name="raw_gen_ai_request",
        )
        assert (kind, told.messages, told.output_messages) == (Kind.MODEL, [HI], [HELLO])

    CALLS: ClassVar = {
        "gen_ai.completion.0.function_call.name": "f",
        "gen_ai.completion.0.function_call.arguments": '{"a": 1}',
        "gen_ai.completion.1.function_call.name": "g",
        "gen_ai.completion.1.function_call.arguments": "{}",
    }

    def request(self, said: Any, *, streamed: bool) -> Facts:
        told = {
            "gen_ai.operation.name": "acompletion",
            "llm.is_streaming": str(streamed),
            "gen_ai.output.messages": text(said),
            "llm.request.functions.0.name": "f",
            "llm.request.functions.0.parameters": '{"type": "object"}',
            **self.CALLS,
        }
        kind, facts = reading("litellm", told, name="litellm_request")
        assert (kind, facts.operation) == (Kind.MODEL, "chat")
        assert facts.tools == [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
        return facts

    def test_an_answer_of_calls_alone_is_left_to_the_raw_one_which_has_their_ids(self) -> None:
        told = self.request([{"role": "assistant", "parts": [], "finish_reason": "tool_calls"}], streamed=False)
        assert (told.output_messages, told.calls, told.finish_reasons) == (None, None, ["tool_calls"])
        assert told.attributes == {
            "gen_ai.completion": [{"name": "f", "arguments": '{"a": 1}'}, {"name": "g", "arguments": "{}"}]
        }

    def test_of_a_stream_there_is_no_raw_answer(self) -> None:
        told = self.request([{"role": "assistant", "parts": []}], streamed=True)
        assert told.output_messages == [
            {
                "role": "assistant",
                "parts": [
                    {"type": "tool_call", "name": "f", "arguments": '{"a": 1}'},
                    {"type": "tool_call", "name": "g", "arguments": "{}"},
                ],
            }
        ]
        assert told.calls == [{"id": None, "name": "f"}, {"id": None, "name": "g"}]
        said = self.request([{"role": "assistant", "parts": [{"type": "text", "content": "so"}]}], streamed=False)
        assert [part["type"] for part in said.output_messages[0]["parts"]] == ["text", "tool_call", "tool_call"]

    def test_calls_and_answers_beside_the_parts(self) -> None:
        call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        told = [
            {"role": "assistant", "parts": [], "tool_calls": [call]},
            {"role": "tool", "parts": [{"type": "text", "content": "one"}], "tool_call_id": "c1"},
        ]
        _, facts = reading("litellm", {"gen_ai.input.messages": text(told)}, name="litellm_request")
        assert isinstance(facts.messages, RawList)
        assert [facts.messages.element(message) for message in told] == [
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": "{}"}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "one"}]},
        ]

    def test_the_raw_answers_of_two_providers_as_python_prints_them(self) -> None:
        for told in (
            {"llm.openai.choices": "[{'index': 0, 'message': {'content': None, 'role': 'assistant', 'tool_calls': "
             "[{'id': 'c1', 'function': {'arguments': '{}', 'name': 'f'}, 'type': 'function'}]}}]"},
            {"llm.anthropic.content": "[{'type': 'tool_use', 'id': 'c1', 'name': 'f', 'input': {}}]",
             "llm.anthropic.role": "assistant", "llm.anthropic.type": "message"},
        ):  # fmt: skip
            asked = {f"{next(iter(told)).rpartition('.')[0]}.messages": "[{'role': 'user', 'content': 'hi'}]"}
            kind, facts = reading("litellm", {**asked, **told}, name="raw_gen_ai_request")
            assert (kind, facts.messages, facts.calls) == (Kind.MODEL, [HI], [{"id": "c1", "name": "f"}])

    def test_the_proxy_asks_no_model(self) -> None:
        assert read(span("litellm", {"http.method": "POST"}, name="Received Proxy Server Request")) is None

    def test_embeddings(self) -> None:
        kind, told = reading("litellm", {"llm.request.type": "embedding", **USAGE}, name="litellm_request")
        assert (kind, told.operation) == (Kind.STEP, "embeddings")
