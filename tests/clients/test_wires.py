"""Prompts and answers of the three APIs, without any SDK: what goes out is what came in, by whatever way it was kept."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.capture.dialects import messages, openai
from otel_agentrec.clients.anthropic import AnthropicWire
from otel_agentrec.clients.chat import ChatWire
from otel_agentrec.clients.responses import ResponsesWire
from otel_agentrec.demo import anthropic as scripted
from otel_agentrec.demo.script import Asked
from otel_agentrec.prompts import AgentModelChunk, AgentPrompt, AgentToolResult

from .scenes import ASKS, EXPECTED, PROMPT, WEATHER, Ear, assert_heard, next_prompt, told

Json = Any

TEXT = st.text(min_size=1, max_size=12)
ARGUMENTS = st.dictionaries(TEXT, st.integers() | TEXT | st.none() | st.lists(st.integers(), max_size=2), max_size=2)
RESULT = TEXT | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), min_size=1, max_size=2)


def recorded(items: list[Json], **more: Json) -> AgentPrompt:
    """The prompt that is found in a recording of these messages."""
    return AgentPrompt.from_inputs({"model": "m", "messages": items, **more})


# --- what goes out again after it was recorded ---------------------------------------------------------------------------


def one_of(*alternatives: Json) -> Any:
    return st.one_of(*alternatives)


CHAT_PART = one_of(
    st.builds(lambda t: {"type": "text", "text": t}, TEXT),
    st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}),
    st.just({"type": "image_url", "image_url": {"url": "http://127.0.0.1/cat.png"}}),
    st.just({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}),
)
CHAT = one_of(
    st.builds(lambda r, t: {"role": r, "content": t}, st.sampled_from(["system", "user", "assistant"]), TEXT),
    st.builds(lambda p: {"role": "user", "content": p}, st.lists(CHAT_PART, min_size=2, max_size=3)),
    st.builds(lambda t, n: {"role": "user", "content": t, "name": n}, TEXT, TEXT),
    st.builds(
        lambda i, n, a, text: {
            "role": "assistant",
            **text,
            "tool_calls": [{"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}],
        },
        TEXT,
        TEXT,
        ARGUMENTS,
        st.sampled_from([{}, {"content": "I look."}, {"content": "I look.", "reasoning_content": "Hm."}]),
    ),
    st.builds(lambda i, r: {"role": "tool", "tool_call_id": i, "content": r}, TEXT, RESULT),
)


@given(st.lists(CHAT, max_size=5))
def test_chat_messages_go_out_again_as_they_were_recorded(items: list[Json]) -> None:
    again = ChatWire().request(recorded([messages.message(m) for m in items]), stream=False)
    assert again["messages"] == items


BLOCK = one_of(
    st.builds(lambda t: {"type": "text", "text": t}, TEXT),
    st.builds(lambda t: {"type": "text", "text": t, "cache_control": {"type": "ephemeral"}}, TEXT),
    st.just({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}),
    st.just({"type": "document", "source": {"type": "url", "url": "http://127.0.0.1/a.pdf"}}),
)
ANTHROPIC = one_of(
    st.builds(lambda r, t: {"role": r, "content": t}, st.sampled_from(["user", "assistant"]), TEXT),
    st.builds(lambda b: {"role": "user", "content": b}, st.lists(BLOCK, min_size=2, max_size=3)),
    st.builds(
        lambda t, s, i, n, a: {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": t, "signature": s},
                {"type": "redacted_thinking", "data": "c2VjcmV0"},
                {"type": "tool_use", "id": i, "name": n, "input": a},
            ],
        },
        TEXT,
        TEXT,
        TEXT,
        TEXT,
        ARGUMENTS,
    ),
    st.builds(
        lambda i, r, e: {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": r, **e}]},
        TEXT,
        RESULT,
        st.sampled_from([{}, {"is_error": True}]),
    ),
)


@given(st.lists(ANTHROPIC, max_size=5))
def test_anthropic_messages_go_out_again_as_they_were_recorded(items: list[Json]) -> None:
    again = AnthropicWire().request(recorded([messages.message(m) for m in items]), stream=False)
    assert joined(again["messages"]) == joined(items)


def joined(items: list[Json]) -> list[Json]:
    """Results that follow one another in one message: what the API itself makes of them."""
    out: list[Json] = []
    for item in items:
        is_result = isinstance(item["content"], list) and all(b["type"] == "tool_result" for b in item["content"])
        before = out[-1]["content"] if out else ""
        if is_result and isinstance(before, list) and all(b["type"] == "tool_result" for b in before):
            out[-1] = {**item, "content": [*before, *item["content"]]}
        else:
            out.append(item)
    return out


RESPONSES = one_of(
    st.builds(lambda r, t: {"role": r, "content": t}, st.sampled_from(["user", "assistant", "developer"]), TEXT),
    st.builds(
        lambda t: {
            "role": "user",
            "content": [
                {"type": "input_text", "text": t},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
            ],
        },
        TEXT,
    ),
    st.builds(
        lambda i, n, a: {"type": "function_call", "call_id": i, "name": n, "arguments": json.dumps(a)},
        TEXT,
        TEXT,
        ARGUMENTS,
    ),
    st.builds(lambda i, r: {"type": "function_call_output", "call_id": i, "output": r}, TEXT, TEXT),
    st.just({"type": "reasoning", "summary": [], "encrypted_content": "c2VhbGVk"}),
)


@given(st.lists(RESPONSES, max_size=5))
def test_items_of_responses_go_out_again_as_they_were_recorded(items: list[Json]) -> None:
    again = ResponsesWire().request(recorded(openai.items(items)), stream=False)
    assert again["input"] == items


@given(st.lists(CHAT, max_size=4), st.lists(RESPONSES, max_size=4), st.lists(ANTHROPIC, max_size=4))
def test_messages_in_a_providers_own_form_are_not_touched(
    chat: list[Json], responses: list[Json], anthropic: list[Json]
) -> None:
    assert ChatWire().request(AgentPrompt("m", chat), stream=False)["messages"] == chat
    assert ResponsesWire().request(AgentPrompt("m", responses), stream=False)["input"] == responses
    sent = AnthropicWire().request(AgentPrompt("m", anthropic), stream=False)["messages"]
    assert joined(sent) == joined(anthropic)


@pytest.mark.parametrize("wire", [ChatWire(), ResponsesWire(), AnthropicWire()], ids=["chat", "responses", "anthropic"])
@given(items=st.lists(CHAT | ANTHROPIC, max_size=4))
def test_any_recorded_prompt_can_be_put_to_any_provider(wire: Any, items: list[Json]) -> None:
    prompt = recorded([messages.message(m) for m in items], tools=[messages.definition(WEATHER)])
    body = json.dumps(wire.request(prompt, stream=True))
    assert '"parts"' not in body
    assert '"tool_call_response"' not in body


# --- tools and choices ----------------------------------------------------------------------------------------------------

SCHEMA = WEATHER["parameters"]
FUNCTION = {"name": "weather", "description": "Weather of a city"}
FORMS = {
    "chat": {"type": "function", "function": {**FUNCTION, "parameters": SCHEMA}},
    "responses": {"type": "function", **FUNCTION, "parameters": SCHEMA},
    "anthropic": {**FUNCTION, "input_schema": SCHEMA},
}
WIRES: dict[str, Any] = {"chat": ChatWire(), "responses": ResponsesWire(), "anthropic": AnthropicWire()}


@pytest.mark.parametrize("given_as", FORMS)
@pytest.mark.parametrize("api", WIRES)
def test_a_tool_in_any_form_is_known_to_any_provider(api: str, given_as: str) -> None:
    for tool in (FORMS[given_as], messages.definition(FORMS[given_as])):
        assert WIRES[api].request(AgentPrompt("m", tools=[tool]), stream=False)["tools"] == [FORMS[api]]


@pytest.mark.parametrize("api", WIRES)
def test_tools_that_are_no_functions_go_out_as_they_are(api: str) -> None:
    for tool in ({"type": "web_search"}, {"type": "web_search_20250305", "name": "web_search"}):
        assert WIRES[api].request(AgentPrompt("m", tools=[tool]), stream=False)["tools"] == [tool]


@pytest.mark.parametrize(
    ("choice", "chat", "responses", "anthropic"),
    [
        ("auto", "auto", "auto", {"type": "auto"}),
        ("required", "required", "required", {"type": "any"}),
        ("none", "none", "none", {"type": "none"}),
        (
            "weather",
            {"type": "function", "function": {"name": "weather"}},
            {"type": "function", "name": "weather"},
            {"type": "tool", "name": "weather"},
        ),
    ],
)
def test_a_choice_of_tools_is_the_same_everywhere(choice: str, chat: Json, responses: Json, anthropic: Json) -> None:
    wanted = {"chat": chat, "responses": responses, "anthropic": anthropic}
    for api, wire in WIRES.items():
        assert wire.request(AgentPrompt("m", tool_choice=choice), stream=False)["tool_choice"] == wanted[api]


# --- Anthropic ------------------------------------------------------------------------------------------------------------


def test_anthropic_is_asked_in_its_own_words() -> None:
    prompt = AgentPrompt.from_json({**PROMPT.to_json(), "reasoning": {"type": "enabled", "budget_tokens": 1024}})
    assert AnthropicWire().request(prompt, stream=True) == {
        "model": "m",
        "max_tokens": 77,
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "In English."}],
        "messages": [{"role": "user", "content": "Will it rain?"}],
        "tools": [FORMS["anthropic"]],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "metadata": {"user_id": "u1"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "stream": True,
    }
    assert AnthropicWire(99).request(AgentPrompt("m", "Hi"), stream=False)["max_tokens"] == 99


def test_messages_that_instruct_stand_apart_at_anthropic() -> None:
    items = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    body = AnthropicWire().request(AgentPrompt("m", items), stream=False)
    assert (body["system"], body["messages"]) == ("Be brief.", items[1:])


def test_results_of_one_step_stand_in_one_message_at_anthropic() -> None:
    items = [AgentToolResult("f", "c1", "a").to_item(), AgentToolResult("g", "c2", {"b": 1}).to_item()]
    assert AnthropicWire().request(AgentPrompt("m", items), stream=False)["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "a"},
                {"type": "tool_result", "tool_use_id": "c2", "content": '{"b": 1}'},
            ],
        }
    ]


def test_an_answer_of_anthropic_whole_and_as_a_stream() -> None:
    asked = Asked("anthropic", "m", (("user", "Will it rain?"),), 1, ())
    wire, ear = AnthropicWire(), Ear()
    whole = wire.result(scripted.body(ASKS, asked, "msg_1"))
    assert told(whole) == EXPECTED
    assert whole.memory_items == [{"role": "assistant", "content": whole.raw_response["content"]}]
    merging = wire.merging()
    for event in scripted.events(ASKS, asked, "msg_1"):
        for chunk in merging.add(event):
            ear.on_chunk(chunk)
    streamed = wire.result(merging.whole())
    assert streamed == whole
    assert_heard(ear, dataclasses.replace(whole, chunks=ear.chunks))
    again = wire.request(next_prompt(streamed), stream=False)["messages"]
    assert [m["role"] for m in again] == ["user", "assistant", "user"]
    assert scripted.read({"messages": again}).tool_results == ("yes", '{"at": 9}')


# --- streams that break off or say odd things -----------------------------------------------------------------------------


def heard(wire: Any, events: list[Json]) -> tuple[list[AgentModelChunk], Any]:
    merging = wire.merging()
    chunks = [chunk for event in events for chunk in merging.add(event)]
    return chunks, wire.result(merging.whole())


@pytest.mark.parametrize("api", WIRES)
def test_a_stream_that_broke_off_keeps_what_it_said_and_has_no_finish_reason(api: str) -> None:
    events = {
        "chat": [{"id": "1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hel"}}]}],
        "responses": [
            {"type": "response.created", "response": {"id": "1", "status": "in_progress", "output": []}},
            {"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"},
        ],
        "anthropic": [
            {"type": "message_start", "message": {"id": "1", "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
        ],
    }
    chunks, result = heard(WIRES[api], events[api])
    assert [(c.channel, c.text) for c in chunks] == [("text", "Hel")]
    assert (result.output_text, result.finish_reasons, result.raw_response["id"]) == ("Hel", [], "1")


def test_a_last_chunk_with_usage_alone_does_not_empty_the_answer() -> None:
    events = [
        {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}], "usage": None},
        {"choices": [], "usage": {"total_tokens": 3}},
    ]
    _, result = heard(ChatWire(), events)
    assert (result.output_text, result.usage, result.finish_reasons) == ("Hi", {"total_tokens": 3}, ["stop"])


def test_calls_without_a_place_are_told_apart_by_their_ids() -> None:
    def piece(call_id: str | None, arguments: str) -> Json:
        function = {"name": "f" if call_id else None, "arguments": arguments}
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"id": call_id, "function": function}]}}]}

    _, result = heard(ChatWire(), [piece("a", '{"x"'), piece(None, ": 1}"), piece("b", "{}")])
    assert [(c.call_id, c.name, c.arguments) for c in result.tool_calls] == [("a", "f", '{"x": 1}'), ("b", "f", "{}")]


def test_what_no_channel_is_for_is_heard_as_an_event() -> None:
    chat = {"choices": [{"index": 0, "delta": {"annotations": [{"url": "u"}]}, "logprobs": {"content": [1]}}]}
    assert [c.data for c in heard(ChatWire(), [chat])[0]] == [
        {"annotations": [{"url": "u"}]},
        {"logprobs": {"content": [1]}},
    ]
    search = {"type": "response.web_search_call.searching", "item_id": "ws_1", "output_index": 0}
    assert [c.data for c in heard(ResponsesWire(), [search])[0]] == [search]


def test_a_refusal_is_what_the_model_said() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I can't."}
    raw = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    assert ChatWire().result(raw).output_text == "I can't."
    output = [{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I can't."}]}]
    assert ResponsesWire().result({"status": "completed", "output": output}).output_text == "I can't."


def test_an_answer_that_is_incomplete_says_why() -> None:
    raw = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}
    assert ResponsesWire().result(raw).finish_reasons == ["max_output_tokens"]
