"""What came of a replay: one outcome, the exit code that says it, and what it rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CANNOT", "DIVERGED", "ENDS", "FAILED", "SAME", "ReplayReport"]

Json = Any
SAME, DIVERGED, ENDS, CANNOT, FAILED = "same", "diverged", "recording_ends", "cannot", "failed"
EXITS = {SAME: 0, DIVERGED: 1, FAILED: 1, ENDS: 125, CANNOT: 125}
SHOWN = 10


@dataclass
class ReplayReport:
    """Args:
    outcome: ``same``; ``diverged``: the program asked for something else, or for less; ``recording_ends``: it came to where
        a recording that was cut off stops; ``cannot``: a call could not be answered, or the replay not be made; ``failed``:
        all answers were the same, and the program failed.
    models, tools: calls that were answered; ``recorded``: ``{models, tools}`` of the recording.
    reran: tools that ran again, because calls are recorded inside them or it was allowed.
    divergence: the first one, as :meth:`.Divergence.to_json` has it.
    left_over: recorded calls that nobody asked for: ``{kind, name, step, node, lane}``.
    unseen: tools that nobody intercepted when the recording was made.
    guard: see ``intercept.sockets.report``; None: none was asked for.
    program_exit: of the program; None: it is this very process.
    reason, hint: one line each: why it could not be replayed, and how to mend it.
    """

    outcome: str = SAME
    recording: str = ""
    runs: list[str] = field(default_factory=list)
    models: int = 0
    tools: int = 0
    recorded: dict[str, int] = field(default_factory=dict)
    reran: list[str] = field(default_factory=list)
    divergence: dict[str, Json] | None = None
    left_over: list[dict[str, Json]] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    guard: dict[str, Json] | None = None
    program_exit: int | None = None
    reason: str | None = None
    hint: str | None = None
    error: Any = field(default=None, compare=False, repr=False)
    """The ``RunStopped`` that stopped the replay, in its own process."""

    @property
    def exit_code(self) -> int:
        """0 same · 1 diverged, or the program failed · 125 can't be replayed."""
        return EXITS[self.outcome]

    def to_json(self) -> dict[str, Json]:
        """The report with camelCase keys."""
        return {
            "outcome": self.outcome,
            "exitCode": self.exit_code,
            "recording": self.recording,
            "runs": self.runs,
            "answered": {"models": self.models, "tools": self.tools},
            "recorded": self.recorded,
            "reran": self.reran,
            "divergence": self.divergence,
            "leftOver": self.left_over,
            "toolsNotIntercepted": self.unseen,
            "guard": self.guard,
            "programExit": self.program_exit,
            "reason": self.reason,
            "hint": self.hint,
        }

    @classmethod
    def from_json(cls, told: dict[str, Json]) -> ReplayReport:
        """Raises KeyError, TypeError: it is no report."""
        return cls(
            outcome=told["outcome"],
            recording=told["recording"],
            runs=list(told["runs"]),
            models=told["answered"]["models"],
            tools=told["answered"]["tools"],
            recorded=dict(told["recorded"]),
            reran=list(told["reran"]),
            divergence=told["divergence"],
            left_over=list(told["leftOver"]),
            unseen=list(told["toolsNotIntercepted"]),
            guard=told["guard"],
            program_exit=told["programExit"],
            reason=told["reason"],
            hint=told["hint"],
        )

    def lines(self, redact: Callable[[str], str] = str) -> list[str]:
        """The report for people."""
        answered = f"{_count(self.models, 'model call')} and {_count(self.tools, 'tool call')} answered"
        out = {
            SAME: [f"replay: the same; {answered}"],
            DIVERGED: [f"replay: diverged; {answered}"],
            ENDS: [f"replay: the same up to where the recording ends; {answered}"],
            CANNOT: ["replay: it can't be replayed"],
            FAILED: [
                f"replay: all answers were the same, and the program failed (exit {self.program_exit}); {answered}"
            ],
        }[self.outcome]
        if self.reason:
            out += [f"  {line}" for line in redact(self.reason).splitlines()]
        if self.left_over:
            out.append(f"  recorded, and not asked for: {_count(len(self.left_over), 'call')}")
            for one in self.left_over[:SHOWN]:
                step = f"step {one['step']}: " if one.get("step") is not None else ""
                out.append(f"    {step}{one['kind']} {one['name']} ({one['node']})")
            if len(self.left_over) > SHOWN:
                out.append(f"    and {len(self.left_over) - SHOWN} more")
        if self.reran:
            out.append(f"  ran again: {', '.join(self.reran)}")
        if self.guard is not None:
            hook = "the audit hook" if self.guard.get("audit_hook") else "no audit hook"
            out.append(f"  no network: {hook}, Landlock {self.guard.get('landlock')}")
            refused = list(dict.fromkeys(self.guard.get("refused") or ()))
            if refused:
                out.append(f"  refused: {', '.join(refused[:SHOWN])}")
        if self.hint:
            out.append(f"  {redact(self.hint)}")
        return out


def _count(n: int, what: str) -> str:
    return f"1 {what}" if n == 1 else f"{n} {what}s"
