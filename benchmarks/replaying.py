"""A recorded call, answered: the time between the point that asks and the answer, whatever the number of recorded calls."""

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


def rows(quick: bool) -> Iterator[tuple[str, float]]:
    few = min(_microseconds(FEW) for _ in range(3))
    many = min(_microseconds(8 * FEW) for _ in range(1 if quick else 3))
    yield ROWS[0], few
    yield ROWS[1], many / few


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
        bodies = [json.dumps({"model": "m", "messages": [message("user", 2048, n)]}).encode() for n in range(count)]
        with configure(where / "rec", wire=True):
            said = answer({"role": "assistant", "parts": [{"content": "Fine."}]}, 1, False)
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
