"""aiohttp sessions: what arrives is seen, and can be given again."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from otel_agentrec.errors import ReplayDivergence
from otel_agentrec.intercept import install
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.protocol import RecordedResponse
from tests.intercept.wire import (
    CHAT,
    EVENTS,
    REPLY,
    Fixed,
    Handler,
    Tape,
    Watcher,
    bodies,
    chunks,
    event_stream,
    gzip_reply,
    json_reply,
    serving,
)

aiohttp = pytest.importorskip("aiohttp", reason="aiohttp is not installed")
ASK = {"model": "m"}
NOWHERE = "http://nowhere.invalid" + CHAT


def post(url: str, how: str = "read", **more: Any) -> Any:
    async def run() -> Any:
        async with aiohttp.ClientSession(**more) as session, session.post(url, json=ASK) as reply:
            if how == "read":
                return await reply.read()
            if how == "lines":
                return [line async for line in reply.content]
            if how == "first":
                return await reply.content.readany()
            return [chunk async for chunk in reply.content.iter_any()]

    return asyncio.run(run())


def slow_stream(handler: Handler) -> None:
    handler.stream(EVENTS, pause=0.02)


def cut_stream(handler: Handler) -> None:
    handler.stream(EVENTS[:2], cut=True)


@pytest.mark.parametrize("route", [json_reply, gzip_reply, event_stream])
def test_a_call_is_seen(watcher: Watcher, route: Any) -> None:
    with serving(route) as server:
        got = post(server.url + CHAT + "?key=s")
    seen = watcher.only
    assert bodies([seen]) == [got]
    assert seen.response.decoded == (route is gzip_reply)
    assert (seen.response.status, seen.response.end) == (200, "eof")
    assert (seen.request.method, seen.request.host, seen.request.path) == ("POST", server.host, CHAT)
    assert (seen.request.query, seen.request.api, seen.request.library) == (("key",), "openai.chat", "aiohttp")
    assert seen.request.body == server.bodies[0]


def test_chunks_are_seen_as_they_arrive(watcher: Watcher) -> None:
    with serving(slow_stream) as server:
        assert post(server.url + CHAT, "chunks") == EVENTS
    assert chunks(watcher.only) == EVENTS
    assert watcher.only.response.chunks[-1][0] - watcher.only.response.chunks[0][0] > 50e6


def test_encoded_bodies_are_kept_so_when_the_session_leaves_them_so(watcher: Watcher) -> None:
    with serving(gzip_reply) as server:
        got = post(server.url + CHAT, auto_decompress=False)
    assert bodies(watcher.seen) == [got] != [REPLY]
    assert not watcher.only.response.decoded


def test_streams_that_are_cut_or_left_are_told_so(watcher: Watcher) -> None:
    with serving([cut_stream, slow_stream]) as server:
        with pytest.raises(aiohttp.ClientPayloadError):
            post(server.url + CHAT)
        post(server.url + CHAT, "first")
    cut, left = (exchange.response for exchange in watcher.seen)
    assert (cut.end, left.end) == ("error", "closed")
    assert cut.error is not None
    assert cut.error["type"] == "ClientPayloadError"
    assert bodies(watcher.seen)[0] == b"".join(EVENTS[:2])


def test_a_dropped_response_is_told(watcher: Watcher) -> None:
    async def run(url: str) -> None:
        async with aiohttp.ClientSession() as session:
            await session.post(url, json=ASK)

    with serving(slow_stream) as server:
        asyncio.run(run(server.url + CHAT))
    gc.collect()
    assert watcher.only.response.end in ("gone", "closed")


def test_nothing_listens(watcher: Watcher) -> None:
    with serving(json_reply) as server:
        pass
    with pytest.raises(aiohttp.ClientConnectorError):
        post(server.url + CHAT)
    assert watcher.only.response.status is None


def test_a_redirect_is_an_exchange_of_its_own(watcher: Watcher) -> None:
    def away(handler: Handler) -> None:
        handler.whole(b"", status=307, location=CHAT)

    with serving([away, json_reply]) as server:
        assert post(server.url + CHAT) == REPLY
    assert [exchange.response.status for exchange in watcher.seen] == [307, 200]
    with using(models=Tape(watcher.seen)):
        assert post(server.url + CHAT) == REPLY


def test_users_middlewares_run_outside_of_ours(watcher: Watcher) -> None:
    async def theirs(request: Any, handler: Any) -> Any:
        request.headers["openai-beta"] = "theirs"
        return await handler(request)

    with serving(json_reply) as server:
        post(server.url + CHAT, middlewares=[theirs])
    assert watcher.only.request.headers["openai-beta"] == "theirs"


@pytest.mark.parametrize("how", ["read", "chunks", "lines"])
@pytest.mark.parametrize("route", [json_reply, gzip_reply, slow_stream])
def test_an_answer_reads_as_the_real_one(watcher: Watcher, route: Any, how: str) -> None:
    with serving(route) as server:
        real = post(server.url + CHAT, how)
    again = Watcher()
    with using(models=Tape(watcher.seen), wire=again):
        assert post(server.url + CHAT, how) == real
    assert again.only.answered
    assert again.only.response.end == "eof"
    assert chunks(again.only) == chunks(watcher.only)


def test_a_recorded_cut_and_a_recorded_failure_are_raised_again(watcher: Watcher) -> None:
    with serving(cut_stream) as server, pytest.raises(aiohttp.ClientPayloadError) as real:
        post(server.url + CHAT)
    with using(models=Tape(watcher.seen)), pytest.raises(aiohttp.ClientPayloadError) as again:
        post(server.url + CHAT)
    assert str(again.value) == str(real.value)
    gone = RecordedResponse(None, end="error", error={"type": "ServerDisconnectedError", "message": "m"})
    with using(models=Fixed(gone)), pytest.raises(aiohttp.ServerDisconnectedError):
        post(NOWHERE)


def test_what_httpx_recorded_is_decoded(points: None) -> None:
    import gzip

    answer = RecordedResponse(200, [("content-encoding", "gzip")], [(0, gzip.compress(REPLY))])
    with using(models=Fixed(answer)):
        assert post(NOWHERE) == REPLY


def test_refusals_pass(points: None) -> None:
    with using(models=Tape([])), pytest.raises(ReplayDivergence, match="nothing is recorded"):
        post(NOWHERE)
    with using(forbid_unknown=True), pytest.raises(ReplayDivergence, match="no known model call"):
        post("http://nowhere.invalid/v1/traces")


def test_a_version_without_middlewares_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def _request(self: Any, method: str, url: str) -> None: ...

    monkeypatch.setattr(aiohttp.ClientSession, "_request", _request)
    install.install()
    try:
        (row,) = (row for row in install.coverage() if row["library"] == "aiohttp")
    finally:
        install.uninstall()
    assert not row["covered"]
    assert "middlewares" in row["reason"]
    assert aiohttp.ClientSession._request is _request


def test_a_defect_of_the_point_lets_the_call_pass(watcher: Watcher, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    with serving(json_reply) as server:
        for place in ("describe", "_tap"):
            monkeypatch.setattr(f"otel_agentrec.intercept.aiohttp_points.{place}", broken)
            assert post(server.url + CHAT) == REPLY
            monkeypatch.undo()


def test_under_httpx_it_is_one_exchange_of_httpx(watcher: Watcher) -> None:
    httpx = pytest.importorskip("httpx", reason="httpx is not installed")
    adapter = pytest.importorskip("httpx_aiohttp", reason="httpx-aiohttp is not installed")

    async def ask(url: str) -> list[bytes]:
        client = httpx.AsyncClient(transport=adapter.AiohttpTransport())
        async with client, client.stream("POST", url, json=ASK) as reply:
            return [part async for part in reply.aiter_raw()]

    with serving(slow_stream) as server:
        assert b"".join(asyncio.run(ask(server.url + CHAT))) == b"".join(EVENTS)
    assert watcher.only.request.library == "httpx"
    assert watcher.only.response.end == "eof"
    with using(models=Tape(watcher.seen)):
        assert b"".join(asyncio.run(ask(server.url + CHAT))) == b"".join(EVENTS)
