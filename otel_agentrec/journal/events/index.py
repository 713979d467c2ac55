"""Events of the index, the log of all streams."""

from __future__ import annotations

from otel_agentrec.journal.events.base import Json, Payload, event


@event("OPENED")
class Opened(Payload):
    """A stream was opened; ``hash`` of its first line."""

    stream: str
    hash: str


@event("SEALED")
class Sealed(Payload):
    """A stream was closed with ``size`` events, the last one with ``hash``."""

    stream: str
    size: int
    hash: str


@event("PRUNED")
class Pruned(Payload):
    stream: str
    size: int
    hash: str
    root: str | None = None


@event("ERASED")
class Erased(Payload):
    stream: str
    cells: Json
    reason: str | None = None
