"""Bytes on disk per way in which a chat history grows, and how they grow when the run is twice as long.

The figure is (bytes − 3 KB per call) / transcript, where the transcript is each message once, as JSON.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.samples import message
from benchmarks.spans import model_call, provider

Json = Any
Call = tuple[str, list[Json], Json]
PER_CALL = 3 * 1024


class Messages:
    """New messages of 1 to 4 KB, each counted once."""

    def __init__(self) -> None:
        self.transcript = 0
        self._made = 0
        self._sizes = random.Random(7)

    def new(self, role: str, size: int | None = None) -> Json:
        self._made += 1
        made = message(role, size or self._sizes.randint(1024, 4096), self._made)
        self.transcript += len(json.dumps(made, ensure_ascii=False).encode())
        return made


def append(calls: int, make: Messages) -> Iterator[Call]:
    yield from _grow(calls, make, lambda history: history)


def window(width: int) -> Callable[[int, Messages], Iterator[Call]]:
    def behaviour(calls: int, make: Messages) -> Iterator[Call]:
        yield from _grow(calls, make, lambda history: history[-width:])

    return behaviour


def compaction(calls: int, make: Messages) -> Iterator[Call]:
    """Past 60 messages all but the last ten become one summary."""

    def shorten(history: list[Json]) -> list[Json]:
        if len(history) > 60:
            history[:-10] = [make.new("user", 2048)]
        return history

    yield from _grow(calls, make, shorten)


def cleared(calls: int, make: Messages) -> Iterator[Call]:
    """Every call follows a tool result; all results but the last six are blanked, one more with each call."""
    history: list[Json] = [make.new("user")]
    for n in range(calls):
        old = [i for i, m in enumerate(history) if m["role"] == "tool"][:-6]
        for i in old:
            history[i] = {"role": "tool", "parts": [{"type": "text", "content": f"[result {i} cleared]"}]}
        reply = make.new("assistant")
        yield f"c{n}", list(history), reply
        history += [reply, make.new("tool")]


def interleaved(calls: int, make: Messages) -> Iterator[Call]:
    """Two agents of one conversation call in turns, each with a history of its own."""
    agents = [_grow(calls // 2, make, lambda history: history) for _ in range(2)]
    for pair in zip(*agents, strict=True):
        yield from pair


def _grow(calls: int, make: Messages, sent: Callable[[list[Json]], list[Json]]) -> Iterator[Call]:
    history: list[Json] = []
    for n in range(calls):
        history.append(make.new("user"))
        reply = make.new("assistant")
        yield f"c{n}", list(sent(history)), reply
        history.append(reply)


BEHAVIOURS: dict[str, Callable[[int, Messages], Iterator[Call]]] = {
    "append": append,
    "window 20": window(20),
    "window 100": window(100),
    "compaction": compaction,
    "cleared tool results": cleared,
    "two interleaved agents": interleaved,
}
ROWS = tuple(f"bytes {name}{what}" for name in BEHAVIOURS for what in ("", ", 400/200 calls"))


def recorded(behaviour: Callable[[int, Messages], Iterator[Call]], calls: int) -> tuple[int, int]:
    """(bytes of the recording, bytes of the transcript) after ``calls`` calls."""
    from otel_agentrec import AgentRecSpanProcessor

    make = Messages()
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch) / "recording"
        processor = AgentRecSpanProcessor(str(where))
        tracers = provider(processor)
        for _, messages, reply in behaviour(calls, make):
            model_call(tracers, messages, reply)
        processor.shutdown()
        return sum(path.stat().st_size for path in where.glob("*.jsonl")), make.transcript


def rows(quick: bool) -> Iterator[tuple[str, float]]:
    for name, behaviour in BEHAVIOURS.items():
        half, _ = recorded(behaviour, 200)
        size, transcript = recorded(behaviour, 400)
        yield f"bytes {name}", (size - 400 * PER_CALL) / transcript
        yield f"bytes {name}, 400/200 calls", size / half
