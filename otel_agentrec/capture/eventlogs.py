"""Event logs of chat sessions, as ToyAgent writes them, -> the session streams of a recording.

A line is an event ``{seq, ts?, type, payload}``, or one sealed to those before it: ``{event, hash, prevHash}`` with hash =
sha256(prevHash + "|" + canonical(event)). The file is the session; events that name one (``session`` or ``sessionId``) go to
that. What an event was called in its log (``seq``, ``ts``, ``hash``) stands in ``original``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from otel_agentrec.capture.jsonlines import Line
from otel_agentrec.errors import EventInvalid
from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.journal.chain import GENESIS, link_hash, split
from otel_agentrec.journal.draft import Envelope, NewEvent
from otel_agentrec.journal.events import TYPES, checked, keys_of
from otel_agentrec.journal.events.session import SessionEvent

__all__ = ["Chain", "NotAnEvent", "Numbers", "event_of"]

Json = Any

_SPELLINGS: dict[str, dict[str, str]] = {
    "USER_MESSAGE_APPENDED": {"text": "content", "message": "content"},
    "AGENT_REPLY_APPENDED": {"text": "content", "message": "content"},
    "TOOL_CALLED": {
        "tool": "name",
        "toolName": "name",
        "id": "callId",
        "toolCallId": "callId",
        "args": "arguments",
        "input": "arguments",
    },
    "TOOL_RESULT_APPENDED": {
        "tool": "name",
        "toolName": "name",
        "id": "callId",
        "toolCallId": "callId",
        "output": "result",
        "content": "result",
    },
    "APPROVAL_REQUESTED": {"approvalId": "id", "content": "question"},
    "APPROVAL_DECIDED": {"approvalId": "id", "decision": "answer", "approved": "answer"},
    "CONTEXT_COMPACTED": {"content": "summary"},
    "SUBAGENT_SPAWNED": {"agent": "name", "sessionId": "session"},
    "SUBAGENT_JOINED": {"agent": "name", "sessionId": "session", "output": "result"},
    "SCHEDULED_TASK_FIRED": {"name": "task", "output": "result"},
}
"""Event type -> what a log may call a key -> the key."""
_SPOKEN = {"USER_MESSAGE_APPENDED": "content", "AGENT_REPLY_APPENDED": "content"}
"""What a payload is that is no object."""
_TYPES = {name: cls for name, cls in TYPES.items() if issubclass(cls, SessionEvent)}
_LINK = {"event", "hash", "prevHash"}


class NotAnEvent(ValueError):
    """A line is no event of a session; the message says why."""


def event_of(line: Line) -> tuple[str | None, NewEvent]:
    """-> (the session that the event names, the event as it is written).

    Raises:
        NotAnEvent: it is none.
    """
    told = _inner(line)
    type_ = told.get("type")
    if not isinstance(type_, str):
        raise NotAnEvent("no event: it has no type")
    if type_ not in _TYPES:
        raise NotAnEvent(f"{type_[:60]!r} is no type of a session's events")
    payload = told.get("payload")
    if payload is None:
        payload = {}
    if not isinstance(payload, dict):
        if type_ not in _SPOKEN:
            raise NotAnEvent(f"the payload of {type_} is no object")
        payload = {_SPOKEN[type_]: payload}
    try:
        made = checked(type_, _keyed(type_, payload, _original(told, line)))
    except EventInvalid as e:
        raise NotAnEvent(str(e)) from None
    if type_ in _SPOKEN and "content" not in made.to_json():
        raise NotAnEvent(f"{type_} without content")
    named = told.get("session", told.get("sessionId"))
    turn = told.get("turn", told.get("turnId"))
    where = Envelope(turn=turn if isinstance(turn, str) else None)
    return named if isinstance(named, str) and named else None, NewEvent(type_, made.to_json(), where)


def _inner(line: Line) -> dict[str, Json]:
    """The event of a line, out of its link."""
    if line.value is None:
        raise NotAnEvent(line.fault)
    event = line.value["event"] if line.value.keys() >= _LINK else line.value
    if not isinstance(event, dict):
        raise NotAnEvent("no event: what is sealed is no object")
    return event


def _original(told: dict[str, Json], line: Line) -> dict[str, Json] | None:
    hash_ = line.value.get("hash") if line.value is not None and line.value.keys() >= _LINK else None
    seq, ts = told.get("seq", told.get("sequence")), told.get("ts", told.get("timestamp"))
    held = {"seq": seq, "ts": ts, "hash": hash_}
    return {key: v for key, v in held.items() if isinstance(v, (int, float, str)) and not isinstance(v, bool)} or None


def _keyed(type_: str, payload: dict[str, Json], original: dict[str, Json] | None) -> dict[str, Json]:
    """The payload under the keys of the type; what has none goes to ``attributes``."""
    known = {key for _, key in keys_of(_TYPES[type_])} - {"attributes", "original", "node"}
    out: dict[str, Json] = {"original": original}
    rest: dict[str, Json] = {}
    for key, value in payload.items():
        if key in known:
            out[key] = value
    for key, value in payload.items():
        if key not in known:
            name = _SPELLINGS.get(type_, {}).get(key)
            if name is not None and out.get(name) is None:
                out[name] = value
            elif value is not None:
                rest[key] = value
    out["attributes"] = rest or None
    return out


# --- what a file says of itself -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Chain:
    """The chain of a file, link by link.

    ``first_broken``: line of the first link that does not hold, and ``why``; None while all hold.
    """

    links: int = 0
    unsealed: int = 0
    first_broken: int | None = None
    why: str = ""
    head: str = GENESIS

    def add(self, line: Line) -> None:
        """Check the next line."""
        value = line.value
        if value is None or not value.keys() >= _LINK:
            self.unsealed += 1
            if self.links:
                self._break(line.place, "it is not sealed")
            return
        hash_, prev = value["hash"], value["prevHash"]
        if prev != self.head:
            self._break(line.place, "it was not sealed behind the line before it")
        elif hash_ not in _hashes(line, prev):
            self._break(line.place, "its event is not what was sealed")
        if not self.links and self.unsealed:
            self._break(line.place, "lines before it are not sealed")
        self.links += 1
        self.head = hash_ if isinstance(hash_, str) else ""

    def _break(self, place: int, why: str) -> None:
        if self.first_broken is None:
            self.first_broken, self.why = place, why

    def to_json(self) -> dict[str, Json]:
        """``{links, valid, firstBrokenLine, why}``; of a chain that holds, its ``head``."""
        broken = self.first_broken
        said = {"head": self.head} if broken is None else {"firstBrokenLine": broken, "why": self.why}
        return {"links": self.links, "valid": broken is None, **said}


def _hashes(line: Line, prev: str) -> Iterator[str]:
    """The hashes that would hold: of the event in canonical bytes, else as the line itself spells it."""
    assert line.value is not None
    event = line.value["event"]
    yield link_hash(prev, canonical_any(event, signed_zero=False))
    parts = split(line.raw)
    if parts is not None:
        yield link_hash(prev, parts[0])
    spelled = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    yield sha256(f"{prev}|{spelled}".encode("utf-8", "replace")).hexdigest()


@dataclass(slots=True)
class Numbers:
    """The sequence numbers of a file: what is missing between them, and what stands twice or out of order."""

    last: int | None = None
    missing: int = 0
    disordered: int = 0
    sessions: dict[str, None] = field(default_factory=dict)

    def add(self, session: str, event: NewEvent) -> None:
        self.sessions.setdefault(session)
        seq = (event.payload.get("original") or {}).get("seq")
        if type(seq) is not int:
            return
        if self.last is not None:
            if seq <= self.last:
                self.disordered += 1
            else:
                self.missing += seq - self.last - 1
        self.last = seq if self.last is None else max(self.last, seq)
