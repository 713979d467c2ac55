"""OpenAI's two APIs through the real SDK against the scripted model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from otel_agentrec.clients.ready import (
    AsyncOpenAIChatClient,
    AsyncOpenAIResponsesClient,
    OpenAIChatClient,
    OpenAIResponsesClient,
)
from otel_agentrec.demo.script import Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import UsageError
from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentPrompt

from .scenes import EXPECTED, PROMPT, SCRIPT, WEATHER, Ear, assert_heard, next_prompt, told

openai = pytest.importorskip("openai")

CLIENTS = {
    "chat": (OpenAIChatClient, AsyncOpenAIChatClient),
    "responses": (OpenAIResponsesClient, AsyncOpenAIResponsesClient),
}


class Asking:
    """A client of either kind, called the same way."""

    def __init__(self, api: str, kind: str, server: ScriptedServer, **options: Any) -> None:
        sdk = {"threads": openai.OpenAI, "loop": openai.AsyncOpenAI}[kind]
        self._sdk = lambda: sdk(base_url=server.base_url, api_key="none", max_retries=0, timeout=10)
        self._client = CLIENTS[api][kind == "loop"]
        self._options = options

    def __call__(self, prompt: AgentPrompt, listener: Any = None, *, stream: bool = False) -> AgentModelResult:
        async def waited() -> AgentModelResult:
            client = self._client(self._sdk(), **self._options)
            answer: Any = client.create_stream(prompt, listener) if stream else client.create(prompt)
            return await answer if inspect.isawaitable(answer) else answer

        return asyncio.run(waited())


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(SCRIPT, seed="s") as running:
        yield running


@pytest.fixture(params=["chat", "responses"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["threads", "loop"])
def ask(request: pytest.FixtureRequest, api: str, server: ScriptedServer) -> Asking:
    return Asking(api, request.param, server)


def test_the_answer_has_all_that_the_model_said(ask: Asking) -> None:
    result = ask(PROMPT)
    assert told(result) == EXPECTED
    assert result.raw_response["model"] == "m"
    assert result.usage is not None and result.usage["total_tokens"] == 29
    assert result.chunks is None


def test_a_stream_is_heard_on_every_channel_and_ends_as_the_same_answer(ask: Asking) -> None:
    ear, whole = Ear(), ask(PROMPT)
    result = ask(PROMPT, ear, stream=True)
    assert told(result) == EXPECTED
    assert (result.usage, result.finish_reasons) == (whole.usage, whole.finish_reasons)
    assert_heard(ear, result)
    assert told(ask(PROMPT, stream=True)) == EXPECTED, "nobody needs to listen"


def test_the_merged_stream_is_the_answer_as_it_comes_whole(ask: Asking) -> None:
    def timeless(value: Any) -> Any:
        """Without times, ids that the server makes, and nulls."""
        if isinstance(value, dict):
            left_out = ("id", "created", "created_at", "system_fingerprint")
            return {k: timeless(v) for k, v in value.items() if k not in left_out and v not in (None, [])}
        return [timeless(v) for v in value] if isinstance(value, list) else value

    assert timeless(ask(PROMPT, stream=True).raw_response) == timeless(ask(PROMPT).raw_response)


def test_the_loop_goes_on_with_what_the_model_and_the_tools_said(ask: Asking, server: ScriptedServer) -> None:
    assert ask(next_prompt(ask(PROMPT))).output_text == 'Rain: yes; {"at": 9}'
    turns = server.requests[-1].body
    assert turns is not None
    assert len(turns.get("messages") or turns.get("input")) == (4 if "messages" in turns else 7)


def test_a_listener_of_an_event_loop_may_wait(server: ScriptedServer, api: str) -> None:
    heard: list[str] = []

    class Slow:
        async def on_chunk(self, chunk: AgentModelChunk) -> None:
            await asyncio.sleep(0)
            heard.append(chunk.channel)

    result = Asking(api, "loop", server)(PROMPT, Slow(), stream=True)
    assert heard == [chunk.channel for chunk in result.chunks or ()]


def test_what_a_listener_raises_ends_the_call(ask: Asking) -> None:
    class Enough(Exception):
        pass

    class Deaf:
        def on_chunk(self, chunk: AgentModelChunk) -> None:
            raise Enough

    with pytest.raises(Enough):
        ask(PROMPT, Deaf(), stream=True)


def test_chat_is_asked_in_its_own_words(server: ScriptedServer) -> None:
    Asking("chat", "threads", server)(PROMPT)
    assert server.requests[-1].body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "system", "content": "In English."},
            {"role": "user", "content": "Will it rain?"},
        ],
        "tools": [{"type": "function", "function": {k: v for k, v in WEATHER.items() if k != "type"}}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_completion_tokens": 77,
        "user": "u1",
    }


def test_responses_are_asked_in_their_own_words(server: ScriptedServer) -> None:
    Asking("responses", "threads", server)(PROMPT)
    assert server.requests[-1].body == {
        "model": "m",
        "input": [{"role": "user", "content": "Will it rain?"}],
        "instructions": "Be brief.\n\nIn English.",
        "tools": [WEATHER],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_output_tokens": 77,
        "user": "u1",
    }


def test_whatever_the_sdk_does_not_know_goes_out_all_the_same(ask: Asking, server: ScriptedServer) -> None:
    ask(AgentPrompt("m", "Hello", temperature=0, reasoning={"effort": "low"}, extra_body={"top_k": 3, "seed": 1}))
    body = server.requests[-1].body
    assert body is not None
    assert (body["temperature"], body["top_k"], body["seed"]) == (0, 3, 1)
    assert body.get("reasoning_effort", body.get("reasoning")) in ("low", {"effort": "low"})


def test_names_that_differ_between_servers_can_be_chosen(server: ScriptedServer) -> None:
    Asking("chat", "threads", server, system_role="developer", max_tokens_name="max_tokens")(PROMPT)
    body = server.requests[-1].body
    assert body is not None
    assert (body["messages"][0]["role"], body["max_tokens"]) == ("developer", 77)


@pytest.mark.parametrize(
    ("turn", "error"),
    [
        (Turn("no", status=429), "RateLimitError"),
        (Turn("no", status=500), "InternalServerError"),
        (Turn("Hello there", end="cut", after=2), "APIConnectionError|APIError|RemoteProtocolError"),
        (Turn("Hello there", end="garbage", after=2), "JSONDecodeError|APIResponseValidationError|ValueError"),
    ],
    ids=["429", "500", "cut", "garbage"],
)
def test_errors_reach_the_caller_as_the_sdk_raises_them(api: str, turn: Turn, error: str) -> None:
    with ScriptedServer([turn]) as server, pytest.raises(Exception) as caught:
        Asking(api, "threads", server)(PROMPT, stream=True)
    assert caught.type.__name__ in error.split("|")
    assert not caught.type.__module__.startswith("otel_agentrec")


def test_a_client_for_the_other_world_is_refused_with_the_name_of_the_right_one(
    api: str, server: ScriptedServer
) -> None:
    sync, of_loop = CLIENTS[api]
    with pytest.raises(UsageError) as caught:
        sync(openai.AsyncOpenAI(base_url=server.base_url, api_key="none")).create(PROMPT)
    assert caught.value.hint == f"use {of_loop.__name__}"
    with pytest.raises(UsageError) as caught:
        asyncio.run(of_loop(openai.OpenAI(base_url=server.base_url, api_key="none")).create(PROMPT))
    assert caught.value.hint == f"use {sync.__name__}"


def test_an_instrumentation_that_comes_after_the_client_sees_its_calls(server: ScriptedServer) -> None:
    sdk = openai.OpenAI(base_url=server.base_url, api_key="none")
    client, seen = OpenAIChatClient(sdk), []
    real = sdk.chat.completions.create

    def watched(*args: Any, temperature: Any = None, **options: Any) -> Any:
        seen.append(options["model"])
        return real(*args, **options)

    sdk.chat.completions.create = watched
    client.create(PROMPT)
    assert seen == ["m"]
