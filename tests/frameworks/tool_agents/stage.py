"""What the agents share: their tools, the script of their model, and an answerer of tool calls that keeps a file.

Runs in the environments of the frameworks, which have few of otel-agentrec's own dependencies.
"""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

from otel_agentrec.demo.script import Call, Turn, When
from otel_agentrec.errors import UnknownOutcomeError
from otel_agentrec.intercept.protocol import PASS, Pass, ToolCall, ToolOutcome

MODEL = "gpt-4.1-mini"
SYSTEM = "Use the tools, then say what they gave."
QUESTION = "Is it wet in Finse, and when does the last train to Oslo go?"
SIMPLE = "Is it wet in Finse?"
TROUBLE = "When does the last train from Nowhere go?"

WET = Call("weather", {"place": "Finse"}, id="call-1")
SCRIPT = [
    Turn(
        tool_calls=[Call("last_train", {"start": "Nowhere", "to": "Oslo"}, id="call-3")],
        when=When(any="Nowhere", step=1),
        times=0,
    ),
    Turn(
        tool_calls=[WET, Call("last_train", {"start": "Finse", "to": "Oslo"}, id="call-2")],
        when=When(any="train", step=1),
        times=0,
    ),
    Turn(tool_calls=[WET], when=When(step=1), times=0),
    Turn("They gave: {tool_results}", when=When(step=2), times=0),
]

LOOP = asyncio.new_event_loop()
"""Clients keep their connections, so all runs of a process share a loop."""
RAN: list[str] = []
"""The tools that really ran in this process."""


class LineClosed(Exception):
    """What a tool raises, with more to it than a message."""

    def __init__(self, line: str, days: int) -> None:
        super().__init__(line, days)
        self.line, self.days = line, days

    def __str__(self) -> str:
        return f"the line from {self.line} is closed for {self.days} days"


def weather(place: str) -> str:
    """The forecast of a place."""
    RAN.append("weather")
    return f"{place}: light rain from 15:00"


def last_train(start: str, to: str) -> str:
    """The last train of the day."""
    RAN.append("last_train")
    if start == "Nowhere":
        raise LineClosed(start, 3)
    return f"{start} to {to}: 21:42, platform 3"


def key(call: ToolCall) -> str:
    return f"{call.hook} {call.name} {json.dumps(call.arguments, sort_keys=True)}"


class Keeping:
    """Lets every call happen, and keeps what came of it."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.outcomes: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    def answer(self, call: ToolCall) -> ToolOutcome | ToolCall | Pass:
        with self._lock:
            self.calls.append(call)
        return PASS

    def returned(self, call: ToolCall, outcome: ToolOutcome) -> None:
        with self._lock:
            self.outcomes[key(call)] = {"value": outcome.value, "codec": outcome.codec, "error": outcome.error}

    def cancelled(self, call: ToolCall, error: BaseException) -> None:
        raise AssertionError(f"{call.name} was cut off: {error!r}")


class FromFile(Keeping):
    """Answers every call as :class:`Keeping` kept it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.outcomes = json.loads(file.read_text())

    def answer(self, call: ToolCall) -> ToolOutcome | ToolCall | Pass:
        super().answer(call)
        return ToolOutcome(**self.outcomes[key(call)])


class Stopping(Keeping):
    """Knows of no outcome."""

    def answer(self, call: ToolCall) -> ToolOutcome | ToolCall | Pass:
        super().answer(call)
        raise UnknownOutcomeError(f"nobody knows whether {call.name} happened")
