"""Runs and their attempts: a run that was resumed has one root and several runs, each an attempt to finish it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from otel_agentrec.journal.events import Event

__all__ = ["Lineages"]


@dataclass(slots=True)
class Lineages:
    """Which run resumes which, told by RUN_RESUMED events.

    ``root_of``: run id of an attempt -> root; ``attempts``: root -> run ids of its later attempts, in the order of their start.
    """

    root_of: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event]) -> Lineages:
        """From the RUN_RESUMED events among these, which come in the order of their times."""
        found = cls()
        for event in events:
            if event.type == "RUN_RESUMED":
                found.add(event)
        return found

    def add(self, event: Event) -> None:
        """Take a RUN_RESUMED event; a hostile or circular one tells nothing."""
        root, run = event.payload.get("root"), event.run
        if not (isinstance(root, str) and isinstance(run, str)) or run == root or run in self.root_of:
            return
        if root in self.root_of or run in self.attempts:
            return
        self.root_of[run] = root
        self.attempts.setdefault(root, []).append(run)

    def root(self, run: str) -> str:
        """The root of a run: its first attempt, itself when it resumes nothing."""
        return self.root_of.get(run, run)

    def runs(self, root: str) -> list[str]:
        """All attempts of a run, the first one first."""
        return [root, *self.attempts.get(root, ())]
