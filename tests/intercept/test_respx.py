"""Calls that respx mocks are calls, too: one exchange each, whichever library it patches."""

from __future__ import annotations

import asyncio

import pytest

from tests.intercept.wire import CHAT, REPLY, Watcher, bodies

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
respx = pytest.importorskip("respx", reason="respx is not installed")

URL = "http://model.invalid" + CHAT


@pytest.mark.parametrize("using", ["httpcore", "httpx"])
def test_a_mocked_call_is_one_exchange(watcher: Watcher, using: str) -> None:
    async def post() -> bytes:
        async with httpx.AsyncClient() as client:
            return bytes((await client.post(URL, json={})).content)

    with respx.mock(using=using) as mock:
        mock.post(URL).mock(return_value=httpx.Response(200, content=REPLY))
        assert httpx.post(URL, json={}).content == REPLY
        assert asyncio.run(post()) == REPLY
        assert mock.calls.call_count == 2
    assert bodies(watcher.seen) == [REPLY] * 2
    assert [exchange.response.end for exchange in watcher.seen] == ["eof"] * 2
