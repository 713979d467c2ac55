"""Sessions while calls are still coming: told of every event that is written, works on a thread of its own.

The thread that ends a span only puts the event into a queue. What waits there when a process is killed is not lost to the
session: the next call of the conversation brings the whole history.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from otel_agentrec.capture.conversations.book import Book
from otel_agentrec.capture.conversations.call import Answered, Call, call_of, result_of
from otel_agentrec.capture.deferred import Deferred
from otel_agentrec.capture.guard import Guard
from otel_agentrec.capture.payloads import frozen_copy
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.journal.draft import ContentMode, SealedAt
from otel_agentrec.journal.events import Event
from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.lists import parsed
from otel_agentrec.nodes.fold import View
from otel_agentrec.nodes.live import LiveFold
from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.settings import Settings

__all__ = ["SessionTeller", "session_teller"]

Json = Any

MAX_QUEUE = 4_096
"""Events that may wait; beyond it they are left out, and the next call of the conversation brings what was said."""
MAX_TRACES = 1_024
"""Traces of which it is known that they belong to a session."""
MAX_HELD = 64
"""Events held of traces that have named no session so far."""
MAX_RUNS, MAX_CALLS = 64, 64
"""Calls held whose run has named no session so far."""
MAX_RESULTS = 256
PATIENCE = 30.0

_OF_ALL = frozenset({"REQUEST_HEADER", "LINKS"})
"""Events that belong to no trace by themselves."""
_WANTED = _OF_ALL | {
    "RUN_STARTED",
    "RUN_ENDED",
    "HANDOFF_STARTED",
    "HANDOFF_ENDED",
    "STEP_STARTED",
    "STEP_ENDED",
    "NODE_STARTED",
    "NODE_RECORDED",
    "NODE_AMENDED",
    "NODE_INTERRUPTED",
    "LOG_RECORDED",
}
Told = tuple[StepEvent, SealedAt]


def session_teller(
    directory: str | os.PathLike[str], settings: Settings, gate: Gate, guard: Guard
) -> SessionTeller | None:
    """The teller of a recording; None where sessions are switched off, or content is: then nobody knows what was said."""
    if not settings.sessions or settings.content == "off":
        return None
    mode = cast(ContentMode, settings.content)
    return SessionTeller(
        lambda: Book(Path(directory), settings.host, gate, mode),
        guard,
        lambda count, why: guard.counters.add("sessions_behind", count),
    )


class SessionTeller:
    """Args:
    book: makes the book of a process: anew after a fork.
    dropped: told how many events did not fit into the queue, and why.
    """

    def __init__(self, book: Callable[[], Book], guard: Guard, dropped: Callable[[int, str], None]) -> None:
        self._make_book, self._guard = book, guard
        self._work = Deferred(MAX_QUEUE, guard, dropped)
        self._reset()

    def _reset(self) -> None:
        self._book: Book | None = None
        self._fold = LiveFold(also=self._heard)
        self._lock = threading.Lock()
        self._traces: OrderedDict[str, None] = OrderedDict()
        self._held: deque[Told] = deque(maxlen=MAX_HELD)
        self._waiting: OrderedDict[str, list[Call]] = OrderedDict()
        self._answered: OrderedDict[tuple[str, str], Answered] = OrderedDict()
        self._resuming: set[str | None] = set()
        """Runs that go on with a recorded one."""

    def after_fork(self) -> None:
        self._work.after_fork()
        self._reset()

    def feed(self, event: StepEvent, at: SealedAt) -> None:
        """Take an event that was written. Only events of traces that name a session cost more than a look."""
        if event.type == "RUN_RESUMED":  # before any call of that run has ended
            self._resuming.add(event.run)
        if event.type not in _WANTED:
            return
        told = StepEvent(
            event.type, frozen_copy(event.payload), event.run, event.session, event.turn, event.step, event.trace
        )
        trace = event.trace.get("traceId") or ""
        with self._lock:
            if event.session:
                self._traces[trace] = None
                self._traces.move_to_end(trace)
                if len(self._traces) > MAX_TRACES:
                    self._traces.popitem(last=False)
            elif trace not in self._traces and not (event.type in _OF_ALL and self._traces):
                self._held.append((told, at))
                return
            for one in [*self._of_trace(trace), (told, at)]:
                self._work.put(self._take, *one)

    def drain(self, seconds: float) -> bool:
        """Write what waits; False when that took too long."""
        return self._work.drain(seconds)

    def finish(self) -> None:
        """Write what waits, also what still hoped for more, and seal the sessions."""
        self._work.finish(PATIENCE)
        self._fold.close()
        if self._book is None:
            return
        by_session: dict[str, dict[str, Answered]] = {}
        for (session, call_id), answered in self._answered.items():
            by_session.setdefault(session, {})[call_id] = answered
        for session, found in by_session.items():
            self._guard.run("sessions", self._book.results, session, found)
        self._guard.run("sessions", self._book.seal)

    def _of_trace(self, trace: str) -> list[Told]:
        """What was held of a trace that has just named its session, and of all traces; it is held no longer."""
        found: list[Told] = []
        rest: deque[Told] = deque(maxlen=MAX_HELD)
        for one in self._held:
            event, _ = one
            (found if event.type in _OF_ALL or (event.trace.get("traceId") or "") == trace else rest).append(one)
        self._held = rest
        return found

    # --- on the thread of its own -------------------------------------------------------------------------------------

    @property
    def book(self) -> Book:
        if self._book is None:
            self._book = self._make_book()
        return self._book

    def _take(self, event: StepEvent, at: SealedAt) -> None:
        payload = event.payload
        if event.type == "REQUEST_HEADER":
            payload = {key: parsed(value) for key, value in payload.items()}
        self._fold.feed(
            Event(
                id=str(uuid.uuid4()),
                stream=at.stream,
                seq=at.seq,
                ts=at.ts,
                type=event.type,
                payload=payload,
                run=event.run,
                session=event.session,
                turn=event.turn,
                step=event.step,
                trace=event.trace or None,
                hash=at.hash,
                prev_hash=at.prev_hash,
            )
        )
        run = event.run or event.trace.get("traceId")
        if event.session and run is not None:
            for call in self._waiting.pop(run, ()):
                call.session = event.session
                self._guard.run("sessions", self.book.tell, call)

    def _heard(self, view: View, s: Span) -> None:
        self._guard.run("sessions", self._tell, view, s)

    def _tell(self, view: View, s: Span) -> None:
        session = view.session(s)
        if s.kind == Kind.TOOL and session is not None:
            result = result_of(view, s, session, self.book.reading)
            if result is not None:
                self._answered[session, result.call_id] = result
                if len(self._answered) > MAX_RESULTS:
                    self._answered.popitem(last=False)
        elif s.kind == Kind.MODEL:
            call = call_of(view, s, session, self.book.reading)
            if call is None:
                return
            call.resumes = view.run(s) in self._resuming
            if session is not None:
                self.book.tell(call)
                return
            calls = self._waiting.setdefault(view.run(s), [])
            if len(calls) < MAX_CALLS:
                calls.append(call)
            if len(self._waiting) > MAX_RUNS:
                self._waiting.popitem(last=False)
