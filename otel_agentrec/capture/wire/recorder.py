"""Model calls on the wire become journal events: the observer that interception points tell.

The program's thread only notes which spans are open and puts the exchange on a queue; all else is done by a thread of ours.
An exchange may end in a finaliser or a signal handler, inside any lock: the queue is one that may be added to from there.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace

from otel_agentrec.capture.opening import Key, OpenSpan
from otel_agentrec.capture.program import stands_alone
from otel_agentrec.capture.spans import SpanView
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.capture.wire import ladder
from otel_agentrec.capture.wire.calls import Attempt, SpanTold
from otel_agentrec.capture.wire.events import payload_of, read_exchange
from otel_agentrec.capture.wire.facts import answer_facts, request_facts
from otel_agentrec.capture.wire.settle import Settler
from otel_agentrec.capture.wire.switch import SWITCHES
from otel_agentrec.journal.facts import Facts, Kind
from otel_agentrec.nodes.exchange import Exchange, ModelRequest, RecordedResponse, SpanRef
from otel_agentrec.nodes.keys import KeyRing, NoKey, wire_key
from otel_agentrec.nodes.wirebody import kept_request

if TYPE_CHECKING:
    from otel_agentrec.capture.recorder import Recorder
    from otel_agentrec.capture.tracking import Tracker

__all__ = ["WireRecorder"]

Json = Any
MAX_CANDIDATES = 512
MAX_OPEN = 16_384
"""Requests whose ends are waited for; of the oldest beyond that only the exchange itself is recorded."""
LOOK_SECONDS = 1.0
PATIENCE = 0.5
"""Seconds that the program waits for what is known of an answer to be written."""


class WireRecorder:
    """Args:
    recorder: whose recording it is.
    tracker: its open spans are looked at.
    write: puts an event into the journal.
    take: calls a function as one turn of the recorder.
    """

    def __init__(
        self,
        recorder: Recorder,
        tracker: Tracker,
        write: Callable[[StepEvent, str | None], object],
        take: Callable[..., object],
    ) -> None:
        self._tracker, self._write, self._take = tracker, write, take
        self._gate, self._guard, self._counters = recorder.gate, recorder.guard, recorder.counters
        settings = recorder.settings
        self._content, self._run_id = settings.content != "off", settings.run_id
        self._is_deferred = settings.durability == "deferred"
        self._directory = recorder.path
        self._recorder = recorder
        self._ring: KeyRing | None = None
        self._covered: Json = None
        self.after_fork()
        tracker.on_wire_span = self.span_ended
        self._switched = [switch(self, settings.wire_paths) for switch in SWITCHES]
        if not SWITCHES:
            recorder.notices.once(
                "wire", "the wire is not recorded this way: import otel_agentrec.otel.recording first"
            )

    def close(self) -> None:
        """From now on nothing is told us any more."""
        for switched in self._switched:
            self._guard.run("the end of wire recording", switched.off)
        self._later(self._take, self._stop)

    def after_fork(self) -> None:
        """In the child there is no thread, and what was under way is the parent's to record."""
        self._waiting: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._open: dict[int, Attempt] = {}
        self._gone: dict[int, ModelRequest] = {}
        self._settler = Settler(self._recorder, self._tracker, self._take, self._later)
        self._starting = threading.Lock()
        self._working = threading.Lock()
        self._worker: int | None = None
        self._thread: threading.Thread | None = None

    # --- what interception points call --------------------------------------------------------------------------------

    def started(self, request: ModelRequest) -> None:
        """A request is about to leave. On the program's thread; never raises an Exception.

        The answers before it are written first: after a crash they are had, whatever the program does with this one.
        """
        try:
            if self._waiting or self._worker is not None:
                self._wait()
            self._open[id(request)] = self._noted(request)
            if len(self._open) > MAX_OPEN:
                self._open.pop(next(iter(self._open)), None)
            if self._thread is None:
                self._start()
        except Exception as error:
            self._guard.swallow("the start of a wire call", error)

    def ended(self, exchange: Exchange) -> None:
        """Its body ended. From anywhere, a finaliser too."""
        attempt = self._open.get(id(exchange.request))
        self._later(self._take, self._body_ended, exchange)
        # The program goes on with an answer only when a crash leaves it there; where a span tells of the call, it is the end
        # of that which waits.
        if attempt is None or exchange.response.end not in ("eof", "closed"):
            return
        if not any(entry.kind == Kind.MODEL and not entry.is_left for entry in attempt.waits_for):
            self._wait()

    # --- what the recorder calls --------------------------------------------------------------------------------------

    def span_ended(self, entry: OpenSpan, view: SpanView | None, kind: str | None, facts: Facts | None) -> None:
        """A span ended; attempts may wait for it."""
        if entry.calls is None:
            entry.is_left = True
            return
        if kind == Kind.MODEL and facts is not None and view is not None:
            entry.told = SpanTold(view.trace_id, view.span_id, view.parent_span_id, view.scope, facts)
        entry.is_left = True  # what it told stands there by then
        self._later(self._take, self._settler.span_ended, entry)

    def drain(self, seconds: float) -> bool:
        """Work off what waits, on this thread if need be; False when that took too long."""
        if self._worker == threading.get_ident():
            return True
        if not self._working.acquire(timeout=max(0.0, seconds)):
            return False
        try:
            self._work_off()
        finally:
            self._working.release()
        return True

    def finish(self, seconds: float) -> None:
        """Nothing more will come: write what waits, decide all that is not decided. What never ended is told as ``gone``, with
        what has come of it."""
        self.drain(seconds)
        if self._worker == threading.get_ident():
            return
        if self._working.acquire(timeout=max(0.0, seconds)):
            try:
                self._worker = threading.get_ident()
                self._guard.run("the end of wire recording", self._take, self._end_all)
            finally:
                self._worker = None
                self._working.release()

    # --- on the program's thread --------------------------------------------------------------------------------------

    def _noted(self, request: ModelRequest) -> Attempt:
        table = self._tracker.table
        attempt = Attempt(request)
        key = _key(request.span)
        attempt.entry = table.nearest(key)
        named = _named(request.traceparent)
        if named is not None and named != key:
            attempt.named = table.nearest(named)
        here = trace.get_current_span()
        if request.span is not None and key == _key_of(here):
            attempt.around = trace.set_span_in_context(
                trace.NonRecordingSpan(here.get_span_context()), otel_context.Context()
            )
        sure = False
        for start in (attempt.entry, attempt.named):
            if start is not None:
                sure = _claim(start, attempt) or sure
        if not sure:
            some = [entry for entry in table if entry.is_open and entry.kind in (Kind.MODEL, None)]
            attempt.candidates = some[-MAX_CANDIDATES:]
            for entry in attempt.candidates:
                _wait_for(entry, attempt)
        return attempt

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name="otel-agentrec-wire", daemon=True)
            self._thread = thread
            try:
                thread.start()
            except RuntimeError:  # the interpreter is about to end: worked off by whoever drains
                self._thread = None

    def _wait(self) -> None:
        """Until what was told is written, for a while. Nothing is done on this thread, which may be inside any lock."""
        if (
            self._is_deferred
            or self._thread is None
            or self._recorder.is_inside
            or self._worker == threading.get_ident()
        ):
            return
        done = threading.Event()

        def written(rounds: int = 3) -> None:
            """A call that no span tells of gets one of ours, which is written in its turn."""
            if self._waiting and rounds:
                self._later(written, rounds - 1)
            else:
                done.set()

        self._later(written)
        done.wait(PATIENCE)

    # --- on our own thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        me = threading.current_thread()
        while self._thread is me:
            rang = True
            try:
                self._bell.get(timeout=LOOK_SECONDS if self._settler.waits else None)
            except queue.Empty:
                rang = False
            with (
                self._working
            ):  # what waits is taken inside: whoever has the lock and finds nothing knows that all is done
                if not rang:
                    self._waiting.append((self._take, (self._settler.look_again,)))
                self._work_off()

    def _work_off(self) -> None:
        self._worker = threading.get_ident()
        try:
            while self._waiting:
                self._do(self._waiting.popleft())
        finally:
            self._worker = None

    def _do(self, work: tuple[Callable[..., object], tuple[Any, ...]]) -> None:
        self._guard.run("a wire call", work[0], *work[1])

    def _body_ended(self, exchange: Exchange) -> None:
        if self._gone.get(id(exchange.request)) is exchange.request:  # it was told as never ended
            return
        attempt = self._open.pop(id(exchange.request), None)
        if attempt is None or attempt.request is not exchange.request:
            attempt = Attempt(exchange.request)
        attempt.exchange, attempt.since = exchange, time.monotonic()
        request = exchange.request
        kept, attempt.body = kept_request(request.body, request.headers.get("content-type"))
        body, plain, attempt.answer = read_exchange(exchange)
        attempt.facts = request_facts(request, attempt.body)
        answer_facts(
            attempt.facts, exchange.response, attempt.answer.payload, attempt.answer.complete, attempt.answer.streamed
        )
        attempt.digest = blake2b(request.path.encode() + b"\0" + request.body, digest_size=16).digest()
        self._settler.follow(attempt)
        verdict = ladder.decide_at_once(attempt)
        if verdict.rung is not None:
            attempt.rung, attempt.owner, attempt.rung_written = verdict.rung, verdict.owner, True
        if self._covered is None:
            self._tell_coverage()
        payload = payload_of(attempt, kept, body, plain, self._gate, self._key(attempt))
        if "withheld" in payload.get("flags", ()):
            attempt.facts.output_messages = attempt.facts.output_text = attempt.facts.calls = None
        self._write(self._event(attempt, payload), None)
        self._counters.add("wire")
        self._settler.add(attempt)

    def _key(self, attempt: Attempt) -> str | None:
        request = attempt.request
        try:
            if self._ring is None:
                self._ring = KeyRing.of(self._directory)
            return wire_key(
                self._ring,
                request.method,
                request.path,
                request.body,
                api=request.api,
                content_type=request.headers.get("content-type"),
            )
        except (NoKey, OSError, ValueError):
            return None

    def _event(self, attempt: Attempt, payload: dict[str, Json]) -> StepEvent:
        event = StepEvent("WIRE_RECORDED", payload, run=self._run_id)
        span, entry = attempt.request.span, attempt.owner or attempt.entry
        program = self._tracker.program
        is_alone = span is None if entry is None else stands_alone(entry)
        if program is not None and is_alone and attempt.named is None:
            event.run = program.id
        if attempt.owner is not None:
            event.trace = {"traceId": f"{attempt.owner.key[0]:032x}", "spanId": attempt.owner.span_id}
        elif span is not None:
            event.trace = {"traceId": span.trace_id, "spanId": span.span_id}
        if entry is not None:  # what the span has told, or will tell, is not stored twice
            event.session, event.scope = entry.session, entry.scope
        return event

    def _later(self, fn: Callable[..., object], *args: Any) -> None:
        """Have it called soon. Two single steps, which may be taken inside any lock."""
        self._waiting.append((fn, args))
        self._bell.put(None)

    def _end_all(self) -> None:
        come = {id(exchange.request): exchange for switched in self._switched for exchange in switched.under_way()}
        for attempt in list(self._open.values()):
            exchange = come.get(id(attempt.request))  # a stream that was dropped without close has its bytes there
            if exchange is None:
                exchange = Exchange(attempt.request, RecordedResponse(status=None, end="gone"), time.time_ns())
            self._body_ended(exchange)
            self._gone[id(attempt.request)] = attempt.request
        self._settler.finish()
        self._tell_coverage()

    def _stop(self) -> None:
        self._thread = None

    def _tell_coverage(self) -> None:
        """What is intercepted in this process, when it is first known and when it has changed."""
        rows = [row for switched in self._switched for row in switched.coverage()]
        if rows and rows != self._covered:
            self._covered = rows
            self._write(StepEvent("COVERAGE", {"points": rows}, run=self._run_id), None)


def _key(span: SpanRef | None) -> Key | None:
    return (int(span.trace_id, 16), int(span.span_id, 16)) if span is not None else None


def _key_of(span: Any) -> Key:
    context = span.get_span_context()
    return context.trace_id, context.span_id


def _named(traceparent: str | None) -> Key | None:
    """The span that a ``traceparent`` header names."""
    parts = (traceparent or "").split("-")
    try:
        return (int(parts[1], 16), int(parts[2], 16)) if len(parts) >= 4 else None
    except ValueError:
        return None


def _wait_for(entry: OpenSpan, attempt: Attempt) -> None:
    attempt.waits_for.append(entry)
    if entry.calls is None:
        entry.calls = []
    entry.calls.append(attempt)


def _claim(start: OpenSpan, attempt: Attempt) -> bool:
    """Mark the model spans that this attempt is surely of; False when the span is not known to be one."""
    at: OpenSpan | None = start
    while at is not None and at.kind is None:
        _wait_for(at, attempt)
        at = at.above
    if at is None:
        return False
    _wait_for(at, attempt)
    if at.kind != Kind.MODEL:
        return False
    while at is not None and at.kind in (Kind.MODEL, None, Kind.STEP):
        at.claims += 1
        at = at.above
    return True
