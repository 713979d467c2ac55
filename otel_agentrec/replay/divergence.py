"""Where a replayed program first asked for something else than the recorded one: step, path, both values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from otel_agentrec.errors import ReplayDivergence
from otel_agentrec.resume.excerpts import excerpts, shown
from otel_agentrec.resume.jsondiff import ABSENT, Difference

__all__ = ["Divergence", "diverged", "in_other_lanes"]

Json = Any
_MOST = 20
"""Differences that are told of one call."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Args:
    kind: ``model``, ``tool`` or ``network``.
    reason: one line for people.
    lane: the agent that asked (``Lane.text``); empty: the run itself.
    step: of the recorded call that comes nearest; None where nothing comes near.
    nearest: the id of its node.
    differences: where the two differ, the first of them in the order of the recorded request; empty where a call was made
        that the recorded run did not make at all.
    heal: ``--inert`` paths under which they would be the same call.
    elsewhere: the lanes of which the very same call is recorded, where it is not recorded of this one.
    """

    kind: str
    reason: str
    lane: str = ""
    step: int | None = None
    nearest: str | None = None
    differences: tuple[Difference, ...] = ()
    heal: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    @property
    def path(self) -> str | None:
        """Of the first difference: ``$.messages[0].content``."""
        return self.differences[0].where if self.differences else None

    @property
    def recorded(self) -> Json:
        """The recorded value there; ``ABSENT`` where there is none."""
        return self.differences[0].recorded if self.differences else ABSENT

    @property
    def asked(self) -> Json:
        """The new value there; ``ABSENT`` where there is none."""
        return self.differences[0].asked if self.differences else ABSENT

    def to_json(self) -> dict[str, Json]:
        """``{kind, reason, lane, step, nearest, path, recorded?, asked?, differences, heal, elsewhere}``: an absent value is
        left out."""
        told: dict[str, Json] = {
            "kind": self.kind,
            "reason": self.reason,
            "lane": self.lane,
            "step": self.step,
            "nearest": self.nearest,
            "path": self.path,
            "differences": [d.to_json() for d in self.differences[:_MOST]],
            "heal": list(self.heal),
            "elsewhere": list(self.elsewhere),
        }
        if self.differences:
            first = self.differences[0].to_json()
            told.update({name: first[name] for name in ("recorded", "asked") if name in first})
        return told

    def lines(self, redact: Callable[[str], str] = str) -> list[str]:
        """The divergence for people: a headline, then path and both values of each difference."""
        at = f"step {self.step}" if self.step is not None else "no step of the recording"
        where = f" of {self.lane}" if self.lane else ""
        out = [f"diverged at {at}{where}: {redact(self.reason)}"]
        if self.elsewhere:
            out.append(f"  {in_other_lanes(self.elsewhere, self.lane)}")
        for d in self.differences[:_MOST]:
            out.append(f"  {d.where}: {d.kind}")
            # cut afterwards: of half a secret nobody would know that it is one
            recorded, now = excerpts(redact(shown(d.recorded)), redact(shown(d.asked)))
            out.append(f"    recorded: {recorded}")
            out.append(f"    now:      {now}")
        if len(self.differences) > _MOST:
            out.append(f"  and {len(self.differences) - _MOST} more")
        return out


def diverged(told: Divergence, redact: Callable[[str], str] = str) -> ReplayDivergence:
    """What is raised into the program."""
    hint = "what can't change the answer may differ: " + " ".join(f"--inert '{path}'" for path in told.heal)
    error = ReplayDivergence("\n".join(told.lines(redact)), hint if told.heal else "")
    error.divergence = told
    return error


def in_other_lanes(elsewhere: Sequence[str], lane: str) -> str:
    """That a call is recorded, but not of the agent that makes it now."""
    names = " and ".join(name or "the run itself" for name in elsewhere)
    return f"this very call is recorded of {names}, not of {lane or 'the run itself'}"
