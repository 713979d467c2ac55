"""The dialect of the OTel GenAI conventions: one span in, a kind and its facts out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from otel_agentrec.capture.dialects import read, scope_verdict, started
from otel_agentrec.capture.dialects.genai import KIND_OF_OPERATION
from otel_agentrec.capture.spans import ERROR, DroppedCounts, LogView, SpanEvent, SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList

USER = {"role": "user", "parts": [{"type": "text", "content": "hi"}]}
SAID = {"role": "assistant", "parts": [{"type": "text", "content": "hello"}]}
CALLED = {
    "role": "assistant",
    "parts": [
        {"type": "reasoning", "content": "hm"},
        {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": 1}},
        {"type": "tool_call", "id": "c2", "name": "search", "arguments": '{"q": 2}'},
    ],
}


ID = "149d78fb-1f4f-412a-a70b-b4cd97019ce2"


def span(attributes: Mapping[str, Any], *, op: str | None = "chat", **fields: Any) -> SpanView:
    named = {} if op is None else {"gen_ai.operation.name": op}
    base = SpanView("1" * 32, "2" * 16, None, "a span", 3, "an.instrumentation", None, 1, 2)
    return base._replace(attributes={**named, **attributes}, **fields)


def facts(view: SpanView, *logs: LogView) -> Facts:
    reading = read(view, logs)
    assert reading is not None
    return reading[1]


def kind(view: SpanView) -> str | None:
    reading = read(view)
    return reading[0] if reading else None


class TestKinds:
    @pytest.mark.parametrize(("operation", "expected"), sorted(KIND_OF_OPERATION.items()))
    def test_the_operation_decides(self, operation: str, expected: str) -> None:
        assert kind(span({"gen_ai.usage.input_tokens": 5}, op=operation)) == expected

    def test_embeddings_are_never_model_calls(self) -> None:
        assert kind(span({"gen_ai.usage.output_tokens": 5, "gen_ai.response.model": "e"}, op="embeddings")) == Kind.STEP

    def test_an_unknown_operation_is_judged_by_what_the_span_says(self) -> None:
        assert kind(span({"gen_ai.usage.output_tokens": 1}, op="respond")) == Kind.MODEL
        assert kind(span({"gen_ai.tool.call.id": "c"}, op="run_function")) == Kind.TOOL
        assert kind(span({}, op="handoff")) == Kind.STEP

    def test_a_span_without_any_sign_of_an_agent_is_foreign(self) -> None:
        assert read(span({"http.request.method": "POST"}, op=None, name="chat room")) is None

    def test_attributes_that_propagate_make_no_step(self) -> None:
        assert read(span({"gen_ai.conversation.id": "s", "gen_ai.agent.name": "a"}, op=None)) is None

    def test_an_evicted_operation_is_read_from_the_name_and_said_to_be_inferred(self) -> None:
        view = span({"gen_ai.request.model": "m"}, op=None, name="chat m")
        assert kind(view) == Kind.MODEL
        assert facts(view).flags == ["operation_inferred"]

    def test_an_mcp_tool_call_is_a_tool(self) -> None:
        view = span({"mcp.method.name": "tools/call", "gen_ai.tool.name": "t"}, op=None)
        assert (kind(view), facts(view).tool_name) == (Kind.TOOL, "t")

    def test_every_span_of_an_agent_scope_is_a_step(self) -> None:
        view = span({}, op=None, scope="opentelemetry.instrumentation.genai.openai")
        assert kind(view) == Kind.STEP
        assert scope_verdict(view.scope) == "agent"
        assert scope_verdict("opentelemetry.instrumentation.httpx") == "foreign"
        assert scope_verdict("opentelemetry.instrumentation.botocore.s3") == "foreign"
        assert scope_verdict("opentelemetry.instrumentation.botocore.bedrock-runtime") == "agent"
        assert scope_verdict("my.app") == "unknown"

    def test_at_start_a_type_that_nothing_tells_is_left_open(self) -> None:
        begun = started(span({}, op=None, scope="opentelemetry.instrumentation.genai.openai", end_ns=None))
        assert begun is not None
        assert begun[0] is None
        begun = started(span({"gen_ai.request.model": "m"}, end_ns=None))
        assert begun is not None
        assert (begun[0], begun[1].model, begun[1].status) == (Kind.MODEL, "m", None)


class TestModelFacts:
    def test_messages_stay_text_until_the_journal_needs_them(self) -> None:
        text = json.dumps([USER, SAID])
        held = facts(span({"gen_ai.input.messages": text})).messages
        assert isinstance(held, RawList)
        assert held.text == text

    @pytest.mark.parametrize("encode", [json.dumps, lambda v: v, lambda v: tuple(v)])
    def test_the_answer_is_told_alike_as_text_and_structured(self, encode: Any) -> None:
        got = facts(span({"gen_ai.output.messages": encode([{**CALLED, "finish_reason": "tool_call", "name": None}])}))
        assert got.output_messages == [CALLED]
        assert got.calls == [{"id": "c1", "name": "search"}, {"id": "c2", "name": "search"}]
        assert got.finish_reasons == ["tool_call"]

    def test_the_span_level_finish_reasons_win(self) -> None:
        got = facts(
            span(
                {
                    "gen_ai.output.messages": json.dumps([{**SAID, "finish_reason": "stop"}]),
                    "gen_ai.response.finish_reasons": ("length",),
                }
            )
        )
        assert got.finish_reasons == ["length"]
        assert (got.output_messages, got.attributes) == ([SAID], None)

    def test_identity_parameters_and_the_rest(self) -> None:
        got = facts(
            span(
                {
                    "gen_ai.provider.name": "openai",
                    "gen_ai.request.model": "m",
                    "gen_ai.response.model": "m-2",
                    "gen_ai.response.id": "r1",
                    "gen_ai.conversation.id": "s1",
                    "user.id": "u1",
                    "gen_ai.request.temperature": 0.5,
                    "gen_ai.request.stop_sequences": ("a",),
                    "gen_ai.request.stream": True,
                    "gen_ai.output.type": "json",
                    "gen_ai.openai.request.service_tier": "auto",
                    "server.address": "127.0.0.1",
                }
            )
        )
        assert (got.dialect, got.operation, got.provider) == ("otel-genai", "chat", "openai")
        assert (got.model, got.response_model, got.response_id) == ("m", "m-2", "r1")
        assert (got.session_id, got.user_id, got.streamed) == ("s1", "u1", True)
        assert got.parameters == {
            "temperature": 0.5,
            "stop_sequences": ("a",),
            "output.type": "json",
            "service_tier": "auto",
        }
        assert got.attributes == {"server.address": "127.0.0.1"}

    def test_deprecated_spellings_of_the_same_convention(self) -> None:
        got = facts(
            span(
                {
                    "gen_ai.system": "openai",
                    "gen_ai.usage.prompt_tokens": 7,
                    "gen_ai.usage.completion_tokens": 2,
                    "gen_ai.usage.cache_creation.input_tokens": 3,
                    "gen_ai.openai.request.seed": 9,
                }
            )
        )
        assert (got.provider, got.input_tokens, got.output_tokens, got.cache_write_tokens) == ("openai", 7, 2, 3)
        assert got.parameters == {"seed": 9}
        assert got.attributes is None

    def test_a_provider_that_differs_from_the_old_key_keeps_both(self) -> None:
        got = facts(span({"gen_ai.provider.name": "azure", "gen_ai.system": "openai"}))
        assert (got.provider, got.attributes) == ("azure", {"gen_ai.system": "openai"})

    def test_instructions_and_tools(self) -> None:
        got = facts(
            span(
                {
                    "gen_ai.system_instructions": "You are terse.",
                    "gen_ai.tool.definitions": ({"type": "function", "name": "f", "description": None},),
                }
            )
        )
        assert got.system_instructions == [{"type": "text", "content": "You are terse."}]
        assert got.tools == [{"type": "function", "name": "f"}]

    def test_an_event_with_the_same_content_counts_once(self) -> None:
        log = LogView(
            "1" * 32,
            "2" * 16,
            "gen_ai.client.inference.operation.details",
            attributes={
                "gen_ai.usage.input_tokens": 5,
                "gen_ai.output.messages": ({**SAID, "finish_reason": "stop"},),
                "gen_ai.request.model": "from the event",
            },
        )
        got = facts(span({"gen_ai.usage.input_tokens": 5, "gen_ai.request.model": "m"}), log)
        assert (got.input_tokens, got.model, got.output_messages) == (5, "m", [SAID])


class TestAgents:
    @pytest.mark.parametrize(
        ("told", "name"),
        [
            ({"gen_ai.agent.name": ID, "gen_ai.agent.id": ID}, None),
            ({"gen_ai.agent.name": "guide", "gen_ai.agent.id": ID}, "guide"),
            ({"gen_ai.agent.name": "guide", "gen_ai.agent.id": "guide"}, "guide"),
            ({"gen_ai.agent.name": ID}, ID),
        ],
    )
    def test_the_random_id_of_an_agent_without_a_name_is_no_name(self, told: dict[str, str], name: str | None) -> None:
        """Else its calls would stand in another lane in every process."""
        found = facts(span(told, op="invoke_agent"))
        assert (found.agent_name, found.agent_id) == (name, told.get("gen_ai.agent.id"))


class TestToolFacts:
    def test_arguments_and_result_stay_as_they_came(self) -> None:
        text = '{"order_id": 9007199254740993, "rate": 1E400}'
        got = facts(
            span(
                {
                    "gen_ai.tool.name": "pay",
                    "gen_ai.tool.call.id": "c1",
                    "gen_ai.tool.call.arguments": text,
                    "gen_ai.tool.call.result": '"9007199254740993"',
                },
                op="execute_tool",
            )
        )
        assert (got.tool_name, got.tool_call_id) == ("pay", "c1")
        assert (got.arguments, got.result) == (text, '"9007199254740993"')
        assert got.flags == []

    def test_a_tools_name_stays_in_the_spans_name_when_its_attribute_was_dropped(self) -> None:
        for name, told, tool in (
            ("execute_tool search", {}, "search"),
            ("execute_tool search", {"gen_ai.tool.name": "find"}, "find"),
            ("execute_tool", {}, None),
            ("running tool", {}, None),
        ):
            assert facts(span({"gen_ai.tool.call.id": "c1", **told}, op="execute_tool", name=name)).tool_name == tool

    def test_structured_arguments(self) -> None:
        got = facts(span({"gen_ai.tool.call.arguments": {"a": 1}}, op="execute_tool"))
        assert got.arguments == {"a": 1}


class TestCutAttributes:
    def test_cut_messages_are_kept_as_text_and_flagged(self) -> None:
        text = '[{"role":"user","parts":[{"type":"text","content":"Summarise the fol'
        got = facts(span({"gen_ai.input.messages": text, "gen_ai.output.messages": text}))
        assert got.flags == ["input_truncated", "output_truncated"]
        assert isinstance(got.messages, RawList)
        assert isinstance(got.output_messages, RawList)
        assert (got.messages.text, got.output_messages.text) == (text, text)

    @pytest.mark.parametrize("text", ['{"url":"http://exam', '{"a": "' + "x" * 70_000])
    def test_cut_arguments_are_kept_as_text_and_flagged(self, text: str) -> None:
        got = facts(span({"gen_ai.tool.call.arguments": text}, op="execute_tool"))
        assert (got.arguments, got.flags) == (text, ["input_truncated"])

    def test_plain_text_is_not_taken_for_cut_json(self) -> None:
        got = facts(span({"gen_ai.tool.call.result": "[done] ok"}, op="execute_tool"))
        assert got.flags == []

    def test_dropped_attributes_are_told(self) -> None:
        got = facts(span({}, dropped=DroppedCounts(47, 0, 0)))
        assert got.flags == ["attributes_dropped"]
        assert got.attributes == {"otel.dropped_attributes_count": 47}


class TestOutcome:
    def test_an_error_status(self) -> None:
        got = facts(span({"error.type": "openai.BadRequest"}, status_code=ERROR, status_message="no"))
        assert (got.status, got.error_type, got.error_message) == ("error", "openai.BadRequest", "no")

    def test_the_exception_event_fills_in(self) -> None:
        event = SpanEvent("exception", 1, {"exception.type": "ValueError", "exception.message": "bad"})
        got = facts(span({}, status_code=ERROR, events=(event,)))
        assert (got.status, got.error_type, got.error_message) == ("error", "ValueError", "bad")

    def test_a_handled_exception_is_no_failure(self) -> None:
        got = facts(span({}, events=(SpanEvent("exception", 1, {"exception.type": "ValueError"}),)))
        assert got.status is None

    def test_a_stream_that_broke_is_partial(self) -> None:
        got = facts(
            span(
                {
                    "gen_ai.response.finish_reasons": ("error",),
                    "gen_ai.output.messages": json.dumps([SAID]),
                    "gen_ai.request.stream": True,
                }
            )
        )
        assert (got.status, got.error_type) == ("partial", None)

    def test_a_counted_answer_is_no_broken_stream(self) -> None:
        got = facts(span({"gen_ai.response.finish_reasons": ("error",), "gen_ai.usage.output_tokens": 9}))
        assert got.status is None

    def test_an_open_span_with_streamed_text_is_partial(self) -> None:
        events = [SpanEvent("gen_ai.choice.delta", i, {"content": f"tok{i} "}) for i in (1, 2)]
        got = facts(span({}, end_ns=None, events=events))
        assert (got.output_text, got.status) == ("tok1 tok2 ", "partial")
        assert facts(span({}, end_ns=None)).status is None

    def test_streamed_pieces_do_not_repeat_the_answer(self) -> None:
        got = facts(
            span(
                {"gen_ai.output.messages": json.dumps([SAID])},
                events=(SpanEvent("gen_ai.choice.delta", 1, {"content": "hello"}),),
            )
        )
        assert got.output_text is None

    def test_other_events_are_kept(self) -> None:
        got = facts(span({}, events=(SpanEvent("cache.miss", 5, {"key": "k"}), SpanEvent("chunk", 6, {}))))
        assert got.attributes == {"otel.events": [{"name": "cache.miss", "time": "5", "attributes": {"key": "k"}}]}
