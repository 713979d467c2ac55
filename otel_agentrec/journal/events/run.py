"""Events of runs, agents and steps, and of what their calls have in common."""

from __future__ import annotations

from typing import Any

from otel_agentrec.journal.events.base import FACTS, Json, Payload, event


@event("RUN_STARTED", content=FACTS)
class RunStarted(Payload):
    """An agent span with no agent span above it began."""

    name: str
    scope: str | None = None
    started_at: str | None = None
    facts: dict[str, Json] | None = None


@event("RUN_ENDED", content=FACTS)
class RunEnded(Payload):
    name: str
    scope: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    facts: dict[str, Json] | None = None
    header: int | None = None
    provider: int | None = None


@event("RUN_RESUMED")
class RunResumed(Payload):
    root: str
    from_: dict[str, Json] | None = None


@event("HANDOFF_STARTED", content=FACTS)
class HandoffStarted(RunStarted):
    """An agent span inside another one began."""


@event("HANDOFF_ENDED", content=FACTS)
class HandoffEnded(RunEnded):
    pass


@event("STEP_STARTED", ignorable=True, content=FACTS)
class StepStarted(Payload):
    kind: str
    name: str
    scope: str | None = None
    started_at: str | None = None
    facts: dict[str, Json] | None = None


@event("STEP_ENDED", ignorable=True, content=FACTS)
class StepEnded(Payload):
    kind: str
    name: str
    scope: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    facts: dict[str, Json] | None = None
    header: int | None = None
    provider: int | None = None


@event("REQUEST_HEADER", content={"instructions": "list", "tools": "list"})
class RequestHeader(Payload):
    """What stays the same from call to call; later MODEL events point at it by its seq.

    In a session: ``lane`` and ``node`` as its other events have them.
    """

    instructions: Any = None
    tools: Any = None
    parameters: dict[str, Json] | None = None
    lane: str | None = None
    node: dict[str, Json] | None = None


@event("FINAL_OUTPUT", content={"output": "one"})
class FinalOutput(Payload):
    output: Json = None


@event("ERROR", content={"message": "one"})
class ErrorEvent(Payload):
    error_type: str
    message: Json = None
