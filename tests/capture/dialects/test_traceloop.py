"""The dialect of OpenLLMetry: one span in, a kind and its facts out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from otel_agentrec.capture.dialects import read, scope_verdict, started, traceloop
from otel_agentrec.capture.dialects.traceloop_messages import message
from otel_agentrec.capture.spans import ERROR, SpanEvent, SpanView
from otel_agentrec.journal.facts import Facts, Kind

OPENAI = "opentelemetry.instrumentation.openai.v1"
HI = {"role": "user", "parts": [{"type": "text", "content": "hi"}]}
HELLO = {"role": "assistant", "parts": [{"type": "text", "content": "hello"}]}


def span(attributes: Mapping[str, Any], scope: str = "traceloop.tracer", **fields: Any) -> SpanView:
    base = SpanView("1" * 32, "2" * 16, "3" * 16, "a span", 1, scope, "0.62.4", 1, 2)
    return base._replace(attributes=dict(attributes), **fields)


def facts(view: SpanView) -> Facts:
    reading = read(view)
    assert reading is not None
    return reading[1]


def kind(view: SpanView) -> tuple[str, str | None] | None:
    reading = read(view)
    return (reading[0], reading[1].operation) if reading else None


def tool(attributes: Mapping[str, Any], **fields: Any) -> Facts:
    return facts(span({"traceloop.span.kind": "tool", **attributes}, **fields))


def model(attributes: Mapping[str, Any], **fields: Any) -> Facts:
    return facts(span({"llm.request.type": "chat", **attributes}, scope=OPENAI, **fields))


class TestKinds:
    @pytest.mark.parametrize(
        ("told", "expected"),
        [
            ("workflow", (Kind.AGENT, "invoke_workflow")),
            ("agent", (Kind.AGENT, "invoke_agent")),
            ("tool", (Kind.TOOL, "execute_tool")),
            ("task", (Kind.STEP, "task")),
            ("handoff", (Kind.STEP, "handoff")),
        ],
    )
    def test_decorators_say_what_they_are(self, told: str, expected: tuple[str, str]) -> None:
        assert kind(span({"traceloop.span.kind": told})) == expected

    @pytest.mark.parametrize(
        ("told", "expected"),
        [
            ("chat", (Kind.MODEL, "chat")),
            ("completion", (Kind.MODEL, "text_completion")),
            ("embedding", (Kind.STEP, "embeddings")),
            ("rerank", (Kind.STEP, "rerank")),
        ],
    )
    def test_older_calls_say_the_type_of_the_request(self, told: str, expected: tuple[str, str]) -> None:
        assert kind(span({"llm.request.type": told}, scope="some.app")) == expected

    def test_the_operation_counts_before_the_kind(self) -> None:
        assert kind(span({"gen_ai.operation.name": "invoke_agent", "traceloop.span.kind": "workflow"})) == (
            Kind.AGENT,
            "invoke_agent",
        )
        assert kind(span({"gen_ai.operation.name": "response"}, scope=OPENAI)) == (Kind.MODEL, "chat")

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("openai.response", (Kind.MODEL, "chat")),
            ("openai.embeddings", (Kind.STEP, "embeddings")),
            ("ChatOpenAI.chat", (Kind.MODEL, "chat")),
            ("get_weather.tool", (Kind.TOOL, "execute_tool")),
            ("planner.agent", (Kind.AGENT, "invoke_agent")),
        ],
    )
    def test_a_span_that_only_begins_is_known_by_its_name(self, name: str, expected: tuple[str, str]) -> None:
        begun = started(span({}, scope=OPENAI, name=name, end_ns=None))
        assert begun is not None
        assert (begun[0], begun[1].operation, begun[1].flags) == (*expected, ["operation_inferred"])

    def test_an_answer_makes_a_span_without_a_type_a_model_call(self) -> None:
        told = span({"gen_ai.completion.0.content": "hello"}, scope="some.app")
        assert kind(told) == (Kind.MODEL, "chat")
        assert facts(told).flags == ["operation_inferred"]

    def test_what_the_sdk_puts_on_every_span_makes_no_step(self) -> None:
        told = {
            "traceloop.workflow.name": "w",
            "traceloop.entity.path": "p",
            "traceloop.association.properties.session_id": "s",
        }
        assert read(span(told, scope="some.http.client")) is None
        assert kind(span(told, name="something")) == (Kind.STEP, None)

    def test_spans_of_others_keep_their_dialect(self) -> None:
        told = {"gen_ai.operation.name": "chat", "traceloop.workflow.name": "w"}
        assert facts(span(told, scope="some.app")).dialect == "otel-genai"
        assert facts(span(told, scope="com.anthropic.sdk.python")).dialect == "anthropic-sdk"

    def test_its_scopes_are_known(self) -> None:
        assert all(scope_verdict(scope) == "agent" for scope in traceloop.SCOPES)


class TestIdentity:
    @pytest.mark.parametrize("key", ["session_id", "conversation_id", "chat_id", "thread_id"])
    @pytest.mark.parametrize("scope", ["traceloop.tracer", "some.app"])
    def test_an_associated_id_is_the_session(self, key: str, scope: str) -> None:
        told = {"gen_ai.operation.name": "chat", f"traceloop.association.properties.{key}": "s1"}
        assert facts(span(told, scope=scope)).session_id == "s1"

    def test_the_session_of_the_convention_wins(self) -> None:
        told = {"gen_ai.conversation.id": "own", "traceloop.association.properties.session_id": "s1"}
        assert model(told).session_id == "own"

    def test_other_associated_properties(self) -> None:
        prefix = "traceloop.association.properties."
        told = model(
            {f"{prefix}user_id": "u1", f"{prefix}tenant": "t", f"{prefix}session_id": "s", f"{prefix}thread_id": "x"}
        )
        assert (told.user_id, told.session_id) == ("u1", "s")
        assert told.attributes == {f"{prefix}tenant": "t", f"{prefix}thread_id": "x"}

    @pytest.mark.parametrize(
        ("told", "provider"), [("Anthropic", "anthropic"), ("AWS", "aws.bedrock"), ("x.ai", "x.ai")]
    )
    def test_providers(self, told: str, provider: str) -> None:
        assert model({"gen_ai.system": told}).provider == provider

    def test_an_agent_has_the_name_of_its_entity(self) -> None:
        assert facts(span({"traceloop.span.kind": "agent", "traceloop.entity.name": "planner"})).agent_name == "planner"


class TestModel:
    def test_current_attributes(self) -> None:
        told = facts(
            span(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "openai",
                    "gen_ai.request.model": "m",
                    "gen_ai.is_streaming": True,
                    "gen_ai.input.messages": json.dumps([HI]),
                    "gen_ai.output.messages": json.dumps([{**HELLO, "finish_reason": "stop"}]),
                    "gen_ai.usage.total_tokens": 3,
                },
                scope=OPENAI,
            )
        )
        assert (told.dialect, told.provider, told.model, told.streamed) == ("traceloop", "openai", "m", True)
        assert (told.output_messages, told.finish_reasons) == ([HELLO], ["stop"])
        assert told.other_tokens == {"total_tokens": 3}
        assert told.attributes is None

    def test_flattened_messages(self) -> None:
        told = model(
            {
                "gen_ai.prompt.0.role": "user",
                "gen_ai.prompt.0.content": "hi",
                "gen_ai.prompt.1.role": "assistant",
                "gen_ai.prompt.1.tool_calls.0.id": "c1",
                "gen_ai.prompt.1.tool_calls.0.name": "f",
                "gen_ai.prompt.1.tool_calls.0.arguments": '{"x": 1}',
                "gen_ai.prompt.2.role": "tool",
                "gen_ai.prompt.2.tool_call_id": "c1",
                "gen_ai.prompt.2.content": "7",
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "hello",
                "gen_ai.completion.0.finish_reason": "stop",
            }
        )
        call = {"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"x": 1}'}
        assert told.messages == [
            HI,
            {"role": "assistant", "parts": [call]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "7"}]},
        ]
        assert (told.output_messages, told.calls, told.finish_reasons) == ([HELLO], [], ["stop"])
        assert told.attributes is None

    def test_content_that_was_a_list_is_one_again(self) -> None:
        blocks = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]
        result = [{"type": "tool_result", "tool_use_id": "c1", "content": "7"}]
        told = model({"gen_ai.prompt.0.content": json.dumps(blocks), "gen_ai.prompt.1.content": json.dumps(result)})
        assert told.messages == [
            {
                "role": "user",
                "parts": [
                    {"type": "text", "content": "look"},
                    {"type": "uri", "modality": "image", "uri": "https://x/y.png"},
                ],
            },
            {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "response": "7"}]},
        ]

    @pytest.mark.parametrize("written", ['[{"type": "apple"}]', "[1, 2]", "[not json", '"quoted"', "{}"])
    def test_other_json_is_what_a_person_wrote(self, written: str) -> None:
        told = model({"gen_ai.prompt.0.content": written, "gen_ai.prompt.0.role": "user"})
        assert told.messages == [{"role": "user", "parts": [{"type": "text", "content": written}]}]

    def test_an_empty_text_in_quotes_is_none(self) -> None:
        call = {
            f"gen_ai.completion.0.tool_calls.0.{k}": v for k, v in (("name", "f"), ("arguments", json.dumps('{"x":1}')))
        }
        told = model({"gen_ai.completion.0.content": '""', **call})
        assert told.output_messages == [
            {"role": "assistant", "parts": [{"type": "tool_call", "name": "f", "arguments": '{"x":1}'}]}
        ]

    def test_thoughts_belong_to_the_answer_after_them(self) -> None:
        told = model(
            {
                "gen_ai.completion.0.role": "thinking",
                "gen_ai.completion.0.content": "well",
                "gen_ai.completion.0.finish_reason": "end_turn",
                "gen_ai.completion.1.role": "assistant",
                "gen_ai.completion.1.content": "hello",
            }
        )
        assert told.output_messages == [
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "well"}, *HELLO["parts"]]}
        ]
        assert told.finish_reasons == ["end_turn"]
        alone = model({"gen_ai.completion.0.role": "thinking", "gen_ai.completion.0.content": "well"})
        assert alone.output_messages == [{"role": "assistant", "parts": [{"type": "reasoning", "content": "well"}]}]

    def test_summaries_of_reasoning(self) -> None:
        written = json.dumps([{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}])
        part = {"type": "reasoning", "content": "one\ntwo"}
        told = model({"gen_ai.completion.0.content": "hello", "gen_ai.completion.0.reasoning": written})
        assert told.output_messages == [{"role": "assistant", "parts": [part, *HELLO["parts"]]}]
        raw = {"role": "assistant", "parts": [{"type": "reasoning", "content": written}]}
        assert message(raw) == {"role": "assistant", "parts": [part]}
        for other in ("[{", '[{"type": "x"}]', "[{}, 7]", "plain"):
            kept = {"role": "assistant", "parts": [{"type": "reasoning", "content": other}]}
            assert message(kept) == kept

    def test_text_completions_of_anthropic(self) -> None:
        assert model({"gen_ai.prompt.0.user": "hi"}).messages == [HI]

    def test_the_oldest_names(self) -> None:
        told = model(
            {
                "llm.vendor": "OpenAI",
                "llm.request.model": "m",
                "llm.prompts.0.content": "hi",
                "llm.completions.0.content": "hello",
                "llm.usage.prompt_tokens": 3,
                "llm.top_p": 0.5,
                "llm.response.finish_reason": "stop",
            }
        )
        assert (told.provider, told.model, told.input_tokens, told.finish_reasons) == ("openai", "m", 3, ["stop"])
        assert (told.messages, told.output_messages, told.parameters) == ([HI], [HELLO], {"top_p": 0.5})
        assert told.attributes is None

    def test_tools_that_were_offered(self) -> None:
        told = model(
            {
                "llm.request.functions.0.name": "f",
                "llm.request.functions.0.parameters": '{"type": "object"}',
                "llm.request.functions.1.name": "g",
                "llm.request.functions.1.input_schema": '{"type": "object"}',
            }
        )
        schema = {"type": "object"}
        assert told.tools == [
            {"type": "function", "name": "f", "parameters": schema},
            {"type": "function", "name": "g", "parameters": schema},
        ]

    def test_what_stands_for_nothing_is_nothing(self) -> None:
        told = model(
            {
                "llm.headers": "None",
                "gen_ai.request.reasoning_effort": (),
                "gen_ai.response.reasoning_effort": [],
                "gen_ai.request.model": "unknown",
                "gen_ai.response.model": "unknown",
                "gen_ai.request.temperature": 0,
            }
        )
        assert (told.model, told.response_model, told.parameters) == (None, None, {"temperature": 0})
        assert told.attributes is None
        assert model({"traceloop.association.properties.ls_model_name": "m"}).model == "m"


class TestTools:
    def test_a_python_call(self) -> None:
        told = tool(
            {
                "traceloop.entity.name": "f",
                "traceloop.entity.input": json.dumps({"args": [], "kwargs": {"city": "北京"}}),
                "traceloop.entity.output": json.dumps("sunny"),
            }
        )
        assert (told.tool_name, told.arguments, told.result) == ("f", {"city": "北京"}, "sunny")
        assert (told.tool_call_id, told.status, told.attributes) == (None, None, None)

    @pytest.mark.parametrize("returned", ['{"a": 1}', "[1]", "7", "plain", '"cut'])
    def test_other_results_stay_as_they_came(self, returned: str) -> None:
        assert tool({"traceloop.entity.output": returned}).result == returned

    def test_the_name_of_the_span_is_the_last_resort(self) -> None:
        assert tool({}, name="f.tool").tool_name == "f"
        assert tool({"gen_ai.tool.name": "g", "traceloop.entity.name": "f"}, name="h.tool").tool_name == "g"

    @pytest.mark.parametrize(
        "more", [{"inputs": {"city": "北京"}}, {}, {"inputs": None}], ids=["inputs", "only their repr", "null"]
    )
    @pytest.mark.parametrize("key", ["traceloop.entity.input", "gen_ai.tool.call.arguments"])
    def test_a_call_of_langchain(self, key: str, more: dict[str, Any]) -> None:
        wrapped = {"input_str": "{'city': '北京'}", "tags": [], "kwargs": {"tool_call_id": "c1"}, **more}
        told = tool({key: json.dumps(wrapped)})
        assert (told.arguments, told.tool_call_id) == ({"city": "北京"}, "c1")
        left = {k: v for k, v in wrapped.items() if k != "inputs"}
        assert told.attributes == {"traceloop.entity.input": left}, "arguments are not told twice"

    def test_a_result_of_langchain(self) -> None:
        fields = {"content": "7", "type": "tool", "tool_call_id": "c1", "status": "error"}
        made = {"lc": 1, "type": "constructor", "id": ["langchain", "ToolMessage"], "kwargs": fields}
        told = tool({"gen_ai.tool.call.result": json.dumps({"output": made, "kwargs": {}})})
        assert (told.result, told.tool_call_id, told.status, told.error_message) == ("7", "c1", "error", "7")
        left = {**made, "kwargs": {k: v for k, v in fields.items() if k != "content"}}
        assert told.attributes == {"traceloop.entity.output": {"output": left, "kwargs": {}}}
        plain = tool({"traceloop.entity.output": json.dumps({"output": "7", "kwargs": {}})})
        assert (plain.result, plain.status, plain.attributes) == ("7", None, None)

    def test_a_call_of_mcp(self) -> None:
        told = tool(
            {
                "traceloop.entity.input": json.dumps({"tool_name": "f", "arguments": {"x": 1}}),
                "traceloop.entity.output": json.dumps({"result": "no", "is_error": True}),
            }
        )
        assert (told.arguments, told.result, told.status, told.error_message) == ({"x": 1}, "no", "error", "no")

    def test_a_tool_that_raised(self) -> None:
        told = tool(
            {"traceloop.entity.input": '{"args": [7, 0], "kwargs": {}}'},
            status_code=ERROR,
            status_message="division by zero",
            events=(SpanEvent("exception", 1, {"exception.type": "ZeroDivisionError"}),),
        )
        assert told.arguments == {"args": [7, 0], "kwargs": {}}
        assert (told.status, told.error_type, told.error_message) == ("error", "ZeroDivisionError", "division by zero")

    def test_arguments_that_were_cut(self) -> None:
        told = tool({"traceloop.entity.input": '{"args": [], "kwargs": {"te'})
        assert told.flags == ["input_truncated"]
        assert told.arguments == '{"args": [], "kwargs": {"te'


class TestAgents:
    def agent(self, given: Any, returned: Any) -> Facts:
        return facts(
            span(
                {
                    "traceloop.span.kind": "agent",
                    "traceloop.entity.input": json.dumps(given),
                    "traceloop.entity.output": json.dumps(returned),
                }
            )
        )

    def test_a_question_and_an_answer(self) -> None:
        told = self.agent({"args": ["hi"], "kwargs": {}}, "hello")
        assert (told.messages, told.output_messages, told.attributes) == ([HI], [HELLO], None)

    def test_the_state_of_a_graph(self) -> None:
        human = {
            "lc": 1,
            "type": "constructor",
            "id": ["x", "HumanMessage"],
            "kwargs": {"content": "hi", "type": "human"},
        }
        told = self.agent({"inputs": {"messages": [human]}, "tags": []}, {"outputs": {"messages": [human]}})
        assert told.messages == told.output_messages == [HI]

    @pytest.mark.parametrize(
        "given", [{"args": ["a", "b"], "kwargs": {}}, {"args": ["a"], "kwargs": {"k": 1}}, {"x": 1}, []]
    )
    def test_anything_else_stays_an_attribute(self, given: Any) -> None:
        told = self.agent(given, {"x": 1})
        assert (told.messages, told.output_messages) == (None, None)
        assert told.attributes == {
            "traceloop.entity.input": json.dumps(given),
            "traceloop.entity.output": json.dumps({"x": 1}),
        }
