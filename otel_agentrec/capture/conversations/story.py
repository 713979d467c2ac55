"""What a session holds, lane by lane, and what of a call is new in it. Pure: events in, events out.

A *lane* is one history of messages in a session; several agents that share a session have one each. A call goes on with the
lane whose list its own list extends, position by position; what extends none replaces the context of its agent's lane, or
begins a lane. The lane that began the session is the one that a projection shows when none is named.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from otel_agentrec.capture.conversations.call import Answered, Call
from otel_agentrec.capture.conversations.messages import (
    ASSISTANT,
    CALL,
    RESULT,
    USER,
    Piece,
    Reading,
    key_of,
    message_of,
)
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.events import Event
from otel_agentrec.records import JournalRef

__all__ = ["Lane", "Plan", "Story"]

Json = Any

_KIND_OF = {
    "USER_MESSAGE_APPENDED": USER,
    "AGENT_REPLY_APPENDED": ASSISTANT,
    "TOOL_CALLED": CALL,
    "TOOL_RESULT_APPENDED": RESULT,
}
_TYPE_OF = {kind: type_ for type_, kind in _KIND_OF.items()}
_OF_THE_CHAT_API = frozenset((*_KIND_OF, "SESSION_STARTED", "TURN_COMPLETED"))


@dataclass(slots=True)
class Lane:
    """``keys``: of the pieces of its list; ``kind``: of the last one; ``is_open``: its turn has not ended; ``asked``: tool
    calls without a result; ``last``: when its newest call ended, ms since the epoch."""

    keys: list[bytes] = field(default_factory=list)
    kind: str = ""
    is_open: bool = False
    asked: dict[str, None] = field(default_factory=dict)
    header: bytes | None = None
    last: int = -1

    def take(self, piece: Piece) -> None:
        self.keys.append(piece.key)
        self.kind, self.is_open = piece.kind, True
        if piece.kind == CALL and piece.call_id:
            self.asked[piece.call_id] = None
        elif piece.kind == RESULT and piece.call_id:
            self.asked.pop(piece.call_id, None)

    def clear(self) -> None:
        self.keys, self.kind, self.is_open, self.asked = [], "", False, {}


@dataclass(slots=True)
class Plan:
    """``events`` to append, and the lane as it is then."""

    events: list[NewEvent]
    name: str | None
    lane: Lane


class Story:
    """One session as far as its stream was read. ``size`` and ``hash``: of the stream then."""

    def __init__(self, session: str, reading: Reading) -> None:
        self.session = session
        self._reading = reading
        self.size, self.hash = 0, ""
        self.is_started = self.is_sealed = False
        self.is_silent = False
        """The chat API writes this session: it knows better."""
        self.lanes: dict[str | None, Lane] = {}
        self._spans: set[str] = set()
        self._lane_of: dict[str | None, str | None] = {}
        """agent -> the lane that it went on with last"""

    # --- what the stream says -----------------------------------------------------------------------------------------

    def read(self, event: Event) -> None:
        """Take the next event of the stream, its content resolved."""
        payload = event.payload
        self.size, self.hash = event.seq + 1, event.hash
        self.is_sealed = event.type == "STREAM_SEALED"
        is_ours = isinstance(payload.get("node"), dict)
        if event.type in _OF_THE_CHAT_API:
            self.is_started = True
            self.is_silent = self.is_silent or not is_ours
        if not is_ours:
            return
        name = payload.get("lane")
        lane = self.lanes.setdefault(name if isinstance(name, str) else None, Lane())
        lane.last = max(lane.last, event.ts)
        if event.trace and isinstance(event.trace.get("spanId"), str):
            self._spans.add(event.trace["spanId"])
        if event.type in _KIND_OF:
            for piece in self._reading.stored([message_of(_KIND_OF[event.type], payload)]):
                lane.take(piece)
        elif event.type == "CONTEXT_REPLACED":
            lane.clear()
            messages = payload.get("messages")
            for piece in self._reading.stored(messages if isinstance(messages, list) else []):
                lane.take(piece)
        elif event.type == "TURN_COMPLETED":
            lane.is_open = False
        elif event.type == "REQUEST_HEADER":
            lane.header = _digest(payload)

    # --- what a call adds ---------------------------------------------------------------------------------------------

    def plan(self, call: Call, header: bytes) -> Plan | None:
        """What is to be appended for a call; None when it says nothing new.

        Args:
            header: :meth:`digest` of what the call was told beside its messages.
        """
        asked, whole = [p.key for p in call.asked], [p.key for p in (*call.asked, *call.reply)]
        name, extends = self._lane_for(call, asked)
        there = self.lanes.get(name)
        lane = _copy(there) if there is not None else Lane()
        is_told = not self._spans.isdisjoint(call.spans)
        ended = call.ended if call.ended is not None else lane.last
        if not extends:
            is_behind = lane.keys[: len(whole)] == whole and (is_told or call.resumes or ended < lane.last)
            if is_behind or is_told:
                return None
        draft = _Draft(self, call, name, lane)
        if not self.is_started:
            draft.add("SESSION_STARTED", {})
        if header != lane.header and call.header:
            draft.add("REQUEST_HEADER", call.header_event)
            lane.header = header
        new = call.asked[len(lane.keys) :] if extends else call.asked
        if not extends or any(piece.kind not in _TYPE_OF for piece in new):
            lane.clear()
            draft.add("CONTEXT_REPLACED", {"messages": call.replaced})
            for piece in call.asked:
                lane.take(piece)
        else:
            for piece in new:
                draft.piece(piece, call.content(piece))
        if lane.kind == ASSISTANT and call.reply:  # two answers in a row: a turn without a word of the user
            draft.end_turn()
        for piece in call.reply:
            if piece.kind in _TYPE_OF:
                draft.piece(piece, call.answer(piece))
        if call.reply and not any(piece.kind == CALL for piece in call.reply):
            draft.end_turn()
        told = [e for e in draft.events if e.type not in ("SESSION_STARTED", "REQUEST_HEADER")]
        if not told:
            return None
        lane.last = max(lane.last, ended)
        return Plan(draft.events, name, lane)

    def results(self, answered: dict[str, Answered]) -> list[Plan]:
        """What tools gave back, for calls that no model was told the result of."""
        plans: list[Plan] = []
        size = self.size
        for name, there in self.lanes.items():
            found = [answered[call_id] for call_id in there.asked if call_id in answered]
            if not found:
                continue
            lane, events = _copy(there), list[NewEvent]()
            for one in found:
                events.append(
                    NewEvent("TOOL_RESULT_APPENDED", _marked(one.payload, name, one.node), one.where, ts=one.ended)
                )
                lane.take(one.piece)
                lane.last = max(lane.last, one.ended or -1)
            size += len(events)
            plans.append(Plan(events, name, lane))
        return plans

    def done(self, plan: Plan, size: int, digest: str, call: Call | None = None) -> None:
        """A plan was written; the stream now has this size and this last hash."""
        self.size, self.hash = size, digest
        self.is_started, self.is_sealed = True, False
        self.lanes[plan.name] = plan.lane
        if call is not None:
            self._lane_of[call.agent] = plan.name
            self._spans.update(call.spans)

    @staticmethod
    def digest(header: dict[str, Json]) -> bytes:
        """Stands for instructions, tools and parameters, as they are in the journal."""
        return _digest(header)

    def _lane_for(self, call: Call, asked: list[bytes]) -> tuple[str | None, bool]:
        """(the lane of a call, whether it goes on there): its agent's own if it can, else the longest that it extends."""
        own = self._lane_of.get(call.agent, call.agent)
        lane = self.lanes.get(own)
        if lane is not None and lane.keys and asked[: len(lane.keys)] == lane.keys:
            return own, True
        longest = [(len(o.keys), n) for n, o in self.lanes.items() if o.keys and asked[: len(o.keys)] == o.keys]
        if longest:
            return max(longest, key=lambda found: found[0])[1], True
        return own, lane is None or not lane.keys


