"""The scripted model in the words of Anthropic, Google, AWS and Mistral: whole answers, streams, failures."""

from __future__ import annotations

import json
import struct
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from otel_agentrec.demo.embeddings import vector
from otel_agentrec.demo.script import Call, Turn, Usage, When
from otel_agentrec.demo.server import ScriptedServer

Json = Any

BOTH = Turn(
    "It may rain.",
    tool_calls=[Call("weather", {"city": "Oslo"}, id="c1"), Call("trains", {"to": "Ås"}, id="c2")],
    reasoning="I had better look.",
    usage=Usage(20, 9, cached=5, reasoning=3),
    times=0,
)
SCRIPT = [
    Turn("slow down", status=429, headers={"retry-after": "0"}, when=When(last="FAIL"), times=0),
    Turn("Got {tool_results}.", when=When(role="tool", step=2), times=0),
    BOTH,
]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(SCRIPT, seed="s") as running:
        yield running


def post(server: ScriptedServer, path: str, body: Json, agent: str = "") -> tuple[int, bytes, dict[str, str]]:
    request = urllib.request.Request(
        server.url + path, json.dumps(body).encode(), {"content-type": "application/json", "user-agent": agent}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read(), {k.lower(): v for k, v in answer.headers.items()}
    except urllib.error.HTTPError as error:
        return error.code, error.read(), {k.lower(): v for k, v in error.headers.items()}


def asked(server: ScriptedServer, path: str, body: Json, agent: str = "") -> Json:
    return json.loads(post(server, path, body, agent)[1])


def sse(data: bytes) -> list[Json]:
    lines = data.decode().replace("\r\n", "\n").split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ") and line != "data: [DONE]"]


def frames(data: bytes) -> Iterator[tuple[str, Json]]:
    """Messages of AWS's event stream encoding, both checksums checked."""
    while data:
        whole, head = struct.unpack(">II", data[:8])
        assert zlib.crc32(data[:8]) == struct.unpack(">I", data[8:12])[0]
        assert zlib.crc32(data[: whole - 4]) == struct.unpack(">I", data[whole - 4 : whole])[0]
        headers, left = {}, data[12 : 12 + head]
        while left:
            name = left[1 : 1 + left[0]].decode()
            left = left[1 + left[0] :]
            assert left[0] == 7
            size = struct.unpack(">H", left[1:3])[0]
            headers[name], left = left[3 : 3 + size].decode(), left[3 + size :]
        yield headers[":event-type"], json.loads(data[12 + head : whole - 4])
        data = data[whole:]


# --- Anthropic ------------------------------------------------------------------------------------------------------------

ASK = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "Will it rain?"}]}


def test_a_message_of_anthropic_has_a_block_for_each_thing_said(server: ScriptedServer) -> None:
    said = asked(server, "/v1/messages", ASK)
    tail = said["id"].removeprefix("msg_")
    assert said["content"] == [
        {"type": "thinking", "thinking": "I had better look.", "signature": f"signed-{tail}"},
        {"type": "text", "text": "It may rain."},
        {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
        {"type": "tool_use", "id": "c2", "name": "trains", "input": {"to": "Ås"}},
    ]
    assert (said["stop_reason"], said["model"]) == ("tool_use", "claude")
    assert said["usage"] == {
        "input_tokens": 15,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 5,
        "output_tokens": 9,
    }


def test_a_stream_of_anthropic_adds_up_to_the_message(server: ScriptedServer) -> None:
    events = sse(post(server, "/v1/messages", {**ASK, "stream": True})[1])
    assert [events[0]["type"], events[-2]["type"], events[-1]["type"]] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    joined = {
        kind: "".join(d[key] for d in deltas if d["type"] == kind)
        for kind, key in [("text_delta", "text"), ("thinking_delta", "thinking"), ("input_json_delta", "partial_json")]
    }
    assert joined == {
        "text_delta": "It may rain.",
        "thinking_delta": "I had better look.",
        "input_json_delta": '{"city": "Oslo"}{"to": "Ås"}',
    }
    assert events[-2]["usage"] == {"output_tokens": 9}


def test_results_for_anthropic_are_the_second_step(server: ScriptedServer) -> None:
    results = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "rain"},
        {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "9:00"}]},
    ]
    said = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {}}]}
    messages = [*ASK["messages"], said, {"role": "user", "content": results}]
    assert asked(server, "/v1/messages", {**ASK, "messages": messages})["content"][0]["text"] == "Got rain; 9:00."


# --- Gemini ---------------------------------------------------------------------------------------------------------------

CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "Will it rain?"}]}]}


def test_gemini_is_asked_for_the_model_in_the_path(server: ScriptedServer) -> None:
    said = asked(server, "/v1beta/models/gemini-3:generateContent", CONTENTS)
    assert said["modelVersion"] == "gemini-3"
    assert said["candidates"][0]["content"]["parts"] == [
        {"text": "I had better look.", "thought": True},
        {"text": "It may rain."},
        {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}},
        {"functionCall": {"id": "c2", "name": "trains", "args": {"to": "Ås"}}},
    ]
    assert said["usageMetadata"]["thoughtsTokenCount"] == 3


