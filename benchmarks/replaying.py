"""A recorded call, answered: the time between the point that asks and the answer, whatever the number of recorded calls.

respx is asked for the same: which of as many known requests is this one, and what is its answer; no HTTP client around either.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from benchmarks.samples import message
from benchmarks.wire import answer, exchange

ROWS = ("replayed call", "replayed call, 8 times as many")
FEW = 100
URL = "http://model.invalid/v1/chat/completions"
SAID = {"role": "assistant", "parts": [{"content": "Fine."}]}


def rows(quick: bool) -> Iterator[tuple[str, float]]:
    few = min(_microseconds(FEW) for _ in range(3))
    many = min(_microseconds(8 * FEW) for _ in range(1 if quick else 3))
    yield ROWS[0], min(_of_respx(FEW) for _ in range(3)) / few
    yield ROWS[1], many / few


def _bodies(count: int) -> list[bytes]:
    return [json.dumps({"model": "m", "messages": [message("user", 2048, n)]}).encode() for n in range(count)]


def _of_respx(count: int) -> float:
    """The same of respx with a route for each request, by its content."""
    import httpx
    import respx

    bodies, router = _bodies(count), respx.Router(assert_all_called=False)
    for body in bodies:
        router.post(URL, content=body).respond(content=b"".join(answer(SAID, 1, False)))
    asked = [httpx.Request("POST", URL, content=body) for body in bodies]
    begun = process_time()
    for request in asked:
        router.handler(request)
    return (process_time() - begun) / count * 1e6


def _microseconds(count: int) -> float:
    """CPU time of one answer, of a recording with so many calls of 2 KB."""
    from otel_agentrec.capture.recorder import Recorder
    from otel_agentrec.intercept.active import ACTIVE
    from otel_agentrec.nodes.exchange import ModelRequest
    from otel_agentrec.otel.recording import configure
    from otel_agentrec.replay.answering import Replay
    from otel_agentrec.replay.recorded_run import load
    from otel_agentrec.settings import Settings

    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        bodies = _bodies(count)
        with configure(where / "rec", wire=True):
            said = answer(SAID, 1, False)
            for body in bodies:
                exchange(ACTIVE.wire, body, said, False)
        kept = {"content-type": "application/json"}
        asked = [
            ModelRequest("POST", "h", "/v1/chat/completions", (), kept, body, "openai.chat", "httpx2", 0)
            for body in bodies
        ]
        recorder = Recorder(Settings.load(path=where / "spans"))
        replay = Replay(load(where / "rec"), recorder)
        begun = process_time()
        for request in asked:
            replay.models.answer(request)
        took = process_time() - begun
        recorder.shutdown()
        assert replay.finish().outcome == "same"
        return took / count * 1e6
