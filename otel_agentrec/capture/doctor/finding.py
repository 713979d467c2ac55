"""What ``doctor`` found: one thing each, with what to do about it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Finding", "Level", "note", "ok", "problem"]

Level = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One finding; each text is one line.

    Args:
        id: stays the same from version to version, for programs that read the findings.
        level: ``ok``; ``note``: worth knowing, or a matter of choice; ``problem``: something is lost or does not work.
        what: what was found.
        why: what follows from it.
        mend: what to do; empty where there is nothing to mend.
    """

    id: str
    level: Level
    what: str
    why: str = ""
    mend: str = ""

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def ok(id: str, what: str, why: str = "") -> Finding:
    return Finding(id, "ok", what, why)


def note(id: str, what: str, why: str, mend: str = "") -> Finding:
    return Finding(id, "note", what, why, mend)


def problem(id: str, what: str, why: str, mend: str) -> Finding:
    return Finding(id, "problem", what, why, mend)
