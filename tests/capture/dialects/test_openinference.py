"""The dialect of OpenInference: one span in, a kind and its facts out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from otel_agentrec.capture.dialects import openinference, read, scope_verdict, started
from otel_agentrec.capture.dialects.openinference import KINDS
from otel_agentrec.capture.spans import ERROR, OK, SpanEvent, SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList

HI = {"role": "user", "parts": [{"type": "text", "content": "hi"}]}
HELLO = {"role": "assistant", "parts": [{"type": "text", "content": "hello"}]}
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.5}
SAID = {
    "id": "r1",
    "model": "m-2",
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
}
FLAT_IN = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "hi"}
FLAT_OUT = {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "hello"}


def span(kind: str | None, attributes: Mapping[str, Any] = {}, **fields: Any) -> SpanView:
    told = {} if kind is None else {"openinference.span.kind": kind}
    base = SpanView("1" * 32, "2" * 16, "3" * 16, "a span", 1, "an.app", None, 1, 2, status_code=OK)
    return base._replace(attributes={**told, **attributes}, **fields)


def facts(view: SpanView) -> Facts:
    reading = read(view)
    assert reading is not None
    return reading[1]


def kind(view: SpanView) -> tuple[str, str | None] | None:
    reading = read(view)
    return (reading[0], reading[1].operation) if reading else None


def model(attributes: Mapping[str, Any], **fields: Any) -> Facts:
    return facts(span("LLM", attributes, **fields))


def tool(attributes: Mapping[str, Any], **fields: Any) -> Facts:
    return facts(span("TOOL", attributes, **fields))


class TestKinds:
    @pytest.mark.parametrize(("told", "expected"), sorted(KINDS.items()))
    def test_the_kind_decides(self, told: str, expected: tuple[str, str]) -> None:
        assert kind(span(told)) == kind(span(told.lower())) == expected

    def test_a_new_kind_is_a_step(self) -> None:
        assert kind(span("DREAM")) == (Kind.STEP, "dream")

    def test_a_chain_at_the_top_is_the_run(self) -> None:
        assert kind(span("CHAIN", parent_span_id=None)) == (Kind.AGENT, "invoke_workflow")

    def test_a_handoff_is_no_tool(self) -> None:
        assert kind(span("TOOL", name="handoff to expert")) == (Kind.STEP, "handoff")
        assert kind(span("TOOL", {"tool.name": "handoff to expert"}, name="handoff to expert")) == (
            Kind.TOOL,
            "execute_tool",
        )

    def test_a_private_method_of_a_models_class_asks_no_model(self) -> None:
        scope = "openinference.instrumentation.llama_index"
        prepares = span("LLM", {"llm.model_name": "m"}, name="Model._prepare_chat", scope=scope)
        assert kind(prepares) == (Kind.STEP, "prepare")
        assert kind(prepares._replace(attributes={**prepares.attributes, **FLAT_OUT})) == (Kind.MODEL, "chat")
        assert kind(span("LLM", name="Model._private_method_of_somebody_else")) == (Kind.MODEL, "chat")

    def test_messages_without_a_kind_are_a_model_call(self) -> None:
        view = span(None, FLAT_IN)
        assert kind(view) == (Kind.MODEL, "chat")
        assert facts(view).flags == ["operation_inferred"]

    def test_every_span_of_its_instrumentations_is_a_step(self) -> None:
        view = span(None, {}, scope="openinference.instrumentation.any")
        assert kind(view) == (Kind.STEP, None)
        assert kind(view._replace(attributes={"tool.name": "t"})) == (Kind.TOOL, "execute_tool")
        assert scope_verdict(view.scope) == "agent"
        begun = started(view)
        assert begun is not None
        assert begun[0] is None

    def test_others_are_not_its(self) -> None:
        assert openinference.DIALECT.read(span(None, {"http.route": "/"}), ()) is None
        assert openinference.DIALECT.read(span("LLM", {"gen_ai.operation.name": "chat"}), ()) is None


class TestModelCalls:
    @pytest.mark.parametrize(
        "attributes",
        [
            {"input.value": json.dumps(ASKED), "output.value": json.dumps(SAID)},
            {**FLAT_IN, **FLAT_OUT, "input.value": "hi", "output.value": "hello"},
            {"input.value": "hi", "output.value": "hello"},
            {**FLAT_IN, **FLAT_OUT, "input.value": json.dumps(ASKED), "output.value": json.dumps(SAID)},
            {"llm.prompts.0.prompt.text": "hi", "llm.choices.0.completion.text": "hello"},
            {"llm.prompts": ("hi",), "llm.choices.0.completion.text": "hello"},
        ],
    )
    def test_messages_raw_flattened_or_plain_text(self, attributes: dict[str, Any]) -> None:
        got = model(attributes)
        assert (got.messages, got.output_messages, got.calls) == ([HI], [HELLO], [])
        assert got.attributes is None, "nothing is told twice"

    def test_the_raw_request_and_answer_tell_ids_and_models(self) -> None:
        got = model(
            {
                "input.value": json.dumps({**ASKED, "stream": True}),
                "output.value": json.dumps(SAID),
                "llm.invocation_parameters": '{"model": "m", "top_p": 1, "stream": true}',
                "llm.model_name": "m-2",
                "llm.system": "openai",
                "llm.finish_reason": "of the span",
                "llm.token_count.prompt": 9,
                "llm.token_count.completion": 2,
                "llm.token_count.total": 11,
                "llm.token_count.prompt_details.cache_read": 4,
                "llm.token_count.completion_details.reasoning": 0,
            }
        )
        assert (got.model, got.response_model, got.response_id, got.provider) == ("m", "m-2", "r1", "openai")
        assert (got.finish_reasons, got.streamed, got.output_raw) == (["stop"], True, SAID)
        assert got.parameters == {"temperature": 0.5, "top_p": 1}
        assert (got.input_tokens, got.output_tokens, got.cache_read_tokens, got.reasoning_tokens) == (9, 2, 4, 0)
        assert (got.other_tokens, got.attributes) == ({"total": 11}, None)

    @pytest.mark.parametrize(
        ("told", "expected"),
        [
            ({"llm.model_name": "m"}, ("m", None)),
            ({"llm.request.model_name": "m", "llm.model_name": "m-2"}, ("m", "m-2")),
            ({"llm.request.model_name": "m", "llm.response.model_name": "m-2", "llm.model_name": "m-2"}, ("m", "m-2")),
            ({"llm.invocation_parameters": '{"model_name": "m"}', "llm.model_name": "m"}, ("m", None)),
            ({"llm.model_name": "m-2", "output.value": json.dumps(SAID)}, (None, "m-2")),
            ({"llm.model_name": "m", "output.value": json.dumps(SAID)}, ("m", "m-2")),
        ],
    )
    def test_one_model_name_may_be_the_requested_or_the_answering_one(self, told: Any, expected: Any) -> None:
        got = model(told)
        assert (got.model, got.response_model) == expected

    def test_parameters_read_off_the_answer_are_no_request(self) -> None:
        answer = {"id": "r1", "object": "response", "model": "m-2", "status": "completed", "output": []}
        echo = {**answer, "temperature": 1.0, "instructions": "Be brief."}
        got = model(
            {
                "output.value": json.dumps(answer),
                "llm.invocation_parameters": json.dumps(echo),
                "llm.model_name": "m-2",
                "input.value": '[{"role": "user", "content": "hi"}]',
                "llm.input_messages.0.message.role": "system",
                "llm.input_messages.0.message.content": "Be brief.",
                "llm.input_messages.1.message.role": "user",
                "llm.input_messages.1.message.content": "hi",
            }
        )
        assert (got.model, got.response_model, got.parameters) == (None, "m-2", {"temperature": 1.0})
        assert got.messages == [HI]
        assert got.system_instructions == [{"type": "text", "content": "Be brief."}], (
            "only the flattened messages tell them"
        )

    def test_tools(self) -> None:
        schema = '{"type": "function", "function": {"name": "f", "strict": null}}'
        wanted = [{"type": "function", "name": "f"}]
        assert model({"llm.tools.0.tool.json_schema": schema}).tools == wanted
        assert model({"llm.invocation_parameters": json.dumps({"tools": [json.loads(schema)]})}).tools == wanted

    def test_what_is_said_twice_counts_once(self) -> None:
        call = {"id": "c1", "function.name": "f", "function.arguments": '{"a": 1}'}
        at = "llm.output_messages.0.message"
        got = model(
            {
                f"{at}.role": "assistant",
                f"{at}.content": "hello",
                f"{at}.contents.0.message_content.type": "reasoning",
                f"{at}.contents.0.message_content.text": "hm",
                f"{at}.contents.0.message_content.signature": "s",
                f"{at}.contents.1.message_content.type": "text",
                f"{at}.contents.1.message_content.text": "hello",
                f"{at}.contents.2.message_content.type": "tool_use",
                **{f"{at}.contents.2.tool_call.{key}": value for key, value in call.items()},
                **{f"{at}.tool_calls.0.tool_call.{key}": value for key, value in call.items()},
                f"{at}.tool_calls.1.tool_call.function.name": "g",
            }
        )
        assert got.output_messages == [
            {
                "role": "assistant",
                "parts": [
                    {"type": "reasoning", "content": "hm", "signature": "s"},
                    {"type": "text", "content": "hello"},
                    {"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"a": 1}'},
                    {"type": "tool_call", "name": "g"},
                ],
            }
        ]
        assert got.calls == [{"id": "c1", "name": "f"}, {"id": None, "name": "g"}]

    def test_results_images_and_older_calls_among_flattened_messages(self) -> None:
        at = "llm.input_messages"
        got = model(
            {
                f"{at}.0.message.role": "tool",
                f"{at}.0.message.tool_call_id": "c1",
                f"{at}.0.message.content": "21°",
                f"{at}.1.message.role": "user",
                f"{at}.1.message.contents.0.message_content.type": "image",
                f"{at}.1.message.contents.0.message_content.image.image.url": "data:image/png;base64,AA==",
                f"{at}.1.message.contents.1.message_content.type": "image",
                f"{at}.1.message.contents.1.message_content.image.image.url": "http://x/y",
                f"{at}.2.message.role": "assistant",
                f"{at}.2.message.function_call_name": "f",
                f"{at}.2.message.function_call_arguments_json": "{}",
                f"{at}.3.message.role": "tool-response",
                f"{at}.3.message.content": "hi",
            }
        )
        assert got.messages == [
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "21°"}]},
            {
                "role": "user",
                "parts": [
                    {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AA=="},
                    {"type": "uri", "modality": "image", "uri": "http://x/y"},
                ],
            },
            {"role": "assistant", "parts": [{"type": "tool_call", "name": "f", "arguments": "{}"}]},
            HI,
        ]

    def test_objects_of_unknown_shape_stay_beside_the_flattened_messages(self) -> None:
        got = model(
            {**FLAT_IN, "input.value": '{"contents": []}', "input.mime_type": "application/json", "metadata": "{}"}
        )
        assert got.messages == [HI]
        assert got.attributes == {
            "input.value": '{"contents": []}',
            "input.mime_type": "application/json",
            "metadata": "{}",
        }
        got = model({"input.value": '{"contents": []}', "output.value": "[1]"})
        assert (got.messages, got.output_messages) == (None, None)
        assert got.attributes == {"input.value": '{"contents": []}', "output.value": "[1]"}

    @pytest.mark.parametrize(
        "text", ["__REDACTED__", "<async_generator object f at 0x7f60e84217d0>", "assistant: None"]
    )
    def test_text_that_nobody_said_is_no_message(self, text: str) -> None:
        got = model({"input.value": text, "output.value": text}, scope="openinference.instrumentation.llama_index")
        assert (got.messages, got.output_messages) == (None, None)
        assert got.attributes == {"input.value": text, "output.value": text}

    def test_elsewhere_a_text_may_begin_as_it_likes(self) -> None:
        assert model({"output.value": "assistant: hi"}).output_messages == [
            {"role": "assistant", "parts": [{"type": "text", "content": "assistant: hi"}]}
        ]

    def test_an_answer_of_a_framework_stays_whole_among_the_attributes(self) -> None:
        told = json.dumps({"generations": [[{"text": "hello", "generation_info": {"logprobs": [1]}}]]})
        got = model({"output.value": told})
        assert (got.output_messages, got.output_raw) == ([HELLO], None)
        assert got.attributes == {"output.value": told}

    def test_cut_json_is_kept_as_text_and_flagged(self) -> None:
        cut = '{"model": "m", "messages": [{"role": "user", "content": "Summar'
        got = model({"input.value": cut, "output.value": cut, "input.mime_type": "application/json"})
        assert got.flags == ["input_truncated", "output_truncated"]
        assert isinstance(got.messages, RawList)
        assert got.messages.text == cut
        got = model({**FLAT_IN, "input.value": cut})
        assert (got.messages, got.flags) == ([HI], ["input_truncated"])

    def test_a_stream_that_was_left_is_partial(self) -> None:
        told = {"input.value": json.dumps({**ASKED, "stream": True}), **FLAT_OUT}
        assert model(told, status_code=0).status == "partial"
        assert model(told, status_code=OK).status is None
        assert model({**told, "llm.finish_reason": "stop"}, status_code=0).status is None, "made by hand: no status set"
        assert model(FLAT_OUT, status_code=0).status is None, "not known to be streamed"
        assert model(FLAT_OUT, events=(SpanEvent("First Token Stream Event", 1, {}),)).streamed is True
        assert model(FLAT_OUT, end_ns=None).status == "partial"

    def test_session_user_and_ids_that_the_program_gives(self) -> None:
        got = model(
            {"session.id": "s", "user.id": "u", "agentrec.run.id": "r", "agentrec.turn.id": "t", "agentrec.step": 3}
        )
        assert (got.session_id, got.user_id, got.run_id, got.turn_id, got.step) == ("s", "u", "r", "t", 3)
        assert got.attributes is None
        for key in ("session_id", "conversation_id", "thread_id"):
            assert model({"metadata": json.dumps({key: "s"})}).session_id == "s"
        assert model({"metadata": "no json"}).session_id is None

    def test_a_provider_that_differs_from_the_system_keeps_both(self) -> None:
        got = model({"llm.provider": "azure", "llm.system": "openai"})
        assert (got.provider, got.attributes) == ("azure", {"llm.system": "openai"})


class TestErrors:
    def test_the_exception_says_more_than_the_status(self) -> None:
        thrown = SpanEvent("exception", 1, {"exception.type": "a.Error", "exception.message": "boom"})
        got = model({}, status_code=ERROR, status_message="Error: boom\nTraceback …", events=(thrown,))
        assert (got.status, got.error_type, got.error_message) == ("error", "a.Error", "boom")
        got = model({}, status_code=ERROR, status_message="boom")
        assert (got.status, got.error_type, got.error_message) == ("error", None, "boom")

    def test_a_handled_exception_is_no_failure(self) -> None:
        thrown = SpanEvent("exception", 1, {"exception.type": "a.Error"})
        assert model({}, events=(thrown,)).status is None

    def test_other_events_are_kept(self) -> None:
        got = model({}, events=(SpanEvent("note", 7, {"a": 1}), SpanEvent("empty", 8, {})))
        assert got.attributes == {"otel.events": [{"name": "note", "time": "7", "attributes": {"a": 1}}]}


class TestTools:
    def test_name_arguments_and_result(self) -> None:
        got = tool({"tool.name": "f", "input.value": '{"a": 1}', "output.value": "1", "tool_call.id": "c1"})
        assert (got.tool_name, got.arguments, got.result, got.tool_call_id) == ("f", '{"a": 1}', "1", "c1")
        assert (got.attributes, got.status) == (None, None)
        assert tool({}, name="f").tool_name == "f"

    @pytest.mark.parametrize(
        ("told", "arguments"),
        [
            ('{"args": [], "sanitize_inputs_outputs": true, "kwargs": {"a": 1}}', {"a": 1}),
            ('{"kwargs": {"a": 1}}', {"a": 1}),
            ('{"args": [1], "kwargs": {}}', {"a": 1}),
            ("{'a': 1}", {"a": 1}),
            ("{'a': cut", "{'a': cut"),
            ("Paris", "Paris"),
            ("[1]", "[1]"),
        ],
    )
    def test_arguments_by_name(self, told: str, arguments: Any) -> None:
        assert tool({"input.value": told, "tool.parameters": '{"a": {"type": "integer"}}'}).arguments == arguments

    def test_a_langchain_result_tells_the_call_it_answers(self) -> None:
        data = {"content": "21°", "tool_call_id": "c1", "status": "success", "artifact": None}
        got = tool({"tool.name": "f", "output.value": json.dumps({"type": "tool", "data": data})})
        assert (got.result, got.tool_call_id, got.status, got.attributes) == ("21°", "c1", None, None)
        told = json.dumps({"type": "tool", "data": {**data, "status": "error", "artifact": [1]}})
        got = tool({"tool.name": "f", "output.value": told})
        assert (got.status, got.error_message) == ("error", "21°")
        assert got.attributes == {"output.value": told}, "with what the model is not told"

    def test_a_llamaindex_result(self) -> None:
        told = {"raw_output": {"t": 21}, "tool_name": "f", "is_error": False}
        assert tool({"output.value": json.dumps(told)}).result == {"t": 21}
        got = tool({"output.value": json.dumps({**told, "raw_output": "boom", "is_error": True})})
        assert (got.status, got.error_message, got.result) == ("error", "boom", "boom")

    def test_hidden_values_are_absent(self) -> None:
        got = tool({"input.value": "__REDACTED__", "output.value": "__REDACTED__"})
        assert (got.arguments, got.result) == (None, None)
        assert got.attributes == {"input.value": "__REDACTED__", "output.value": "__REDACTED__"}

    def test_cut_values_are_flagged(self) -> None:
        got = tool({"input.value": '{"a": "b', "output.value": '{"a": "b'})
        assert got.flags == ["input_truncated", "output_truncated"]


class TestSteps:
    @pytest.mark.parametrize(
        ("told", "name"),
        [
            ({"agent.name": "planner"}, "planner"),
            ({"graph.node.id": "planner"}, "planner"),
            ({"metadata": '{"lc_agent_name": "planner"}'}, "planner"),
            ({}, "a span"),
        ],
    )
    def test_the_name_of_an_agent(self, told: dict[str, Any], name: str) -> None:
        assert facts(span("AGENT", told)).agent_name == name

    def test_the_name_of_an_agent_that_the_span_is_named_after(self) -> None:
        assert facts(span("AGENT", name="planner.run")).agent_name == "planner"
        assert facts(span("CHAIN", parent_span_id=None)).agent_name is None

    def test_messages_of_an_agent(self) -> None:
        got = facts(span("AGENT", {"input.value": "hi", "output.value": "hello"}))
        assert (got.messages, got.output_messages, got.calls, got.attributes) == ([HI], [HELLO], None, None)

    def test_messages_of_a_chain_and_what_else_its_state_holds(self) -> None:
        state = {"messages": [{"type": "human", "data": {"content": "hi"}}]}
        got = facts(span("CHAIN", {"input.value": json.dumps(state), "output.value": json.dumps({**state, "n": 1})}))
        assert (got.messages, got.output_messages) == ([HI], [HI])
        assert got.attributes == {"output.value": {"n": 1}}

    def test_other_values_stay_attributes(self) -> None:
        told = {"input.value": "hi", "output.value": '{"a": 1}', "output.mime_type": "application/json"}
        got = facts(span("CHAIN", told))
        assert (got.messages, got.output_messages, got.attributes) == (None, None, told)
        assert facts(span("AGENT", {"input.value": '{"task": "x"}'})).messages is None
