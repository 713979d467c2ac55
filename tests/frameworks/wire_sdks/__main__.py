"""``python -m tests.frameworks.wire_sdks SDK record|answer FILE BASE``: ask in every way.

``record``: the clients are made before the points of interception; what passed is written to FILE. ``answer``: no socket
connects; each request gets what FILE has for it. The last line on stdout is JSON: case -> what came of it, and in
``again`` what passed.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import socket
import sys
from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from otel_agentrec.errors import ReplayDivergence
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.exchanges import sweep
from otel_agentrec.intercept.install import install
from otel_agentrec.intercept.protocol import Exchange, ModelRequest, RecordedResponse
from tests.frameworks.wire_sdks import sdks

CASES = ("json", "stream", "async", "retry", "error", "gzip", "abort", "cut")


class Watcher:
    def __init__(self) -> None:
        self.seen: list[Exchange] = []

    def started(self, request: ModelRequest) -> None: ...

    def ended(self, exchange: Exchange) -> None:
        self.seen.append(exchange)


class Tape:
    """Answers equal requests with what was recorded, in order."""

    def __init__(self, kept: list[dict[str, Any]]) -> None:
        self.left: dict[Any, deque[RecordedResponse]] = defaultdict(deque)
        for one in kept:
            chunks = [(at, base64.b64decode(data)) for at, data in one["chunks"]]
            response = RecordedResponse(
                one["status"], [tuple(h) for h in one["headers"]], chunks, one["end"], one["error"], one["decoded"]
            )
            self.left[one["path"], base64.b64decode(one["body"])].append(response)

    def answer(self, request: ModelRequest) -> RecordedResponse:
        answers = self.left.get((request.path, request.body))
        if not answers:
            raise ReplayDivergence(f"nothing is recorded for {request.path}: {request.body[:300]!r}")
        return answers.popleft()


def kept(exchange: Exchange) -> dict[str, Any]:
    request, response = exchange.request, exchange.response
    return {
        "path": request.path,
        "api": request.api,
        "library": request.library,
        "body": base64.b64encode(request.body).decode(),
        "status": response.status,
        "headers": list(response.headers),
        "chunks": [(at, base64.b64encode(data).decode()) for at, data in response.chunks],
        "end": response.end,
        "error": response.error,
        "decoded": response.decoded,
        "answered": exchange.answered,
    }


def tried(function: Callable[[], str]) -> str:
    try:
        return f"gave {function()}"
    except Exception as error:
        return f"raised {type(error).__name__}"


def play(case: str, asks: sdks.Asks) -> str | None:
    """What came of a case; None: the SDK has no such call."""
    if case == "async":
        if asks.whole_async is None or asks.stream_async is None:
            return None
        return tried(lambda: asyncio.run(_async(asks)))
    if case in ("stream", "cut"):
        return tried(lambda: "".join(map(asks.piece, asks.stream())))
    if case == "abort":
        return tried(lambda: _first(asks))
    return tried(lambda: asks.text(asks.whole()))


def _first(asks: sdks.Asks) -> str:
    """The first piece of a stream that is then closed."""
    stream = asks.stream()
    items = iter(stream)
    text = next(text for text in map(asks.piece, items) if text)
    for thing in (items, stream, getattr(stream, "response", None)):
        if hasattr(thing, "close"):
            thing.close()
    return text


async def _async(asks: sdks.Asks) -> str:
    assert asks.whole_async and asks.stream_async
    whole = asks.text(await asks.whole_async())
    stream = asks.stream_async()
    stream = await stream if hasattr(stream, "__await__") else stream
    return whole + " / " + "".join([asks.piece(item) async for item in stream])


def _only_there(address: Any) -> Callable[[str, Any], None]:
    """An audit hook: sockets connect to this address, or to none."""

    def hook(event: str, args: Any) -> None:
        if event == "socket.connect" and args[0].family != socket.AF_UNIX and args[1] != address:
            raise ConnectionRefusedError(f"no connection to {args[1]} here")
        if event == "socket.getaddrinfo" and (address is None or args[0] not in ("127.0.0.1", b"127.0.0.1")):
            raise ConnectionRefusedError(f"no look-up of {args[0]} here")

    return hook


def main(sdk: str, mode: str, file: Path, base: str) -> None:
    host, _, port = base.rpartition("//")[2].partition(":")
    sys.addaudithook(_only_there((host, int(port)) if mode == "record" else None))
    make = getattr(sdks, sdk)
    if mode == "answer":
        install()
    clients = {case: make(f"{base}/{case}", 1 if case == "retry" else 0) for case in CASES}
    if mode == "record":
        install()
    watcher = Watcher()
    tape = Tape(json.loads(file.read_text())) if mode == "answer" else None
    done = {}
    with using(wire=watcher, models=tape, forbid_unknown=tape is not None):
        for case, asks in clients.items():
            done[case] = play(case, asks)
    del clients, asks
    gc.collect()
    sweep()
    if tape is None:
        file.write_text(json.dumps([kept(exchange) for exchange in watcher.seen]))
    print(json.dumps({"done": done, "again": [kept(exchange) for exchange in watcher.seen]}), flush=True)


main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
