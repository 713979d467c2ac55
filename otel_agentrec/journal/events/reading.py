"""One line of a stream as it was read, and the one place where old lines are lifted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from otel_agentrec.journal.events.base import FORMAT, Json, Payload, payload_of

__all__ = ["UPCASTERS", "Event", "upcast"]


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a stream as it was read: the envelope, the payload as a dict, and its place in the chain.

    ``payload`` may hold references (``$c``, ``$list``): the reader resolves them. ``trace`` is
    ``{traceId, spanId, parentSpanId, path}``; ``mono`` is nanoseconds of the monotonic clock.
    """

    id: str
    stream: str
    seq: int
    ts: int
    type: str
    payload: dict[str, Json]
    mono: int | None = None
    run: str | None = None
    session: str | None = None
    turn: str | None = None
    step: int | None = None
    trace: dict[str, Json] | None = None
    v: str = FORMAT
    hash: str = ""
    prev_hash: str = ""
    copy_of: str | None = None
    """Hash of the event in another stream that this one repeats (forks)."""

    @classmethod
    def from_json(cls, e: dict[str, Json], *, hash: str = "", prev_hash: str = "") -> Event:
        """The event of a parsed line, lifted to the current version. Total: keys that are missing or no use read as empty."""
        e = upcast(e)
        mono, seq, ts, payload, trace = e.get("mono"), e.get("seq"), e.get("ts"), e.get("payload"), e.get("trace")
        return cls(
            id=str(e.get("id") or ""),
            stream=str(e.get("stream") or ""),
            seq=seq if type(seq) is int else -1,
            ts=ts if type(ts) is int else 0,
            type=str(e.get("type") or ""),
            payload=payload if isinstance(payload, dict) else {},
            mono=int(mono) if isinstance(mono, str) and mono.isdecimal() and len(mono) < 40 else None,
            run=e.get("run"),
            session=e.get("session"),
            turn=e.get("turn"),
            step=e.get("step"),
            trace=trace if isinstance(trace, dict) else None,
            v=str(e.get("v") or ""),
            hash=hash,
            prev_hash=prev_hash,
            copy_of=e.get("copyOf"),
        )

    def typed(self) -> Payload:
        """The payload as its dataclass; :class:`Generic` when the type or its keys are unknown."""
        return payload_of(self.type, self.payload)


Upcaster = Callable[[dict[str, Json]], dict[str, Json]]
UPCASTERS: dict[str, Upcaster] = {}
"""Format version -> function that lifts an event of that version to the next one."""


def upcast(e: dict[str, Json]) -> dict[str, Json]:
    """Lift an event to the current version, one version at a time. The only place where old forms are known."""
    for _ in range(len(UPCASTERS)):
        lift = UPCASTERS.get(str(e.get("v")))
        if lift is None:
            break
        e = lift(e)
    return e
