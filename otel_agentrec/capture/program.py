"""The run of a program whose calls stand in no agent's span: from its first such call to its end.

Model and tool calls without an agent around them would be a run for each trace, often of one call. Where the whole program is recorded from
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

from opentelemetry.trace import SpanKind

from otel_agentrec.capture.opening import OpenSpan
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.journal.facts import Facts, Kind

__all__ = ["ProgramRun", "is_served", "stands_alone", "take"]

_SERVING = (SpanKind.SERVER, SpanKind.CONSUMER)


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
            if self._has_ended:
                return
            self._has_ended = True
            if self._failed is not None:  # also of the runs that have no end of their own
                self._write(StepEvent("ERROR", {"errorType": self._failed}))
            if not self._has_begun:
                return
            facts = Facts(agent_name=self.name, operation="program", run_id=self.id)
            if self._failed is not None:
                facts.status, facts.error_type = "error", self._failed
            self._tell("RUN_ENDED", facts)

    def _tell(self, kind: str, facts: Facts) -> None:
        at = "startedAt" if kind == "RUN_STARTED" else "endedAt"
        payload = {"name": self.name, "facts": facts.payload(), at: str(time.time_ns())}
        trace = {"traceId": self.id, "spanId": self.turn}
        self._write(StepEvent(kind, payload, self.id, None, self.turn, None, trace, None))


def stands_alone(entry: OpenSpan) -> bool:
    """Whether nothing that is a run of its own is around a span, or is the span: no agent, no step of one, no request that
    this process serves, no span of another process."""
    top = entry
    for one in (entry, *entry.ancestors()):
        if one.kind in (Kind.AGENT, Kind.STEP):
            return False
        top = one
    return top.is_root and getattr(top.span, "kind", None) not in _SERVING


def is_served(entry: OpenSpan) -> bool:
    """Whether a span is, or stands in, one of a request or a message that this process serves."""
    return any(getattr(one.span, "kind", None) in _SERVING for one in (entry, *entry.ancestors()))


def take(program: ProgramRun | None, is_alone: bool, kind: str | None, facts: Facts) -> None:
    """A model or tool call that stands alone belongs to the run of the program, unless it was given another one."""
    if program is not None and is_alone and kind in (Kind.MODEL, Kind.TOOL) and facts.run_id in (None, program.id):
        program.begin()
        facts.run_id, facts.turn_id = program.id, facts.turn_id or program.turn
