"""One recorded prompt put to several models: their answers beside the recorded one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from otel_agentrec.prompts import AgentModelResult, AgentPrompt, ModelClient

__all__ = ["Comparison", "Trial", "compared"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One answer. ``client``: its name; ``repeat`` from 1; ``seconds`` it took; ``error``: what was raised instead."""

    client: str
    repeat: int
    result: AgentModelResult | None
    seconds: float
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The prompt, the recorded answer (None: it failed or was not recorded whole), and all trials in the order of asking."""

    prompt: AgentPrompt
    recorded: AgentModelResult | None
    trials: Sequence[Trial]

    def of(self, client: str) -> list[Trial]:
        """The trials of one client."""
        return [trial for trial in self.trials if trial.client == client]

    def same_as_recorded(self, trial: Trial) -> bool:
        """Whether a trial says the same text and asks for the same calls as the recorded answer; ids of calls differ always."""
        return self.recorded is not None and trial.result is not None and _said(trial.result) == _said(self.recorded)


def compared(
    prompt: AgentPrompt, recorded: AgentModelResult | None, clients: Mapping[str, ModelClient], repeats: int
) -> Comparison:
    """Ask each client ``repeats`` times, in turns, so that a slow minute is not one client's alone."""
    trials: list[Trial] = []
    for repeat in range(1, repeats + 1):
        for name, client in clients.items():
            result, error, begun = None, None, time.perf_counter()
            try:
                result = client.create(prompt)
            except Exception as raised:  # one client's failure is its result
                error = raised
            trials.append(Trial(name, repeat, result, time.perf_counter() - begun, error))
    return Comparison(prompt, recorded, trials)


def _said(result: AgentModelResult) -> tuple[str | None, list[tuple[str, object]]]:
    return result.output_text, [(call.name, call.parsed) for call in result.tool_calls]
