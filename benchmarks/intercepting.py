"""What the HTTP points add to a call and to a chunk of a stream, in an httpx2 client whose transport answers at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import httpx2

from benchmarks.measure import cpu_seconds
from benchmarks.samples import message
from otel_agentrec.intercept import install
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.protocol import Exchange, ModelRequest

ROWS = ("intercepted call", "intercepted chunk")
URL = "http://model.invalid/v1/chat/completions"
ASK = json.dumps({"model": "m", "messages": [message("user", 2048, 1)]}).encode()
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"word"}}]}\n\n'
CHUNKS = 2000


class Keeping:
    """An observer that does what a recorder does while the program waits: it keeps what it is told."""

    def __init__(self) -> None:
        self.last: Exchange | None = None

    def started(self, request: ModelRequest) -> None: ...

    def ended(self, exchange: Exchange) -> None:
        self.last = exchange


class Body(httpx2.SyncByteStream):
    def __init__(self, chunks: int) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self._chunks):
            yield CHUNK


class Model(httpx2.BaseTransport):
    """Answers with a number of chunks."""

    def __init__(self, chunks: int) -> None:
        self._chunks = chunks

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Body(self._chunks))


def rows(quick: bool) -> Iterator[tuple[str, float]]:
    rounds = 9 if quick else 25
    install.install()
    try:
        call = added(1, rounds)
        yield ROWS[0], call * 1e3
        yield ROWS[1], (added(CHUNKS, rounds) - call) / (CHUNKS - 1) * 1e6
    finally:
        install.uninstall()


def added(chunks: int, rounds: int) -> float:
    """CPU seconds that a call with so many chunks takes longer when it is watched."""
    with httpx2.Client(transport=Model(chunks)) as client:

        def call() -> None:
            with client.stream("POST", URL, content=ASK, headers={"content-type": "application/json"}) as reply:
                for _ in reply.iter_raw():
                    pass

        def watched(observer: Keeping | None) -> Callable[[], None]:
            def run() -> None:
                ACTIVE.wire = observer
                try:
                    call()
                finally:
                    ACTIVE.wire = None

            return run

        took = cpu_seconds({"off": watched(None), "on": watched(Keeping())}, rounds=rounds)
    return took["on"] - took["off"]
