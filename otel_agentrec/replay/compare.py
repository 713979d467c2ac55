"""One recorded prompt put to several models: their answers beside the recorded one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from otel_agentrec.prompts import AgentModelResult, AgentPrompt, ModelClient
from otel_agentrec.resume.jsondiff import Difference, differences

__all__ = ["Comparison", "Trial", "call_differences", "compared", "word_diff"]

Json = Any


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
        if self.recorded is None or trial.result is None:
            return False
        return _text(trial.result) == _text(self.recorded) and not call_differences(self.recorded, trial.result)


def compared(
    prompt: AgentPrompt,
    recorded: AgentModelResult | None,
    clients: Mapping[str, ModelClient],
    repeats: int,
    told: Callable[[Trial], object] | None = None,
) -> Comparison:
    """Ask each client ``repeats`` times, in turns, so that a slow minute is not one client's alone.

    Args:
        told: hears each trial as it comes.
    """
    trials: list[Trial] = []
    for repeat in range(1, repeats + 1):
        for name, client in clients.items():
            result, error, begun = None, None, time.perf_counter()
            try:
                result = client.create(prompt)
            except Exception as raised:  # one client's failure is its result
                error = raised
            trial = Trial(name, repeat, result, time.perf_counter() - begun, error)
            trials.append(trial)
            if told is not None:
                told(trial)
    return Comparison(prompt, recorded, trials)


def call_differences(a: AgentModelResult, b: AgentModelResult) -> list[Difference]:
    """Where the tool calls of two answers differ, by name and arguments: ``$.toolCalls[0].arguments.city`` …"""
    return differences({"toolCalls": _calls(a)}, {"toolCalls": _calls(b)})


def word_diff(a: str | None, b: str | None) -> Iterator[tuple[str, str]]:
    """What makes ``b`` of ``a``, by words: (``"="``, ``"-"`` or ``"+"``, text) in the order of reading; white space is kept."""
    old, new = _words(a), _words(b)
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield "=", "".join(old[a0:a1])
            continue
        if a1 > a0:
            yield "-", "".join(old[a0:a1])
        if b1 > b0:
            yield "+", "".join(new[b0:b1])


def _words(text: str | None) -> list[str]:
    return re.findall(r"\s+|\w+|[^\w\s]+", text or "")


def _text(result: AgentModelResult) -> str:
    return result.output_text or ""


def _calls(result: AgentModelResult) -> list[Json]:
    return [{"name": call.name, "arguments": call.parsed} for call in result.tool_calls]
