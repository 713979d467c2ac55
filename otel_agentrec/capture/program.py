"""The run of a program whose calls stand in no agent's span: from its first such call to its end.

Model and tool calls without anything around them would be runs of one call each. Where the whole program is recorded from
outside (``otel-agentrec run``) they are one run, named after the program; the journal holds its start and its end, and no
span is made for it. A run whose end is not there was cut off, so it can be resumed.
"""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.journal.facts import Facts, Kind

__all__ = ["ProgramRun", "take"]


class ProgramRun:
    """Args:
    run: its id (32 hex digits).
    write: writes an event after all that was told before.
    """

    def __init__(self, run: str, write: Callable[[StepEvent], None]) -> None:
        self.id = run
        self.turn = secrets.token_hex(8)
        """Stands for a span's id."""
        self._write = write
        self._lock = threading.Lock()
        self._has_begun = self._has_ended = False
        self._failed: str | None = None

    @property
    def name(self) -> str:
        """What the program is called: its file, or the module that ``-m`` names."""
        main = sys.modules.get("__main__")
        spec = getattr(main, "__spec__", None)
        if spec is not None:
            return str(spec.name).removesuffix(".__main__")
        given = sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-") else ""
        return Path(given).name or "python"

    def begin(self) -> None:
        """A call of the run is about to be journalled."""
        with self._lock:
            if self._has_begun:
                return
            self._has_begun = True
            self._tell("RUN_STARTED", Facts(agent_name=self.name, operation="program", run_id=self.id))

    def failed(self, error_type: str) -> None:
        """Something ended the program, or will: it did not come to a good end."""
        self._failed = self._failed or error_type

    def end(self) -> None:
        """The program ends."""
        with self._lock:
            if not self._has_begun or self._has_ended:
                return
            self._has_ended = True
            facts = Facts(agent_name=self.name, operation="program", run_id=self.id)
            if self._failed is not None:
                facts.status, facts.error_type = "error", self._failed
            self._tell("RUN_ENDED", facts)

    def _tell(self, kind: str, facts: Facts) -> None:
        at = "startedAt" if kind == "RUN_STARTED" else "endedAt"
        payload = {"name": self.name, "facts": facts.payload(), at: str(time.time_ns())}
        trace = {"traceId": self.id, "spanId": self.turn}
        self._write(StepEvent(kind, payload, self.id, None, self.turn, None, trace, None))


def take(program: ProgramRun | None, is_root: bool, kind: str | None, facts: Facts) -> None:
    """A model or tool call that nothing is around belongs to the run of the program, unless it was given another one."""
    if program is not None and is_root and kind in (Kind.MODEL, Kind.TOOL) and facts.run_id in (None, program.id):
        program.begin()
        facts.run_id, facts.turn_id = program.id, facts.turn_id or program.turn
