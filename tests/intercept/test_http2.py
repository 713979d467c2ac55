"""HTTP/2, as it is spoken without TLS by those who know: seen and answered as HTTP/1.1 is."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from otel_agentrec.intercept.active import using
from tests.intercept.wire import CHAT, EVENTS, Tape, Watcher, chunks

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("h2", reason="h2 is not installed")

import h2.config  # type: ignore[import-not-found]  # noqa: E402
import h2.connection  # type: ignore[import-not-found]  # noqa: E402
import h2.events  # type: ignore[import-not-found]  # noqa: E402


def talk(connection: socket.socket) -> None:
    """Answer each request of a connection with the events of a stream, a frame each."""
    state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    state.initiate_connection()
    connection.sendall(state.data_to_send())
    while data := connection.recv(65536):
        for event in state.receive_data(data):
            if isinstance(event, h2.events.StreamEnded):
                state.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/event-stream")])
                for at, part in enumerate(EVENTS):
                    state.send_data(event.stream_id, part, end_stream=at == len(EVENTS) - 1)
        connection.sendall(state.data_to_send())


@pytest.fixture
def url() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}{CHAT}"
        listening.shutdown(socket.SHUT_RDWR)


def test_a_call_is_one_exchange_and_can_be_answered(watcher: Watcher, url: str) -> None:
    def post() -> Any:
        with httpx.Client(http1=False, http2=True) as client, client.stream("POST", url, json={}) as reply:
            return reply.http_version, list(reply.iter_raw())

    async def async_post() -> list[bytes]:
        async with httpx.AsyncClient(http1=False, http2=True) as client, client.stream("POST", url, json={}) as reply:
            return [part async for part in reply.aiter_raw()]

    assert post() == ("HTTP/2", EVENTS)
    assert asyncio.run(async_post()) == EVENTS
    assert [chunks(exchange) for exchange in watcher.seen] == [EVENTS] * 2
    with using(models=Tape(watcher.seen)):
        assert post()[1] == EVENTS
        assert asyncio.run(async_post()) == EVENTS
