"""A chat session as an event log (ToyAgent, "the log is the conversation, the log is the state")::

    log = SessionLog.open("./agentrec", "user-42")
    log.append("USER_MESSAGE_APPENDED", content="My name is Star.")
    log.append("AGENT_REPLY_APPENDED", content="Hello, Star!")
    log.project()          # the messages for the next model call

The memory of an agent is what :meth:`SessionLog.project` makes of the events, never a variable: a process may be killed at
any time and the next one goes on. Several processes may append to one session; each append takes the stream's lock.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from otel_agentrec.errors import AgentRecError, EventInvalid, RecordingUnreadable, UsageError
from otel_agentrec.journal.draft import Envelope, NewEvent, SealedAt
from otel_agentrec.journal.events import TYPES, Event, Payload, checked, keys_of
from otel_agentrec.journal.sessions import stream_of
from otel_agentrec.journal.store import EventStore, FileEventStore, SequenceConflict
from otel_agentrec.session import saved
from otel_agentrec.session.policy import CONVERSATION, Message, Policy, State, project, start

__all__ = ["SessionLog"]

Json = Any
OF_A_SESSION = "otel_agentrec.journal.events.session"
ALSO = ("REQUEST_HEADER", "FINAL_OUTPUT", "ERROR")
"""Events of other groups that a session may hold."""


class SessionLog:
    """One session in an event store. Keeps no state but what it can read again.

    Use :meth:`open`. Safe to use from several threads and processes.
    """

    def __init__(self, store: EventStore, session_id: str, policy: Policy = CONVERSATION) -> None:
        self.store = store
        self.session_id = session_id
        self.stream = stream_of(session_id)
        self.policy = policy
        self.events_read = 0
        """How many events this object has read so far."""

    @classmethod
    def open(
        cls, recording_or_store: EventStore | str | os.PathLike[str], session_id: str, *, policy: Policy = CONVERSATION
    ) -> SessionLog:
        """The log of a session; nothing is written before the first append.

        Args:
            recording_or_store: a recording directory, or an event store.
            session_id: any text that is not empty.
            policy: what enters the model's context, unless a call says otherwise.

        Raises:
            UsageError: no session id.
            RecordingUnreadable: it is a fork that was not finished.
        """
        if not isinstance(session_id, str) or not session_id:
            raise UsageError("a session needs an id", "give any text: a user, a chat, a ticket")
        is_path = isinstance(recording_or_store, (str, os.PathLike))
        if isinstance(recording_or_store, str) and "://" in recording_or_store:
            raise UsageError("a database URL is no directory", "give an event store: SqlEventStore(url)")
        log = cls(FileEventStore(recording_or_store) if is_path else recording_or_store, session_id, policy)  # type: ignore[arg-type]
        log._refuse_half_a_fork()
        return log

    # --- writing ----------------------------------------------------------------------------------------------------

    def append(
        self,
        event: str | Payload,
        payload: Mapping[str, Json] | None = None,
        /,
        *,
        expected_seq: int | None = None,
        **more: Json,
    ) -> SealedAt:
        """Append one event. It is on the chain, and in the kernel, when this returns.

        The first event of a session that is none of ``SESSION_STARTED`` is preceded by one.

        Args:
            event: its type, one of those of ``journal/events/session.py``, or REQUEST_HEADER, FINAL_OUTPUT, ERROR; or a whole
                event of those classes.
            payload, more: the type's keys, as fields or as they stand on disk (``call_id`` or ``callId``; ``from_`` for
                ``from``), together or by name.
            expected_seq: append only if the event gets this number.

        Raises:
            EventInvalid: the type is no type of a session, or the payload does not fit it.
            SequenceConflict: somebody else appended first.
            OSError: nothing was written.
        """
        if isinstance(event, Payload):
            payload, event = {**event.to_json(), **(payload or {})}, event.event_type
        elif payload is not None and not isinstance(payload, Mapping):
            raise EventInvalid(f"the payload of {event} is no object", "give its keys: content=...")
        return self._append([self._event(event, {**(payload or {}), **more})], expected_seq)[-1]

    def user(self, content: Json, **more: Json) -> SealedAt:
        """The user said something: text, or parts of the message schema."""
        return self.append("USER_MESSAGE_APPENDED", content=content, **more)

    def reply(self, content: Json, **more: Json) -> SealedAt:
        """The agent answered."""
        return self.append("AGENT_REPLY_APPENDED", content=content, **more)

    def tool_call(self, name: str, arguments: Json = None, call_id: str | None = None, **more: Json) -> SealedAt:
        """The agent called a tool."""
        return self.append("TOOL_CALLED", name=name, arguments=arguments, call_id=call_id, **more)

    def tool_result(self, result: Json, call_id: str | None = None, **more: Json) -> SealedAt:
        """A tool gave something back."""
        return self.append("TOOL_RESULT_APPENDED", result=result, call_id=call_id, **more)

    def turn_completed(self) -> SealedAt:
        """One request of the user was dealt with. ``events``: how many events the session had before (as ToyAgent)."""
        head = self.head()
        return self.append("TURN_COMPLETED", events=max(0, head - 1))

    def approval(self, id: str, question: Json, call_id: str | None = None) -> SealedAt:
        """Ask somebody whether the agent may."""
        return self.append("APPROVAL_REQUESTED", id=id, question=question, call_id=call_id)

    def decide(self, id: str, by: str, answer: Json) -> SealedAt:
        """Answer an approval, once. What was decided before a fork is not decided in it.

        Raises:
            UsageError: there is no such request, or it was answered before.
        """
        while True:
            head, (asked, decided) = self.head(), self._approval(id)
            if asked is None:
                raise UsageError(f"session {self.session_id}: nobody asked for an approval {id!r}")
            if decided is not None:
                who = decided.payload.get("by")
                raise UsageError(f"session {self.session_id}: approval {id!r} was decided by {who} before")
            try:
                return self.append("APPROVAL_DECIDED", id=id, by=by, answer=answer, expected_seq=head)
            except SequenceConflict:
                continue  # somebody appended meanwhile, perhaps an answer

    def decision(self, id: str, call_id: str | None = None) -> dict[str, Json] | None:
        """What was decided: ``{by, answer}``; None: nothing yet. A started-again program need not ask a person twice.

        A decision is about the very call that it was asked for, and holds in the session in which it was made: for another
        call, and in a fork, there is none.

        Args:
            call_id: of the call that is about to be made, as it was given to :meth:`approval`.
        """
        asked, decided = self._approval(id)
        if asked is None or decided is None or asked.payload.get("callId") != call_id:
            return None
        return {"by": decided.payload.get("by"), "answer": decided.payload.get("answer")}

    def _approval(self, id: str) -> tuple[Event | None, Event | None]:
        """The last request of this name, and its answer."""
        asked: Event | None = None
        decided: Event | None = None
        for event in self.events():
            if event.type == "SESSION_FORKED":
                decided = None
            elif event.type == "APPROVAL_REQUESTED" and event.payload.get("id") == id:
                asked, decided = event, None
            elif event.type == "APPROVAL_DECIDED" and event.payload.get("id") == id:
                decided = event
        return asked, decided

    def scheduled(self, task: str, due: Json, result: Json) -> SealedAt:
        """Something ran in the background, and this came of it."""
        return self.append("SCHEDULED_TASK_FIRED", task=task, due=due, result=result)

    def compact(self, from_seq: int, to_seq: int, summary: Json) -> SealedAt:
        """In the context of policies with compaction, ``summary`` stands for the events from_seq <= seq < to_seq.

        Raises:
            UsageError: there are no such events.
        """
        if not 1 <= from_seq < to_seq <= self.head():
            raise UsageError(
                f"session {self.session_id} has no events {from_seq} to {to_seq - 1}",
                f"its events are numbered from 1 to {self.head() - 1}",
            )
        return self.append("CONTEXT_COMPACTED", from_=from_seq, to=to_seq, summary=summary)

    def header(
        self, *, instructions: Json = None, tools: Json = None, parameters: Json = None, policy: Policy | None = None
    ) -> SealedAt | None:
        """Say what stays the same from call to call, unless it is what was said last.

        Args:
            instructions: list of message parts; tools: list of tool definitions; parameters: model and settings.
            policy: whose saved projection tells what was said last, so that a long log is not read again; default: the log's.
        """
        given = {"instructions": instructions, "tools": tools, "parameters": parameters}
        given = {key: value for key, value in given.items() if value is not None}
        if self.state(policy).state.get("header", {}) == given:
            return None
        return self.append("REQUEST_HEADER", **given)

    # --- reading ----------------------------------------------------------------------------------------------------

    def head(self) -> int:
        """The number that the next event gets; 0 for a session that has no events."""
        head = self.store.head(self.stream)
        return 0 if head is None else head[0]

    def events(self, from_seq: int = 0) -> Iterator[Event]:
        """The events from a number on, with their content; number 0 is STREAM_OPENED."""
        for event in self.store.read(self.stream, from_seq):
            self.events_read += 1
            yield event

    def project(
        self, policy: Policy | None = None, at: int | None = None, *, budget: int | None = None
    ) -> list[Message]:
        """The messages of the model's context.

        Args:
            policy: what enters it; default: the log's.
            at: as it was right after this event (time travel); default: now.
            budget: tokens; the oldest turns are left out.
        """
        used = policy or self.policy
        return used.render(self.state(used, at).state, budget)

    def state(self, policy: Policy | None = None, at: int | None = None) -> saved.Saved:
        """The state of a policy after event ``at`` (default: the last), and that event's number and hash.

        Only events after the saved projection are read, where there is one that fits.

        Raises:
            UsageError: the session has no event ``at``: what is to come nobody knows.
            RecordingUnreadable: it has, but it can't be read.
        """
        used = policy or self.policy
        now = saved.load(self.store, self.stream, used, at) or saved.Saved(start(), -1, "")
        seq, digest = now.seq, now.hash

        def later() -> Iterator[Event]:
            nonlocal seq, digest
            for event in self.events(now.seq + 1):
                if at is not None and event.seq > at:
                    return
                yield event
                seq, digest = event.seq, event.hash

        state: State = project(later(), used, now.state)
        if at is not None and at > seq:
            raise self._no_event(at)
        return saved.Saved(state, seq, digest)

    def request_at(self, seq: int, policy: Policy | None = None, *, budget: int | None = None) -> dict[str, Json]:
        """What the model was given when the log ended at event ``seq``: ``{header, messages}``.

        ``header``: ``{instructions, tools, parameters}`` of the newest REQUEST_HEADER by then, as far as it was said.
        """
        used = policy or self.policy
        state = self.state(used, seq).state
        return {"header": state.get("header", {}), "messages": used.render(state, budget)}

    def asked_at(self) -> list[int]:
        """The events after which the model was asked: those before an answer, which is a reply, calls of tools, or an error."""
        found: list[int] = []
        before = ""
        for event in self.events():
            goes_on = event.type == "TOOL_CALLED" and before in ("AGENT_REPLY_APPENDED", "TOOL_CALLED")
            if event.type in ("AGENT_REPLY_APPENDED", "TOOL_CALLED", "ERROR") and not goes_on:
                found.append(event.seq - 1)
            before = event.type
        return found

    def save_projection(self, policy: Policy | None = None) -> saved.Saved:
        """Save the state now, so that the next opening reads only later events; PROJECTION_SAVED says so in the log.

        Raises:
            UsageError: the session has no events.
        """
        used = policy or self.policy
        now = self.state(used)
        if now.seq < 0:
            raise UsageError(f"session {self.session_id} has no events")
        saved.save(self.store, self.stream, used, now)
        self.append("PROJECTION_SAVED", policy=used.name, version=used.version, upto=now.seq, hash=now.hash)
        return now

    def close(self) -> None:
        """Say that the log ends here for now, so that ``verify`` knows that nothing was cut off. Any process may go on with it
        at any time. A ``with`` block does so at its end. Only files know an end; in other stores nothing happens.

        Raises:
            OSError: nothing was written.
        """
        if isinstance(self.store, FileEventStore):
            self.store.seal(self.stream)

    def __enter__(self) -> SessionLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- forks ------------------------------------------------------------------------------------------------------

    def fork(self, at: int, session_id: str | None = None) -> SessionLog:
        """A new session that begins as this one did up to event ``at``. This one is not touched.

        The fork holds copies of its own, each with the hash of what it repeats: it needs nothing of this session later.

        Args:
            session_id: of the fork; default: this one's, ``at``, and a random end.

        Raises:
            UsageError: there is no such event, or a session with that id.
        """
        head = self.head()
        if not 0 <= at < head:
            raise self._no_event(at)
        child = SessionLog(self.store, session_id or f"{self.session_id}.fork{at}-{secrets.token_hex(3)}", self.policy)
        copies: list[NewEvent] = []
        origin: Event | None = None
        for event in self.events():
            if event.seq > at:
                break
            origin = event
            if event.seq > 0:
                where = Envelope(event.run, event.session, event.turn, event.step, event.trace)
                copies.append(NewEvent(event.type, event.payload, where, None, event.hash, event.ts))
        if origin is None or origin.seq != at:
            raise self._no_event(at)
        place = {"stream": self.stream, "at": at, "hash": origin.hash}
        told = NewEvent(
            "SESSION_FORKED",
            {"session": self.session_id, "at": at, "hash": origin.hash},
            Envelope(session=child.session_id),
        )
        try:
            self.store.append(child.stream, [*copies, told], 0, opened={"forkOf": place})
        except SequenceConflict:
            raise UsageError(
                f"there is a session {child.session_id} already", "give the fork another id, or leave it out"
            ) from None
        return child

    def spawn(self, name: str, task: Json, session_id: str | None = None) -> SessionLog:
        """A sub-agent with a session of its own, which begins as a fork of this one as it is now."""
        child = self.fork(self.head() - 1, session_id)
        self.append("SUBAGENT_SPAWNED", name=name, session=child.session_id, task=task)
        return child

    def join(self, child: SessionLog, name: str, result: Json) -> SealedAt:
        """A sub-agent came back."""
        return self.append("SUBAGENT_JOINED", name=name, session=child.session_id, result=result)

    # --- within -----------------------------------------------------------------------------------------------------

    def _event(self, type_: str, given: dict[str, Json]) -> NewEvent:
        keys = dict(keys_of(TYPES[type_])) if type_ in TYPES else {}
        typed = checked(type_, {keys.get(name, name): value for name, value in given.items()})
        if type(typed).__module__ != OF_A_SESSION and type_ not in ALSO:
            raise EventInvalid(f"{type_} is no event of a session", "its types stand in docs/sessions.md")
        return NewEvent(type_, typed.to_json(), Envelope(session=self.session_id))

    def _no_event(self, at: int) -> AgentRecError:
        """The error of asking for an event that is not there, or can't be read."""
        head = self.head()
        if 0 <= at < head:
            told = f"session {self.session_id} can't be read up to event {at}"
            return RecordingUnreadable(told, "otel-agentrec verify shows the damage")
        have = f"its events are numbered from 0 to {head - 1}" if head else "it has no events"
        return UsageError(f"session {self.session_id} has no event {at}", have)

    def _append(self, events: list[NewEvent], expected_seq: int | None = None) -> list[SealedAt]:
        is_start = events[0].type == "SESSION_STARTED"
        while not is_start and expected_seq is None and self.store.head(self.stream) is None:
            started = NewEvent("SESSION_STARTED", {}, Envelope(session=self.session_id))
            try:
                return self.store.append(self.stream, [started, *events], 0)
            except SequenceConflict:
                continue  # another process began it
        return self.store.append(self.stream, events, expected_seq)

    def _refuse_half_a_fork(self) -> None:
        first = next(self.store.read(self.stream), None)
        place = first.payload.get("forkOf") if first is not None else None
        at = place.get("at") if isinstance(place, dict) else None
        if type(at) is not int:
            return
        last = next(self.store.read(self.stream, at + 1), None)
        if last is None or last.type != "SESSION_FORKED":
            raise RecordingUnreadable(
                f"session {self.session_id} is a fork that was never finished",
                f"fork event {at} of {place['stream']} again under another id" if isinstance(place, dict) else "",
            )
