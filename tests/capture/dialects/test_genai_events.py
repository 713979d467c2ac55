"""What events beside the attributes tell of a model call: one with all details, one per message, one with the prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from otel_agentrec.capture.dialects import genai_messages, read, told
from otel_agentrec.capture.dialects.genai import takes
from otel_agentrec.capture.spans import LogView, SpanEvent, SpanView
from otel_agentrec.journal.facts import Facts, Kind

DETAILS = "gen_ai.client.inference.operation.details"
USER, ASSISTANT, TOOL = "gen_ai.user.message", "gen_ai.assistant.message", "gen_ai.tool.message"
SYSTEM, CHOICE = "gen_ai.system.message", "gen_ai.choice"
HI = {"role": "user", "parts": [{"type": "text", "content": "hi"}]}
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}


def text(role: str, *contents: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content} for content in contents]}


def log(name: str, body: Any = None, attributes: Mapping[str, Any] | None = None, at: int | None = None) -> LogView:
    return LogView("1" * 32, "2" * 16, name, at, body=body, attributes=attributes or {})


def event(name: str, **attributes: Any) -> SpanEvent:
    return SpanEvent(name, 1, attributes)


def facts(
    *logs: LogView, events: tuple[SpanEvent, ...] = (), op: str = "chat", attributes: Mapping[str, Any] | None = None
) -> Facts:
    named = {"gen_ai.operation.name": op, **(attributes or {})}
    view = SpanView("1" * 32, "2" * 16, None, "a span", start_ns=1, end_ns=2, attributes=named, events=events)
    reading = read(view, logs)
    assert reading is not None
    return reading[1]


def said(got: Facts) -> tuple[Any, Any]:
    return got.messages, got.output_messages


class TestOneEventPerMessage:
    HISTORY = (
        log(SYSTEM, {"content": "Be terse."}),
        log(USER, {"content": "hi"}),
        log(ASSISTANT, {"tool_calls": [CALL]}),
        log(TOOL, {"id": "c1", "content": "found"}),
        log(CHOICE, {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}),
    )
    MESSAGES = [  # noqa: RUF012
        text("system", "Be terse."),
        text("user", "hi"),
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "search", "arguments": '{"q": 1}'}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "found"}]},
    ]

    def test_log_records_are_the_conversation(self) -> None:
        got = facts(*self.HISTORY)
        assert said(got) == (self.MESSAGES, [text("assistant", "hello")])
        assert got.finish_reasons == ["stop"]

    def test_a_body_may_be_json_text(self) -> None:
        got = facts(*(one._replace(body=json.dumps(one.body)) for one in self.HISTORY))
        assert said(got) == (self.MESSAGES, [text("assistant", "hello")])

    def test_a_body_may_be_plain_text(self) -> None:
        assert facts(log(USER, "{hi")).messages == [text("user", "{hi")]

    def test_the_payload_may_stand_in_the_attributes(self) -> None:
        assert facts(log(USER, None, {"content": "hi", "gen_ai.system": "x"})).messages == [text("user", "hi")]

    def test_span_events_are_the_conversation(self) -> None:
        events = tuple(
            event(
                one.event_name, **{k: json.dumps(v) if isinstance(v, (dict, list)) else v for k, v in one.body.items()}
            )
            for one in self.HISTORY
        )
        assert said(facts(events=events)) == (self.MESSAGES, [text("assistant", "hello")])

    def test_span_events_with_all_in_one_attribute(self) -> None:
        events = tuple(event(m.event_name, **{"gen_ai.event.content": json.dumps(m.body)}) for m in self.HISTORY)
        assert said(facts(events=events)) == (self.MESSAGES, [text("assistant", "hello")])

    def test_span_events_with_content_blocks(self) -> None:
        called = [{"text": "Looking."}, {"toolUse": {"toolUseId": "c1", "name": "search", "input": {"q": 1}}}]
        answered = [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "found"}]}}]
        got = facts(
            events=(
                event(USER, content=json.dumps([{"text": "hi"}])),
                event(USER, content=json.dumps(answered)),
                event(CHOICE, message=json.dumps(called), finish_reason="tool_use"),
            )
        )
        first, second = got.messages or ()  # type: ignore[misc]
        assert first == text("user", "hi")
        assert second["parts"][0]["id"] == "c1"
        assert got.output_messages == [
            {
                "role": "assistant",
                "parts": [
                    {"type": "text", "content": "Looking."},
                    {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": 1}},
                ],
            }
        ]
        assert got.calls == [{"id": "c1", "name": "search"}]

    def test_what_a_user_typed_is_not_taken_for_blocks(self) -> None:
        for typed in ('[{"a": 1}]', "[1, 2]", "[draft] hi", '{"a": 1'):
            assert facts(events=(event(USER, content=typed),)).messages == [text("user", typed)]
            assert facts(log(USER, {"content": typed})).messages == [text("user", typed)]

    def test_several_answers_are_several_messages(self) -> None:
        choices = [log(CHOICE, {"index": i, "finish_reason": "stop", "message": {"content": f"{i}"}}) for i in (0, 1)]
        got = facts(*choices)
        assert got.output_messages == [text("assistant", "0"), text("assistant", "1")]
        assert got.finish_reasons == ["stop", "stop"]

    @pytest.mark.parametrize("index", [{"index": 0}, {}])
    def test_pieces_of_one_answer_are_one_message(self, index: dict[str, int]) -> None:
        pieces = [log(CHOICE, {**index, "message": {"content": piece}}) for piece in ("hel", "lo")]
        last = log(CHOICE, {**index, "finish_reason": "tool_calls", "message": {"tool_calls": [CALL]}})
        got = facts(*pieces, last)
        (answer,) = got.output_messages or []
        assert answer["parts"][0] == {"type": "text", "content": "hello"}
        assert answer["parts"][1]["id"] == "c1"
        assert got.calls == [{"id": "c1", "name": "search"}]

    def test_calls_beside_the_message_count(self) -> None:
        got = facts(log(CHOICE, {"index": 0, "message": {"content": None}, "tool_calls": [CALL]}))
        assert got.calls == [{"id": "c1", "name": "search"}]

    def test_without_content_the_calls_are_still_known(self) -> None:
        bare = {"id": "c1", "type": "function", "function": {"name": "search"}}
        got = facts(
            log(USER, {}),
            log(ASSISTANT, {"tool_calls": [bare]}),
            log(TOOL, {"id": "c1"}),
            log(
                CHOICE,
                {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [bare]}},
            ),
        )
        assert said(got) == (None, None)
        assert got.calls == [{"id": "c1", "name": "search"}]
        assert got.finish_reasons == ["tool_calls"]

    def test_records_stand_in_the_order_of_their_emission(self) -> None:
        later, earlier = log(USER, {"content": "2"}, at=2), log(USER, {"content": "1"}, at=1)
        assert facts(later, earlier).messages == [text("user", "1"), text("user", "2")]
        numbered = [log(USER, {"content": str(n)}, {"gen_ai.message.index": n}, at=9 - n) for n in (2, 1)]
        assert facts(*numbered).messages == [text("user", "1"), text("user", "2")]
        assert facts(log(USER, {"content": "2"}, at=2), log(USER, {"content": "1"})).messages == [
            text("user", "2"), text("user", "1"),
        ]  # fmt: skip

    def test_a_tool_span_has_its_arguments_and_result_in_events(self) -> None:
        told = (event(TOOL, role="tool", content='{"q": 1}', id="c1"), event(CHOICE, message="found", id="c1"))
        got = facts(events=told, op="execute_tool")
        assert (got.arguments, got.result) == ('{"q": 1}', "found")
        own = {"gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": "own"}
        got = facts(events=told, op="execute_tool", attributes=own)
        assert (got.arguments, got.result, got.attributes) == ("{}", "own", None)


class TestOneEventWithAllDetails:
    INPUT = {"gen_ai.input.messages": [text("user", "hi")]}  # noqa: RUF012
    OUTPUT = {"gen_ai.output.messages": [{**text("assistant", "hello"), "finish_reason": "stop"}]}  # noqa: RUF012

    def test_several_are_merged(self) -> None:
        expected = ([text("user", "hi")], [text("assistant", "hello")])
        assert said(facts(log(DETAILS, None, self.INPUT), log(DETAILS, None, self.OUTPUT))) == expected
        as_text = [event(DETAILS, **{k: json.dumps(v) for k, v in one.items()}) for one in (self.INPUT, self.OUTPUT)]
        got = facts(events=(*as_text, event(DETAILS, **{"gen_ai.output.messages": "[]"})))
        assert got.attributes is None
        assert [m["parts"] for m in got.output_messages or ()] == [m["parts"] for m in expected[1]]

    def test_the_span_counts_first_and_is_told_once(self) -> None:
        own = {"gen_ai.input.messages": json.dumps([text("user", "own")]), "gen_ai.usage.input_tokens": 7}
        told = log(DETAILS, None, {**self.INPUT, **self.OUTPUT, "gen_ai.usage.input_tokens": 9})
        got = facts(told, attributes=own)
        assert (got.messages.text, got.input_tokens) == (own["gen_ai.input.messages"], 7)  # type: ignore[union-attr]
        assert got.output_messages == [text("assistant", "hello")]

    @pytest.mark.parametrize("cut", ['[{"role":"user","parts":[{"type":"te', "", "[]", ()])
    def test_an_attribute_that_a_limit_cut_is_taken_from_the_event(self, cut: Any) -> None:
        got = facts(log(DETAILS, None, self.INPUT), attributes={"gen_ai.input.messages": cut})
        assert (got.messages, got.flags) == ([text("user", "hi")], [])

    def test_so_it_is_where_the_events_hold_one_message_each(self) -> None:
        cut = '[{"role":"user","parts":[{"type":"te'
        got = facts(
            log(USER, {"content": "hi"}),
            log(CHOICE, {"message": {"content": "hello"}, "finish_reason": "stop"}),
            attributes={"gen_ai.input.messages": cut, "gen_ai.output.messages": cut},
        )
        assert said(got) == ([text("user", "hi")], [text("assistant", "hello")])
        assert got.flags == []

    def test_messages_in_events_of_both_forms_count_once(self) -> None:
        got = facts(log(DETAILS, None, self.INPUT), log(USER, {"content": "hi"}), events=(event(USER, content="hi"),))
        assert got.messages == [text("user", "hi")]


class TestWholePrompts:
    PROMPT = json.dumps([{"role": "user", "content": "hi"}])
    COMPLETION = json.dumps([{"role": "assistant", "content": "hello", "finish_reason": "stop"}])

    def test_as_attributes(self) -> None:
        got = facts(attributes={"gen_ai.prompt": self.PROMPT, "gen_ai.completion": self.COMPLETION})
        assert said(got) == ([text("user", "hi")], [text("assistant", "hello")])
        assert (got.finish_reasons, got.attributes) == (["stop"], None)

    def test_as_span_events(self) -> None:
        got = facts(
            events=(
                event("gen_ai.content.prompt", **{"gen_ai.prompt": self.PROMPT}),
                event("gen_ai.content.completion", **{"gen_ai.completion": "hello"}),
            )
        )
        assert said(got) == ([text("user", "hi")], [{"parts": [{"type": "text", "content": "hello"}]}])

    def test_shapes_of_other_tools_stay_where_they_are(self) -> None:
        for other in ('{"messages": [[{"lc": 1}]]}', "[1]", "[]", '{"a"'):
            got = facts(attributes={"gen_ai.prompt": other})
            assert (got.messages, got.attributes) == (None, {"gen_ai.prompt": other})


class TestWhomALogTellsOf:
    def test_messages_tell_of_model_calls_alone(self) -> None:
        for name in (SYSTEM, USER, ASSISTANT, TOOL, CHOICE, DETAILS):
            assert takes(Kind.MODEL, log(name))
            assert not any(takes(kind, log(name)) for kind in (Kind.AGENT, Kind.TOOL, Kind.STEP))

    def test_details_tell_of_the_kind_of_their_operation(self) -> None:
        told = log(DETAILS, None, {"gen_ai.operation.name": "invoke_agent"})
        assert takes(Kind.AGENT, told)
        assert not takes(Kind.MODEL, told)
        assert takes(Kind.MODEL, log(DETAILS, None, {"gen_ai.operation.name": "respond"}))

    def test_an_agent_does_not_take_the_words_of_a_model_call_below_it(self) -> None:
        details = log(DETAILS, None, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": [text("user", "hi")]})
        got = facts(details, log(USER, {"content": "hi"}), op="invoke_agent")
        assert (got.messages, got.attributes) == (None, None)

    def test_a_log_record_makes_no_span_a_model_call(self) -> None:
        told = log(DETAILS, None, {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
        server = SpanView("1" * 32, "2" * 16, None, "POST /chat", 2, "my.server", attributes={"http.route": "/chat"})
        assert read(server, [told]) is None


class TestAlone:
    """What one log record tells of a call that it does not name."""

    def record(self, name: str, body: Any, **attributes: Any) -> Facts | None:
        return told(LogView(None, None, name, body=body, attributes=attributes))

    def test_a_message(self) -> None:
        facts = self.record("gen_ai.user.message", {"content": "hi"}, **{"gen_ai.provider.name": "openai"})
        assert facts is not None
        assert facts.messages == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
        assert (facts.output_messages, facts.calls, facts.finish_reasons) == (None, None, None)
        assert facts.attributes == {"gen_ai.provider.name": "openai"}

    def test_a_choice(self) -> None:
        call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        body = {"index": 0, "message": {"content": None}, "finish_reason": "tool_calls", "tool_calls": [call]}
        facts = self.record("gen_ai.choice", body)
        assert facts is not None
        part = {"type": "tool_call", "id": "c1", "name": "f", "arguments": "{}"}
        assert facts.output_messages == [{"role": "assistant", "parts": [part]}]
        assert (facts.calls, facts.finish_reasons) == ([{"id": "c1", "name": "f"}], ["tool_calls"])

    def test_further_blocks_of_a_provider_with_one_answer_have_no_role(self) -> None:
        body = {"index": 1, "message": {"content": {"type": "text", "content": "more"}}, "finish_reason": "stop"}
        part = {"type": "text", "content": "more"}
        block = self.record("gen_ai.choice", body, **{"gen_ai.provider.name": "anthropic"})
        choice = self.record("gen_ai.choice", body, **{"gen_ai.provider.name": "openai"})
        assert block is not None
        assert choice is not None
        assert (block.output_messages, block.finish_reasons) == ([{"parts": [part]}], None)
        assert (choice.output_messages, choice.finish_reasons) == ([{"role": "assistant", "parts": [part]}], ["stop"])

    def test_tools_in_a_message_of_their_own_are_no_message(self) -> None:
        facts = self.record("gen_ai.user.message", {"content": {"tools": [{"name": "f", "input_schema": {}}]}})
        assert facts is not None
        assert (facts.messages, facts.tools) == (None, [{"type": "function", "name": "f", "parameters": {}}])

    def test_all_details(self) -> None:
        facts = self.record(
            "gen_ai.client.inference.operation.details", None, **{"gen_ai.input.messages": [HI], "x": 1}
        )
        assert facts is not None
        assert (facts.messages, facts.dialect, facts.status, facts.attributes) == ([HI], None, None, {"x": 1})

    def test_what_tells_nothing_is_recorded_as_it_is(self) -> None:
        assert self.record("gen_ai.user.message", {}) is None
        assert self.record("gen_ai.evaluation.result", {"x": 1}) is None
        assert (
            self.record("gen_ai.client.inference.operation.details", None, **{"gen_ai.operation.name": "execute_tool"})
            is None
        )


def test_the_blocks_of_one_answer_are_one_message() -> None:
    anthropic = {"gen_ai.provider.name": "anthropic"}
    bodies = [{"index": i, "message": {"content": text}, "finish_reason": "stop"} for i, text in enumerate("ab")]
    logs = [LogView("1" * 32, "2" * 16, "gen_ai.choice", body=body, attributes=anthropic) for body in bodies]
    blocks = genai_messages.in_logs(logs)
    parts = [{"type": "text", "content": text} for text in "ab"]
    assert (blocks.output, blocks.reasons) == ([{"role": "assistant", "parts": parts}], ("stop",))
    choices = genai_messages.in_logs([log._replace(attributes={}) for log in logs])
    assert choices.output == [{"role": "assistant", "parts": [part]} for part in parts]
