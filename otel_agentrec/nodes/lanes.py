"""Lanes and occurrences: which of equal calls is meant (docs/resume.md).

A *lane* is the root of a run and the path of agents in it, each by its name and the id of the call that started it: what
one agent does, one after the other. Two agents that run side by side are two lanes, so their calls are not mixed up in
the order of a scheduler. Equal calls of one lane are counted: their *occurrence*, from 0, in the order in which they began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar
from urllib.parse import quote, unquote

__all__ = ["AgentStep", "Around", "Lane", "lane_path", "occurrences"]

H = TypeVar("H", bound=Hashable)


class AgentStep(NamedTuple):
    """An agent on the way down from the root, and the id of the tool call that started it, where one did."""

    name: str
    call_id: str | None = None


class Around(NamedTuple):
    """One span around a call: its kind (AGENT, TOOL or any other), an agent's name, a tool call's id."""

    kind: str
    name: str | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """Where a call stands in its run. ``root``: the id of the first attempt's run; ``path``: outermost agent first."""

    root: str
    path: tuple[AgentStep, ...] = field(default=())

    @property
    def text(self) -> str:
        """The path as events spell it: ``planner/research@call_7``; empty where no agent is known."""
        return "/".join(_spelled(step) for step in self.path)

    @classmethod
    def parse(cls, root: str, text: str | None) -> Lane:
        """The lane of a spelled path."""
        steps = [step.partition("@") for step in text.split("/")] if text else []
        return cls(root, tuple(AgentStep(unquote(name), unquote(call) if at else None) for name, at, call in steps))


def lane_path(around: Iterable[Around]) -> tuple[AgentStep, ...]:
    """The path of agents, outermost first, of a call inside these spans (nearest first).

    Several spans in a row for one agent (two instrumentations, a graph and its node) count once.
    """
    steps: list[AgentStep] = []
    call_id: str | None = None
    started_by_tool = False
    for span in reversed(list(around)):
        if span.kind == "TOOL":
            call_id, started_by_tool = span.call_id or call_id, True  # one call may have two spans
        elif span.kind == "AGENT":
            name = span.name or ""
            if steps and steps[-1].name == name and not started_by_tool:
                continue
            steps.append(AgentStep(name, call_id))
            call_id, started_by_tool = None, False
    return tuple(steps)


def occurrences(calls: Iterable[H]) -> list[int]:
    """For each call, how many equal ones came before it: its occurrence, from 0.

    Args:
        calls: (lane, key) of each, in the order in which they began.
    """
    seen: Counter[H] = Counter()
    out: list[int] = []
    for call in calls:
        out.append(seen[call])
        seen[call] += 1
    return out


def _spelled(step: AgentStep) -> str:
    name = quote(step.name, safe=" ")
    return name if step.call_id is None else f"{name}@{quote(step.call_id, safe=' ')}"
