"""Why a request finds no recorded answer: the nearest one, where they differ, and what would heal it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from otel_agentrec.nodes.exactjson import canonical_exact
from otel_agentrec.nodes.inert import Inert, inert_of, path_text
from otel_agentrec.resume.excerpts import excerpts, shown
from otel_agentrec.resume.jsondiff import ABSENT, Difference, differences

__all__ = ["Known", "MissReport", "explain"]

Json = Any

_SAID = frozenset(
    [
        "arguments",
        "content",
        "contents",
        "function",
        "input",
        "instructions",
        "items",
        "messages",
        "model",
        "name",
        "output",
        "parameters",
        "parts",
        "prompt",
        "response",
        "role",
        "system",
        "systemInstructions",
        "systemPrompt",
        "system_instructions",
        "system_prompt",
        "text",
        "thinking",
        "tools",
    ]
)
"""Members in which a model is told what to answer: to leave one out of the key would make different questions one."""
_ONE_LINE = 80
"""Characters of both values together that stand on the line of their path."""


@dataclass(frozen=True, slots=True)
class Known:
    """A recorded request. ``label``: how to name it (a node id …); ``kind``: only requests of one kind are compared."""

    label: str
    kind: str
    value: Json
    step: int | None = None
    used: bool = False
    unfit: str | None = None
    """Why its answer can't be handed out; None: it can."""


@dataclass(frozen=True, slots=True)
class MissReport:
    """What was found.

    ``hit``: it would be answered. ``nearest``: label of the recorded request that differs least, None when none of its kind
    was recorded. ``heal``: inert paths that together would make it a hit; empty when none can be advised. ``reason``: one
    line for people.
    """

    hit: bool
    reason: str
    nearest: str | None = None
    step: int | None = None
    differences: tuple[Difference, ...] = ()
    heal: tuple[str, ...] = ()
    compared: int = 0

    def to_json(self) -> dict[str, Json]:
        return {
            "hit": self.hit,
            "reason": self.reason,
            "nearest": self.nearest,
            "step": self.step,
            "differences": [d.to_json() for d in self.differences],
            "heal": list(self.heal),
            "compared": self.compared,
        }

    def lines(self) -> list[str]:
        """The report for people: path and both values of each difference, long ones cut to where they differ."""
        out = [self.reason]
        for d in self.differences[:20]:
            recorded, now = excerpts(shown(d.recorded), shown(d.asked))
            if len(recorded) + len(now) <= _ONE_LINE:
                out.append(f"  {d.where}: {d.kind}: recorded {recorded}, now {now}")
            else:
                out += [f"  {d.where}: {d.kind}", f"    recorded: {recorded}", f"    now:      {now}"]
        if len(self.differences) > 20:
            out.append(f"  and {len(self.differences) - 20} more")
        if self.heal:
            out.append("  would hit with: " + " ".join(f"--inert '{entry}'" for entry in self.heal))
        return out


def explain(asked: Json, kind: str, known: Iterable[Known], declared: Inert) -> MissReport:
    """Compare a request with the recorded ones.

    Args:
        asked: the request as its key sees it.
        known: recorded requests, oldest first.
        declared: what is inert already.
    """
    value = declared.applied(asked)
    mine = canonical_exact(value)
    same_kind = [k for k in known if k.kind == kind]
    nearest: tuple[tuple[int, int], Known, list[Difference]] | None = None
    used: Known | None = None
    unfit: Known | None = None
    for n, one in enumerate(same_kind):
        recorded = declared.applied(one.value)
        if canonical_exact(recorded) == mine:
            if one.unfit is not None:
                unfit = one
                continue
            if not one.used:
                return MissReport(True, f"a recorded answer fits: {one.label}", one.label, one.step, compared=n + 1)
            used = one
            continue
        found = differences(recorded, value)
        rank = (sum(_weight(d) for d in found), -n)
        if nearest is None or rank < nearest[0]:
            nearest = rank, one, found
    if used is not None:
        reason = f"every recorded answer to this request was handed out already, the last one of {used.label}"
        return MissReport(False, reason, used.label, used.step, compared=len(same_kind))
    if unfit is not None:
        reason = f"this very request was recorded as {unfit.label}, but {unfit.unfit}"
        return MissReport(False, reason, unfit.label, unfit.step, compared=len(same_kind))
    if nearest is None:
        return MissReport(False, f"no {kind} request was recorded", compared=0)
    _, one, found = nearest
    heal = _heal(declared, one.value, asked, found, [k.value for k in same_kind])
    first = found[0] if found else None
    where = f": {first.where} ({first.kind})" if first is not None else ""
    return MissReport(
        False,
        f"no recorded request is the same; the nearest, {one.label}, differs{where}",
        one.label,
        one.step,
        tuple(found),
        heal,
        len(same_kind),
    )


def _weight(d: Difference) -> int:
    """A message more or less, or another text, is farther away than another id."""
    sizes = [len(canonical_exact(x)) for x in (d.recorded, d.asked) if x is not ABSENT]
    return 8 + min(sum(sizes), 4096)


def _heal(
    declared: Inert, recorded: Json, asked: Json, found: list[Difference], all_known: list[Json]
) -> tuple[str, ...]:
    """Entries that make the two the same, and no two recorded requests that are different now."""
    entries: list[str] = []
    for d in found:
        entry = _entry(d)
        if entry is None:
            return ()
        if entry not in entries:
            entries.append(entry)
    more = inert_of(entries)
    if canonical_exact(more.applied(declared.applied(recorded))) != canonical_exact(
        more.applied(declared.applied(asked))
    ):
        return ()
    before = {canonical_exact(declared.applied(value)) for value in all_known}
    after = {canonical_exact(more.applied(declared.applied(value))) for value in all_known}
    if len(after) < len(before):
        return ()
    return tuple(entries)


def _entry(d: Difference) -> str | None:
    """What one would declare so that this difference does not count."""
    if d.kind == "order":
        items = [*d.recorded]
        named = all(isinstance(i, dict) and ("name" in i or isinstance(i.get("function"), dict)) for i in items)
        return f"order:{path_text(d.path).removeprefix('$.')} by name" if named and d.path else None
    names = [step for step in d.path if isinstance(step, str)]
    if not names or not isinstance(d.path[-1], str) or names[-1] in _SAID:
        return None
    if any(name in ("arguments", "parameters", "tools", "function", "input_schema") for name in names[:-1]):
        return None
    return path_text(tuple(None if isinstance(step, int) else step for step in d.path))