def test_a_stream_of_gemini_adds_up_to_the_answer(server: ScriptedServer) -> None:
    chunks = sse(post(server, "/v1beta/models/gemini-3:streamGenerateContent?alt=sse", CONTENTS)[1])
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    assert "".join(p.get("text", "") for p in parts if not p.get("thought")) == "It may rain."
    assert [p["functionCall"]["name"] for p in parts if "functionCall" in p] == ["weather", "trains"]
    assert [c["candidates"][0].get("finishReason") for c in chunks][-2:] == [None, "STOP"]
    result = {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"result": "rain"}}}]}
    said = {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {}}}]}
    answer = asked(
        server, "/v1beta/models/gemini-3:generateContent", {"contents": [*CONTENTS["contents"], said, result]}
    )
    assert answer["candidates"][0]["content"]["parts"] == [{"text": "Got rain."}]


# --- Bedrock --------------------------------------------------------------------------------------------------------------

CONVERSE = {"messages": [{"role": "user", "content": [{"text": "Will it rain?"}]}]}
MODEL = "/model/anthropic.claude%3A0"


def test_converse_answers_with_blocks_of_its_own(server: ScriptedServer) -> None:
    said = asked(server, f"{MODEL}/converse", CONVERSE)
    content = said["output"]["message"]["content"]
    assert content[0]["reasoningContent"]["reasoningText"]["text"] == "I had better look."
    assert content[1:] == [
        {"text": "It may rain."},
        {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Oslo"}}},
        {"toolUse": {"toolUseId": "c2", "name": "trains", "input": {"to": "Ås"}}},
    ]
    results = [
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "rain"}]}},
        {"toolResult": {"toolUseId": "c2", "content": [{"json": {"at": 9}}]}},
    ]
    messages = [*CONVERSE["messages"], said["output"]["message"], {"role": "user", "content": results}]
    answer = asked(server, f"{MODEL}/converse", {"messages": messages})
    assert answer["output"]["message"]["content"] == [{"text": 'Got rain; {"at": 9}.'}]


def test_a_stream_of_converse_is_framed_and_adds_up_to_the_answer(server: ScriptedServer) -> None:
    status, data, headers = post(server, f"{MODEL}/converse-stream", CONVERSE)
    events = list(frames(data))
    assert (status, headers["content-type"]) == (200, "application/vnd.amazon.eventstream")
    assert [events[0][0], events[-2], events[-1][0]] == [
        "messageStart",
        ("messageStop", {"stopReason": "tool_use"}),
        "metadata",
    ]
    deltas = [payload["delta"] for kind, payload in events if kind == "contentBlockDelta"]
    assert "".join(d.get("text", "") for d in deltas) == "It may rain."
    assert "".join(d["toolUse"]["input"] for d in deltas if "toolUse" in d) == '{"city": "Oslo"}{"to": "Ås"}'


def test_invoke_speaks_the_words_of_the_model(server: ScriptedServer) -> None:
    body = {"anthropic_version": "bedrock-2023-05-31", **{k: v for k, v in ASK.items() if k != "model"}}
    said = asked(server, f"{MODEL}/invoke", body)
    assert (said["type"], said["model"]) == ("message", "anthropic.claude:0")
    kinds = {kind for kind, _ in frames(post(server, f"{MODEL}/invoke-with-response-stream", body)[1])}
    assert kinds == {"chunk"}


# --- the others -----------------------------------------------------------------------------------------------------------


def test_mistral_gets_calls_whole_and_the_usage_with_the_end(server: ScriptedServer) -> None:
    chunks = sse(post(server, "/v1/chat/completions", {**ASK, "stream": True}, "mistral-client-python/3.7.0")[1])
    calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert [call["function"]["arguments"] for call in calls] == ['{"city": "Oslo"}', '{"to": "Ås"}']
    assert (chunks[-1]["choices"][0]["finish_reason"], chunks[-1]["usage"]["prompt_tokens"]) == ("tool_calls", 20)


def test_embeddings_need_no_turn_and_use_none_up() -> None:
    with ScriptedServer([Turn("Hello.")]) as server:
        said = asked(server, "/v1/embeddings", {"model": "e", "input": ["a", "b"]})
        assert [item["embedding"] for item in said["data"]] == [vector("a"), vector("b")]
        assert [turn.text for turn in server.script.unused] == ["Hello."]
        server.script.add(Turn("no", status=500, when=When(api="embeddings")))
        assert post(server, "/v1/embeddings", {"model": "e", "input": "a"})[0] == 500


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "FAIL"}]}, "rate_limit_exceeded"),
        ("/v1/messages", {"messages": [{"role": "user", "content": "FAIL"}]}, "rate_limit_error"),
        ("/v1beta/models/m:generateContent", {"contents": [{"parts": [{"text": "FAIL"}]}]}, "RESOURCE_EXHAUSTED"),
        (f"{MODEL}/converse", {"messages": [{"role": "user", "content": [{"text": "FAIL"}]}]}, "ThrottlingException"),
    ],
)
def test_a_failure_is_told_as_the_provider_tells_it(server: ScriptedServer, path: str, body: Json, kind: str) -> None:
    status, data, headers = post(server, path, body)
    assert (status, headers["retry-after"]) == (429, "0")
    assert "slow down" in data.decode()
    assert kind in data.decode() + headers.get("x-amzn-errortype", "")


def test_a_path_of_no_api_is_not_found(server: ScriptedServer) -> None:
    assert post(server, "/v1beta/models/m:countTokens", {})[0] == 404
    assert post(server, "/model/m/apply", {})[0] == 404
