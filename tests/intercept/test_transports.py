"""The transports that people pass themselves."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pytest

from otel_agentrec import AgentRecTransport, AsyncAgentRecTransport
from otel_agentrec.intercept import install
from otel_agentrec.intercept.active import using
from tests.intercept.wire import CHAT, LIBRARIES, REPLY, Tape, Watcher, bodies, json_reply, serving

pytestmark = pytest.mark.parametrize("name", LIBRARIES)
ASK = {"model": "m"}


@pytest.fixture
def http(name: str) -> Any:
    return importlib.import_module(name)


@pytest.mark.parametrize("patched", [False, True], ids=["alone", "in a patched client"])
def test_a_call_is_seen_once_and_answered(http: Any, patched: bool) -> None:
    watcher = Watcher()
    if patched:
        install.install()
    try:
        with serving(json_reply) as server, using(wire=watcher):
            for transport in (AgentRecTransport(), AgentRecTransport(http.HTTPTransport())):
                with http.Client(transport=transport) as client:
                    assert client.post(server.url + CHAT, json=ASK).content == REPLY
        with using(models=Tape(watcher.seen)), http.Client(transport=AgentRecTransport()) as client:
            assert client.post(server.url + CHAT, json=ASK).content == REPLY
    finally:
        install.uninstall()
    assert bodies(watcher.seen) == [REPLY] * 2
    assert len(server.bodies) == 2


def test_an_asynchronous_client_is_seen_and_answered(http: Any) -> None:
    async def post(url: str, transport: Any) -> bytes:
        async with http.AsyncClient(transport=transport) as client:
            return bytes((await client.post(url, json=ASK)).content)

    watcher = Watcher()
    with serving(json_reply) as server, using(wire=watcher):
        url = server.url + CHAT
        assert asyncio.run(post(url, AsyncAgentRecTransport())) == REPLY
        assert asyncio.run(post(url, AsyncAgentRecTransport(http.AsyncHTTPTransport()))) == REPLY
    with using(models=Tape(watcher.seen)):
        assert asyncio.run(post(url, AsyncAgentRecTransport())) == REPLY
    assert bodies(watcher.seen) == [REPLY] * 2


def test_what_it_wraps_is_closed_with_it(http: Any) -> None:
    class Counting(http.MockTransport):  # type: ignore[misc]
        closed = 0

        def close(self) -> None:
            self.closed += 1

        async def aclose(self) -> None:
            self.closed += 1

    def mock() -> Any:
        return Counting(lambda request: http.Response(200))

    async def use(transport: Any) -> None:
        async with http.AsyncClient(transport=AsyncAgentRecTransport(transport)):
            pass

    sync, asynchronous = mock(), mock()
    with http.Client(transport=AgentRecTransport(sync)):
        pass
    asyncio.run(use(asynchronous))
    assert sync.closed >= 1
    assert asynchronous.closed >= 1
