"""Answerers for tests: one that lets all run and keeps what came, one that hands that out again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from otel_agentrec.errors import UnknownOutcomeError
from otel_agentrec.intercept.protocol import PASS, Pass, ToolCall, ToolOutcome


class Keeping:
    """Lets every tool run; ``told``: (what, call, outcome or error) in order."""

    def __init__(self) -> None:
        self.asked: list[ToolCall] = []
        self.told: list[tuple[str, ToolCall, ToolOutcome | BaseException]] = []

    def answer(self, call: ToolCall) -> ToolOutcome | ToolCall | Pass:
        self.asked.append(call)
        return PASS

    def returned(self, call: ToolCall, outcome: ToolOutcome) -> None:
        self.told.append(("returned", call, outcome))

    def cancelled(self, call: ToolCall, error: BaseException) -> None:
        self.told.append(("cancelled", call, error))

    @property
    def outcomes(self) -> list[ToolOutcome]:
        return [outcome for _, _, outcome in self.told if isinstance(outcome, ToolOutcome)]

    def save(self, path: Path) -> None:
        rows = [
            [call.hook, call.name, call.arguments, call.call_id, asdict(outcome)]
            for _, call, outcome in self.told
            if isinstance(outcome, ToolOutcome)
        ]
        path.write_text(json.dumps(rows, sort_keys=True))


class HandingOut(Keeping):
    """Answers from what :meth:`Keeping.save` wrote, by hook, name and arguments, each once; refuses what is not there."""

    def __init__(self, path: Path, *, but: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.but = but
        self.left = [
            (hook, name, arguments, ToolOutcome(**outcome))
            for hook, name, arguments, _, outcome in json.loads(path.read_text())
        ]

    def answer(self, call: ToolCall) -> ToolOutcome | ToolCall | Pass:
        self.asked.append(call)
        if call.name in self.but:
            return PASS
        for at, (hook, name, arguments, outcome) in enumerate(self.left):
            if (hook, name, arguments) == (call.hook, call.name, call.arguments):
                del self.left[at]
                return outcome
        raise UnknownOutcomeError(f"nothing recorded for {call.name} {call.arguments}")


class Refusing(Keeping):
    """Refuses the tools of these names."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def answer(self, call: ToolCall) -> ToolOutcome | ToolCall | Pass:
        super().answer(call)
        if call.name in self.names:
            raise UnknownOutcomeError(f"{call.name} was begun and nobody knows whether it happened")
        return PASS