class _Draft:
    """The events of one call, one after the other."""

    def __init__(self, story: Story, call: Call, name: str | None, lane: Lane) -> None:
        self.events: list[NewEvent] = []
        self._size = max(story.size, 1)  # a new stream has its STREAM_OPENED
        self._call, self._name, self._lane = call, name, lane

    def add(self, type_: str, payload: dict[str, Json]) -> None:
        where = replace(self._call.where, session=self._call.session)
        self.events.append(NewEvent(type_, _marked(payload, self._name, self._call.node), where, ts=self._call.ended))

    def piece(self, piece: Piece, payload: dict[str, Json]) -> None:
        if piece.kind == USER and self._lane.kind == ASSISTANT:
            self.end_turn()
        self.add(_TYPE_OF[piece.kind], payload)
        self._lane.take(piece)

    def end_turn(self) -> None:
        if self._lane.is_open:
            self.add("TURN_COMPLETED", {"events": self._size + len(self.events) - 1})
            self._lane.is_open = False


def _marked(payload: dict[str, Json], lane: str | None, node: JournalRef) -> dict[str, Json]:
    place = {"stream": node.stream, "seq": node.seq, "hash": node.hash}
    return {**payload, "node": place, **({} if lane is None else {"lane": lane})}


def _copy(lane: Lane) -> Lane:
    return replace(lane, keys=list(lane.keys), asked=dict(lane.asked))


def _digest(header: dict[str, Json]) -> bytes:
    return key_of(*(header.get(key) for key in ("instructions", "tools", "parameters")))
