"""The attempts that were seen on the wire, and the calls that they belong to: the part of the fold that reads WIRE_RECORDED."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from otel_agentrec.journal.events import Event
from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.nodes.sound import text_or_none, where_of
from otel_agentrec.nodes.source import Place

__all__ = ["Wire", "Wires", "retries_of"]

Json = Any


class Wire:
    """One attempt. ``span``: whose it is by ``rung``; without a record (``none``), the span that was current. ``run``: as given.

    ``answered_from``: of an attempt that was answered from a recording, where the answer stands; None: it was real.
    """

    __slots__ = (
        "answered_from",
        "attempt",
        "call",
        "complete",
        "end",
        "error",
        "flags",
        "key",
        "place",
        "run",
        "rung",
        "sent",
        "size",
        "span",
        "started",
        "status",
        "trace",
        "wire_id",
    )

    def __init__(self, wire_id: str, e: Event) -> None:
        told, where = e.payload, where_of(e)
        status, attempt, size, error = told.get("status"), told.get("attempt"), told.get("bytes"), told.get("error")
        started = told.get("startedAt")
        self.wire_id = wire_id
        self.place = Place(e.stream, e.seq)
        self.trace = where.trace
        self.span = text_or_none(told.get("spanId")) or ""
        self.rung = text_or_none(told.get("rung"))
        self.attempt = attempt if type(attempt) is int else 1
        self.call = text_or_none(told.get("call")) or wire_id
        self.status = status if type(status) is int else None
        self.error = text_or_none(error.get("type")) if isinstance(error, dict) else None
        self.size = size if type(size) is int else None
        self.key = text_or_none(told.get("key"))
        sent, flags, complete = told.get("requestBytes"), told.get("flags"), told.get("complete")
        self.sent = sent if type(sent) is int else None
        self.end = text_or_none(told.get("end"))
        self.complete = complete if isinstance(complete, bool) else None
        self.flags = [x for x in flags if isinstance(x, str)] if isinstance(flags, list) else None
        origin = told.get("answeredFrom")
        was_answered = self.flags is not None and "answered" in self.flags
        self.answered_from = origin if isinstance(origin, dict) else {} if was_answered else None
        self.run = text_or_none(e.run)
        self.started = int(started) if isinstance(started, str) and started.isdecimal() and len(started) < 40 else 0

    @property
    def order(self) -> tuple[int, Place]:
        return self.started, self.place

    def brief(self) -> dict[str, Json]:
        """What a record says of it."""
        return {
            "rung": self.rung,
            "requestBytes": self.sent,
            "responseBytes": self.size,
            "end": self.end,
            "complete": self.complete,
            "flags": self.flags or [],
        }

    @property
    def is_answer(self) -> bool:
        """It came back, and not as an error."""
        return self.status is not None and self.status < 400 and self.error is None


class Wires:
    """All attempts of a recording."""

    def __init__(self) -> None:
        self._by_id: dict[str, Wire] = {}
        self._assigned: list[tuple[list[Json], Span, str | None]] = []
        self._of: dict[Span, list[Wire]] = {}

    def add(self, e: Event) -> None:
        """Take a WIRE_RECORDED event."""
        wire_id = e.payload.get("wireId")
        if isinstance(wire_id, str) and wire_id not in self._by_id:
            self._by_id[wire_id] = Wire(wire_id, e)

    def assign(self, s: Span, payload: dict[str, Json]) -> int:
        """Take what a NODE_AMENDED event says of the attempts of a span. Returns how many it names."""
        ids = payload.get("wireIds")
        if not isinstance(ids, list):
            return 0
        self._assigned.append((ids, s, text_or_none(payload.get("rung"))))
        return len(ids)

    def link(self, spans: dict[tuple[str, str], Span]) -> None:
        """Bring attempts and spans together, when all events were read."""
        owner: dict[str, Span] = {}
        for wire in self._by_id.values():
            s = spans.get((wire.trace, wire.span)) if wire.rung not in (None, "none") else None
            if s is not None:
                owner[wire.wire_id] = s
        for ids, s, rung in self._assigned:
            for wire_id in ids:
                named = self._by_id.get(wire_id) if isinstance(wire_id, str) else None
                if named is not None:
                    owner[named.wire_id] = s
                    named.trace, named.span, named.rung = s.trace, s.span, rung or named.rung
        for wire in self._by_id.values():
            if wire.wire_id not in owner:
                wire.rung = "none"
        of: dict[Span, list[Wire]] = defaultdict(list)
        for wire_id, s in owner.items():
            of[s].append(self._by_id[wire_id])
        self._of = {s: sorted(wires, key=lambda w: w.order) for s, wires in of.items()}

    @property
    def keys(self) -> set[tuple[str, str]]:
        """(trace id, span id) of the spans that attempts name."""
        return {(wire.trace, wire.span) for wire in self._by_id.values() if wire.span}

    def of(self, members: Iterable[Span]) -> list[Wire]:
        """The attempts of a call, in the order of their requests."""
        if not self._of:
            return []
        return sorted((wire for s in members for wire in self._of.get(s, ())), key=lambda w: w.order)

    def __iter__(self) -> Iterator[Wire]:
        return iter(sorted(self._by_id.values(), key=lambda w: w.order))

    def __len__(self) -> int:
        return len(self._by_id)


def retries_of(wires: Iterable[Wire]) -> list[dict[str, Json]]:
    """``[{statusCode?, errorType?}]`` of the attempts that another one of the same call followed."""
    wires = list(wires)
    last = {wire.call: wire for wire in wires}
    out: list[dict[str, Json]] = []
    for wire in wires:
        if wire is not last[wire.call]:
            told = {"statusCode": wire.status, "errorType": wire.error}
            out.append({key: value for key, value in told.items() if value is not None})
    return out
