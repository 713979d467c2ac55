"""Bedrock through boto3: JSON and event streams are seen as they came off the connection, and answered."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.demo.script import Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import ReplayDivergence
from otel_agentrec.intercept.active import using
from tests.intercept.wire import Tape, Watcher, bodies, chunks

boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")

MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"
ASK: Any = {"modelId": MODEL, "messages": [{"role": "user", "content": [{"text": "Hi"}]}]}


def client(url: str) -> Any:
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="eu-north-1",
        aws_access_key_id="AKIAEXAMPLE",
        aws_secret_access_key="secret",
    )


def converse(url: str) -> str:
    return str(client(url).converse(**ASK)["output"]["message"]["content"][0]["text"])


def converse_stream(url: str) -> list[Any]:
    return list(client(url).converse_stream(**ASK)["stream"])


def test_converse_is_seen_and_answered(watcher: Watcher) -> None:
    with ScriptedServer([Turn("Hello.")]) as server:
        url = server.url
        assert converse(url) == "Hello."
    seen = watcher.only
    assert (seen.request.api, seen.request.library) == ("bedrock.converse", "urllib3")
    assert seen.request.path == "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"
    assert seen.response.end == "eof"
    assert "authorization" not in seen.request.headers
    with using(models=Tape(watcher.seen)):
        assert converse(url) == "Hello."


def test_an_event_stream_is_seen_frame_by_frame_and_answered(watcher: Watcher) -> None:
    with ScriptedServer([Turn("One two three.")]) as server:
        url = server.url
        real = converse_stream(url)
    assert len(real) > 3
    seen = watcher.only
    assert seen.response.end == "eof"
    assert len(chunks(seen)) == len(real)
    again = Watcher()
    with using(models=Tape(watcher.seen), wire=again):
        assert converse_stream(url) == real
    assert chunks(again.only) == chunks(seen)


def test_throttling_and_the_retry_are_two_exchanges(watcher: Watcher) -> None:
    with ScriptedServer([Turn("slow down", status=429), Turn("Hello.")]) as server:
        assert converse(server.url) == "Hello."
    assert [exchange.response.status for exchange in watcher.seen] == [429, 200]
    assert all(bodies(watcher.seen))


def test_a_refusal_passes_in_one_try(points: None) -> None:
    asked: list[Any] = []

    class Asking:
        def answer(self, request: Any) -> Any:
            asked.append(request)
            return Tape([]).answer(request)

    with using(models=Asking()), pytest.raises(ReplayDivergence):
        converse("http://nowhere.invalid")
    assert len(asked) == 1
