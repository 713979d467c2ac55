"""The scripted model, seen by the real SDK: what an agent meets in the wild, without key and network."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from otel_agentrec.demo.script import Call, Script, Turn, Usage, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import UsageError

openai = pytest.importorskip("openai")

ASK = [{"role": "user", "content": "Will it rain?"}]
TWO_CALLS = Turn(tool_calls=[Call("weather", {"city": "Oslo"}), Call("trains", {"to": "Oslo"}, id="call_t")])


def client(server: ScriptedServer, retries: int = 2) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=retries, timeout=5)


@pytest.fixture(params=["chat", "responses"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ask(server: ScriptedServer, api: str, *, retries: int = 2) -> str:
    with client(server, retries) as c:
        if api == "chat":
            return c.chat.completions.create(model="m", messages=ASK).choices[0].message.content or ""
        return c.responses.create(model="m", input=ASK).output_text


def stream(server: ScriptedServer, api: str) -> Iterator[str]:
    with client(server, 0) as c:
        if api == "chat":
            for chunk in c.chat.completions.create(model="m", messages=ASK, stream=True):
                yield chunk.choices[0].delta.content or ""
        else:
            for event in c.responses.create(model="m", input=ASK, stream=True):
                if event.type == "response.output_text.delta":
                    yield event.delta


def test_answers_in_the_order_of_the_script(api: str) -> None:
    with ScriptedServer(["Yes.", "No."]) as server:
        assert [ask(server, api), ask(server, api)] == ["Yes.", "No."]
        assert [r.body["model"] for r in server.requests if r.body] == ["m", "m"]
        assert server.script.unused == []


def test_a_request_that_no_turn_fits_says_what_was_asked(api: str) -> None:
    with ScriptedServer([]) as server:
        with pytest.raises(openai.BadRequestError, match=r"no turn of the script fits.*Will it rain"):
            ask(server, api)
        assert len(server.requests) == 1, "an SDK must not retry it"


def test_streams_word_by_word(api: str) -> None:
    with ScriptedServer([Turn("Take an umbrella,  please.\n")]) as server:
        got = [piece for piece in stream(server, api) if piece]
    assert got == ["Take", " an", " umbrella,", "  please.", "\n"]


def test_chunks_can_be_given_exactly(api: str) -> None:
    with ScriptedServer([Turn(chunks=["Ta", "ke ", "it"])]) as server:
        assert [piece for piece in stream(server, api) if piece] == ["Ta", "ke ", "it"]


def test_chunk_timing(api: str) -> None:
    with ScriptedServer([Turn("one two three", chunk_delay=0.05)]) as server:
        times = [time.monotonic() for piece in stream(server, api) if piece]
    assert times[-1] - times[0] >= 0.09


def test_usage_of_a_stream_comes_last_and_only_when_asked_for() -> None:
    with ScriptedServer([Turn("Hi", usage=Usage(7, 3, cached=2, reasoning=1), times=0)]) as server, client(server) as c:
        plain = list(c.chat.completions.create(model="m", messages=ASK, stream=True))
        options = {"include_usage": True}
        asked = list(c.chat.completions.create(model="m", messages=ASK, stream=True, stream_options=options))
    assert all(chunk.usage is None for chunk in plain)
    assert [chunk.usage is None for chunk in asked] == [True] * (len(asked) - 1) + [False]
    assert asked[-1].choices == []
    usage = asked[-1].usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (7, 3, 10)
    assert (usage.prompt_tokens_details.cached_tokens, usage.completion_tokens_details.reasoning_tokens) == (2, 1)


def test_usage_of_a_response() -> None:
    with ScriptedServer([Turn("Hi", usage=Usage(7, 3, cached=2))]) as server, client(server) as c:
        usage = c.responses.create(model="m", input="x").usage
    assert (usage.input_tokens, usage.output_tokens, usage.input_tokens_details.cached_tokens) == (7, 3, 2)


@pytest.mark.parametrize("streamed", [False, True])
def test_parallel_tool_calls_and_their_results_in_chat(streamed: bool) -> None:
    with ScriptedServer([TWO_CALLS, Turn("Found {tool_results}.")], seed="s") as server, client(server) as c:
        if streamed:
            with c.chat.completions.stream(model="m", messages=ASK) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = c.chat.completions.create(model="m", messages=ASK).choices[0].message
        calls = message.tool_calls
        assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
            ("call_s0001_0", "weather", '{"city": "Oslo"}'),
            ("call_t", "trains", '{"to": "Oslo"}'),
        ]
        asked = [
            {"id": k.id, "type": "function", "function": k.function.model_dump(include={"name", "arguments"})}
            for k in calls
        ]
        results = [{"role": "tool", "tool_call_id": k.id, "content": f"{k.function.name}!"} for k in calls]
        history = [*ASK, {"role": "assistant", "tool_calls": asked}, *results]
        answer = c.chat.completions.create(model="m", messages=history).choices[0].message.content
    assert answer == "Found weather!; trains!."


@pytest.mark.parametrize("streamed", [False, True])
def test_parallel_tool_calls_and_their_results_in_responses(streamed: bool) -> None:
    with ScriptedServer([TWO_CALLS, Turn("Found {tool_results}.", when=When(step=2))]) as server, client(server) as c:
        if streamed:
            with c.responses.stream(model="m", input=ASK) as events:
                first = events.get_final_response()
        else:
            first = c.responses.create(model="m", input=ASK)
        calls = [item for item in first.output if item.type == "function_call"]
        assert [(call.name, call.arguments) for call in calls] == [
            ("weather", '{"city": "Oslo"}'),
            ("trains", '{"to": "Oslo"}'),
        ]
        results = [{"type": "function_call_output", "call_id": k.call_id, "output": f"{k.name}!"} for k in calls]
        answer = c.responses.create(model="m", input=results, previous_response_id=first.id).output_text
    assert answer == "Found weather!; trains!."


def test_reasoning() -> None:
    with ScriptedServer([Turn("Yes.", reasoning="Clouds.", times=0)]) as server, client(server) as c:
        message = c.chat.completions.create(model="m", messages=ASK).choices[0].message
        assert message.model_dump()["reasoning_content"] == "Clouds."
        items = c.responses.create(model="m", input=ASK).output
    assert [item.type for item in items] == ["reasoning", "message"]


def test_a_rate_limit_is_retried_by_the_sdk(api: str) -> None:
    with ScriptedServer([Turn(status=429, headers={"retry-after-ms": "1"}), Turn("Yes.")]) as server:
        assert ask(server, api) == "Yes."
        assert [r.turn.status for r in server.requests if r.turn] == [429, 200]


def test_a_server_error_reaches_the_program_when_retries_end(api: str) -> None:
    with (
        ScriptedServer([Turn("out of cake", status=500, headers={"retry-after-ms": "1"}, times=0)]) as server,
        pytest.raises(openai.InternalServerError, match="out of cake"),
    ):
        ask(server, api, retries=1)
    assert len(server.requests) == 2


def test_a_cut_stream_is_an_error_after_what_was_sent(api: str) -> None:
    got = []
    turn = Turn("one two three", end="cut", after=2 if api == "chat" else 5)
    with ScriptedServer([turn]) as server, pytest.raises(openai.APIConnectionError):
        for piece in stream(server, api):
            got.append(piece)
    assert "".join(got) == "one"


def test_a_stream_of_garbage_is_an_error(api: str) -> None:
    with ScriptedServer([Turn("one two", end="garbage", after=1)]) as server, pytest.raises(ValueError):
        list(stream(server, api))


def test_a_cut_answer_is_an_error(api: str) -> None:
    with ScriptedServer([Turn("one two", end="cut")]) as server, pytest.raises(openai.APIConnectionError):
        ask(server, api, retries=0)


def test_a_garbage_answer_is_an_error(api: str) -> None:
    with ScriptedServer([Turn("one two", end="garbage")]) as server, pytest.raises(ValueError):
        ask(server, api, retries=0)


def test_a_hanging_stream_ends_with_the_server(api: str) -> None:
    with ScriptedServer([Turn("one two", end="hang", after=2 if api == "chat" else 5)]) as server:
        pieces = stream(server, api)
        assert next(piece for piece in pieces if piece) == "one"
        begun = time.monotonic()
    assert time.monotonic() - begun < 1
    with pytest.raises(openai.APIConnectionError):
        list(pieces)


def test_turns_are_chosen_by_condition() -> None:
    script = Script(
        [
            Turn("from B", when=When(model="b"), times=0),
            Turn("bye", when=When(last="(?i)good ?bye", role="user"), times=0),
            Turn("{last}?", times=0),
        ]
    )
    with ScriptedServer(script) as server, client(server) as c:

        def say(text: str, model: str = "a") -> str | None:
            messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
            return c.chat.completions.create(model=model, messages=messages).choices[0].message.content

        assert [say("hello"), say("Goodbye"), say("hello", "b")] == ["hello?", "bye", "from B"]
        script.answer_next("first")
        assert [say("hello", "b"), say("hello", "b")] == ["first", "from B"]


def test_a_script_is_plain_json(tmp_path) -> None:
    path = tmp_path / "script.json"
    path.write_text(
        '[{"tool_calls": [{"name": "now"}], "when": {"step": 1}}, {"text": "noon", "usage": {"input": 1, "output": 2}}]'
    )
    first, second = Script.load(path).unused
    assert first == Turn(tool_calls=(Call("now"),), when=When(step=1))
    assert second == Turn("noon", usage=Usage(1, 2))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"txt": "x"}]', '[{"when": {"stp": 1}}]'])
def test_a_script_with_a_mistake_is_refused(tmp_path, text: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        Script.load(path)
    assert error.value.hint
