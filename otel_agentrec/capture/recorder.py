"""The recorder: one per process and path, fed by the processors of any number of providers."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from otel_agentrec.capture import handed, metrics
from otel_agentrec.capture.audience import Audience
from otel_agentrec.capture.background import Background, on_event_loop
from otel_agentrec.capture.completions import Completion
from otel_agentrec.capture.deferred import Deferred
from otel_agentrec.capture.edge import LedgerEdge, envelope_of
from otel_agentrec.capture.exporting import Exports
from otel_agentrec.capture.forked import end_with_child
from otel_agentrec.capture.forward.outlets import Outlets
from otel_agentrec.capture.forward.sealed import SealedSpans
from otel_agentrec.capture.guard import PROCESS, Counters, Guard, Notices, guarded
from otel_agentrec.capture.once import SaidOnce
from otel_agentrec.capture.opening import Key, can_wait, frozen, is_slow
from otel_agentrec.capture.spans import from_sdk_log
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.capture.tracking import Tracker
from otel_agentrec.capture.turns import Turns
from otel_agentrec.capture.versions import versions
from otel_agentrec.capture.ways import CONFIGURE, FROM_OUTSIDE, WITH_WIRE
from otel_agentrec.errors import ConfigurationError
from otel_agentrec.journal.draft import SealedAt
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.journal import Journal
from otel_agentrec.records import IoCaptureSink
from otel_agentrec.redaction import Redactor
from otel_agentrec.settings import Settings, unknown_names

if TYPE_CHECKING:
    from otel_agentrec.capture.wire.recorder import WireRecorder

__all__ = ["RECORDERS", "Recorder", "place_of"]

WIRE_PATIENCE = 0.5
"""Seconds that the end of an agent or of a model call waits for what the wire told before it."""
PATIENCE = 30.0
"""Seconds that a shutdown waits for deferred records."""
Then = Callable[[Any], None]


class Recorder:
    """Records what its processors are told into one recording directory.

    ``shutdown`` (or leaving the ``with`` block) closes the recording for good; the processors that are left behind do
    nothing any more. When OTel shuts the providers down instead, the stream is sealed after the last of them, and spans
    that still come open a new stream that is marked late.

    Args:
        settings: ``path`` must be set.
        sinks: receive node records; what they raise is counted.
        way: how recording was switched on, as the user knows it.
        from_outside: it is switched on for the whole process, around the program; default: as ``way`` is.

    Raises:
        ConfigurationError: no path, or a setting that can't be used.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        sinks: Iterable[IoCaptureSink | str] = (),
        way: str = CONFIGURE,
        from_outside: bool | None = None,
    ) -> None:
        if not settings.path:
            raise ConfigurationError("no path to record to", "configure('./agentrec'), or set OTEL_AGENTREC_PATH")
        self.settings = settings
        self.place = place_of(settings.path)
        self.path = self.place  # absolute: the program may change its directory
        self.way = way
        self.is_from_outside = way in FROM_OUTSIDE if from_outside is None else from_outside
        """The whole process is recorded; what the program itself asks for joins in."""
        self.listeners: list[Any] = []
        """Listeners of every ``agent_run`` of this process."""
        self.redactor = Redactor.from_setting(settings.redact)
        self.notices = Notices(self.redactor.text)
        self.counters = Counters(
            "nodes", "swallowed", "late", "evicted", "abandoned", "reentrant", "deferred", "content_missing"
        )
        self.guard = Guard(self.counters, self.notices)
        self.outlets = Outlets(self)
        self._opened: dict[str, Any] = {"sdk": versions(), "configDigest": settings.digest()}
        self._journal = Journal(
            self.path,
            origin=settings.host,
            content=settings.content,  # type: ignore[arg-type]
            durability="fsync" if settings.durability == "fsync" else "written",
            segment_bytes=settings.segment_bytes,
            value_bytes=settings.value_bytes,
            opened=self._opened,
            counted=lambda: self.counters.untold("nodes"),
            redactor=self.redactor,
            told=self.outlets.written,
        )
        self._turns = Turns(self._waiting_call_failed)
        self._once = SaidOnce(self._write, lambda: self._journal.stream)
        self._background = Background(self._sweep, self.guard)
        self._deferred: Deferred | None = None
        if settings.durability == "deferred":
            self._deferred = Deferred(settings.queue, self.guard, self._journal.drop)
        self._tracker = Tracker(self._write, self._once, self._background.wake, settings, self.counters, self.notices)
        self._foreign = self._tracker.foreign
        self.edge = LedgerEdge(
            self._journal, self._tracker, self._take, self._later, self.drain, self._after, settings.run_id
        )
        self.exports = Exports(self, self._tracker, self._write, self._take, self.drain)
        """What exporters of ours are given."""
        self._audience = Audience(self.path, settings, self.gate, self.guard)
        self.add_sinks(sinks)
        self._attached: dict[int, object] = {}
        self._sealed = False
        self._closed = self.edge.is_closed = not settings.enabled
        self._stream: str | None = None
        self._wire: WireRecorder | None = None
        self._abandoned = self.guard.wrap("a span's finaliser", self._span_abandoned)
        for name, nearest in unknown_names().items():
            self.notices.once(f"unknown {name}", f"{name} is not a setting: {nearest}")
        RECORDERS.add(self)
        if settings.enabled:
            handed.taken_by(self)
            if settings.wire or (settings.wire is None and way in WITH_WIRE):
                self.guard.run("recording the wire", self.watch_wire)
            self.guard.run("metrics", metrics.watch, self, self.counters, self._journal.counters)

    # --- what processors call -----------------------------------------------------------------------------------------

    def attach(self, processor: object) -> None:
        """A processor will tell us spans or logs until it is shut down."""
        self._attached[id(processor)] = processor

    def span_started(self, span: Any, processor: object) -> None:
        if self._closed:
            return
        if self._deferred is not None:
            self._deferred.put(self._started, span, processor)
        else:
            self._started(span, processor)

    def span_ended(self, span: Any, then: Then | None = None) -> None:
        """``then`` is called with the span once its event is written, on whatever thread does that, and in every case."""
        if self._closed:
            self._follow(then, span)
        elif self._deferred is not None:
            if not can_wait(span):
                self._deferred.drain(PATIENCE)
                self._ended(span, then)
            elif not self._deferred.put(self._ended, span, then):
                self._follow(then, span)
        elif self._foreign.ended(span):
            self._follow(then, span)
        elif on_event_loop() and is_slow(span) and self._background.put(partial(self._ended, span, then)):
            self.counters.add("deferred")
        else:
            self._step_ended(span, then)

    def log_emitted(self, data: Any) -> None:
        logs = self._tracker.logs
        if self._closed or not logs.wants(data) or not self.exports.is_new(data) or (echo := logs.echo()) is None:
            return
        log = frozen(from_sdk_log(data))
        if self._deferred is not None:
            self._deferred.put(self._take, logs.emitted, log, echo)
        else:
            self._take(logs.emitted, log, echo)

    def completed(self, completion: Completion) -> None:
        """The completion hook was told what a model or an agent was asked and answered."""
        if self._closed:
            return
        if self._deferred is not None:
            self._deferred.put(self._take, self._tracker.completed, completion)
        else:
            self._take(self._tracker.completed, completion)

    # --- what follows from both ---------------------------------------------------------------------------------------

    def _started(self, span: Any, processor: object) -> None:
        if not self._foreign.started(span):
            self._take(self._start, span, processor)

    def _ended(self, span: Any, then: Then | None = None) -> None:
        if self._foreign.ended(span):
            self._follow(then, span)
        else:
            self._step_ended(span, then)

    def _step_ended(self, span: Any, then: Then | None) -> None:
        wire = self._wire if not self.is_inside else None
        is_agent = wire is not None and self._tracker.is_agent(span)
        try:
            # Who finds the end of a run in a recording finds all its calls there; and the program goes on with an answer only
            # when that is where a crash leaves it.
            if wire is not None and (is_agent or self._tracker.has_calls(span)):
                wire.drain(WIRE_PATIENCE)
            self._take(self._tracker.ended, span)
            if (
                wire is not None and is_agent
            ):  # calls of which only the wire tells are written once their agent has ended
                wire.drain(WIRE_PATIENCE)
        finally:
            self._follow(then, span)

    def _follow(self, then: Then | None, span: Any) -> None:
        if then is not None and self.is_inside:  # the span waits until this thread has done with another one
            self._take(then, span)
        elif then is not None:
            then(span)

    def drain(self, seconds: float) -> bool:
        """Wait for what other threads of ours still have to write; False when that took too long."""
        done = self._background.drain(seconds)
        done = (self._deferred is None or self._deferred.drain(seconds)) and done
        return (self._wire is None or self._wire.drain(seconds)) and done

    def _write_what_waits(self) -> None:
        """Before the end: what waits is written, or counted as dropped where nothing moves any more."""
        self._background.drain(PATIENCE)
        if self._deferred is not None:
            self._deferred.finish(PATIENCE)
        if self._wire is not None:
            self._wire.drain(PATIENCE)

    def _finish_wire(self) -> None:
        if self._wire is not None:
            self._wire.finish(PATIENCE)

    def _end_program(self) -> None:
        if self.edge.program is not None:
            self.edge.program.end()
            self.drain(PATIENCE)
        self.guard.run("flushing what is handed on", self.outlets.settle)

    def watch_wire(self) -> None:
        """Record model calls as they stand on the wire too, from now on."""
        if self._wire is None and not self._closed:
            from otel_agentrec.capture.wire.recorder import WireRecorder

            self._wire = WireRecorder(self, self._tracker, self._write, self._take)

    def detach(self, processor: object) -> None:
        """The processor was shut down: its open calls are interrupted; after the last one the stream is sealed."""
        if self._closed or self._attached.pop(id(processor), None) is None:
            return
        self._write_what_waits()
        self._take(self._tracker.interrupt_open, processor)
        self._finish_wire()
        if not self._attached:
            self._take(self.exports.finish)
            self._end_program()
            self._take(self._seal)

    def release(self, processor: object) -> None:
        """The processor no longer stands for a provider; spans it saw start may still end through it."""
        self._attached.pop(id(processor), None)

    def _start(self, span: Any, processor: object) -> None:
        is_new = self._tracker.started(span, processor, self._abandoned)
        if not is_new and not any(getattr(one, "forwarder", None) for one in tuple(self._attached.values())):
            self.notices.once("twice", f"already recording through {self.way}: the second processor changes nothing")

    def _span_abandoned(self, key: Key) -> None:
        if self._closed:
            return
        if self._deferred is not None:  # its end may still wait there
            self._deferred.follow(self._take, self._tracker.abandoned, key)
        else:
            self._take(self._tracker.abandoned, key)

    def _take(self, fn: Any, *args: Any) -> None:
        try:
            if not self._turns.take(fn, *args):
                self.counters.add("reentrant")
        except Exception as error:
            self._lost(error)
            raise

    def _lost(self, error: Exception) -> None:
        self._journal.drop(1, f"{type(error).__name__} while recording")

    def _waiting_call_failed(self, error: Exception) -> None:
        self.guard.swallow("a waiting call", error)
        self._lost(error)

    # --- what users call ----------------------------------------------------------------------------------------------

    @guarded("shutdown")
    def shutdown(self) -> None:
        """Close the recording: open calls are interrupted, the stream is sealed, sinks are closed. Once."""
        if self._closed:
            return
        self._write_what_waits()
        self._take(self._tracker.interrupt_open, None)
        self._finish_wire()
        self._take(self.exports.finish)
        self._end_program()
        self._take(self._close)

    @guarded("force_flush", fallback=False)
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait for records that were deferred; all others are in the kernel already. False when that took too long."""
        seconds = timeout_millis / 1000
        return False not in [wait(seconds) for wait in (self.drain, self._audience.drain, self.outlets.flush)]

    def stats(self) -> dict[str, int]:
        """Counts since the start of this process: ``nodes`` (model and tool calls), ``records`` (journal events),
        ``dropped``, ``swallowed``, ``late``, ``evicted``, ``abandoned``, ``reentrant``, ``deferred``, ``content_missing``,
        ``open`` (spans now open), and where something happened ``forwarded``, ``events_sent``, ``events_lost`` and more."""
        counts = self.counters.as_dict()
        redacted = {f"redacted.{rule}": n for rule, n in list(self.redactor.counts.items()) if n}
        for more in (dict(self._journal.counters), PROCESS.counters.as_dict(), redacted):
            for name, n in more.items():
                counts[name] = counts.get(name, 0) + n
        return {"records": 0, "dropped": 0, **counts, "open": len(self._tracker.table)}

    @property
    def is_inside(self) -> bool:
        """Whether this thread is about to record something."""
        return self._turns.is_inside

    @property
    def sealed(self) -> SealedSpans:
        """Which event each span became that ended."""
        return self._tracker.sealed

    @property
    def gate(self) -> Gate:
        """What everything passes that is written or handed to sinks."""
        return self._journal.gate

    def add_sinks(self, sinks: Iterable[IoCaptureSink | str]) -> None:
        self._audience.add(sinks)
        names = self._audience.names()
        if names:
            self._opened["sinks"] = [self.redactor.text(name) for name in names]

    def has_sink(self, sink: IoCaptureSink) -> bool:
        return self._audience.has(sink)

    @property
    def is_closed(self) -> bool:
        return self._closed

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _write(self, event: StepEvent, only_in: str | None = None) -> SealedAt | None:
        begun = perf_counter_ns() if metrics.timing else 0
        done = self._journal.append(event.type, event.payload, envelope_of(event), only_in=only_in)
        if done is not None and begun:
            metrics.wrote(perf_counter_ns() - begun)
        self._after(event, done)
        return done

    def _after(self, event: StepEvent, done: SealedAt | None) -> None:
        """Count what was written, and tell who listens."""
        if done is not None:
            self._stream = done.stream
            if self._sealed and event.type != "PROVIDER_SEEN":
                self.counters.add("late")
            if event.type == "NODE_RECORDED":
                self.counters.add("nodes")
            elif event.type == "NODE_ANSWERED":
                self.sealed.answered(event)
        self._audience.feed(event, done)

    def _later(self, event: StepEvent) -> None:
        """Write an event after all that was told before."""
        if not self._closed:
            put = self._take if self._deferred is None else partial(self._deferred.put, self._take)
            put(self._write, event)

    def _sweep(self) -> bool:
        if self._closed:
            return False
        self._take(self._tracker.sweep)
        return self._tracker.has_unknown

    def _seal(self) -> None:
        self._sealed = True
        self._journal.seal()
        self._audience.finish()
        self.guard.run("the end of sending", self.outlets.sealed)

    def _close(self) -> None:
        self._closed = True
        if self._wire is not None:
            self._wire.close()
        handed.left_by(self)
        self._journal.seal()
        self._audience.finish()
        self.guard.run("the end of sending", partial(self.outlets.sealed, is_last=True))
        self._audience.close()
        self._attached.clear()

    def _after_fork_in_child(self) -> None:
        """The journal opens a stream of its own in the child; spans open across the fork are the parent's to record."""
        forked_from = {"pid": os.getppid()} | ({"stream": self._stream} if self._stream else {})
        self._stream = None
        self._turns.after_fork()
        self._background.after_fork()
        if self._deferred is not None:
            self._deferred.after_fork()
        if self._wire is not None:
            self._wire.after_fork()
        self._once.after_fork()
        self.exports.after_fork()
        self._audience.after_fork()
        self.counters.reset()
        self.edge.after_fork()
        self._tracker.table.after_fork(forked_from)
        self._tracker.sealed.after_fork()
        self.outlets.after_fork()
        end_with_child(self)


RECORDERS: weakref.WeakSet[Recorder] = weakref.WeakSet()
"""All recorders of this process."""


def place_of(path: str) -> str:
    """The one name of a directory, whatever way it is written; it need not exist."""
    try:
        return os.path.realpath(path)
    except OSError:  # the working directory is gone
        return path


def _after_fork_in_child() -> None:
    for recorder in list(RECORDERS):
        recorder.guard.run("fork", recorder._after_fork_in_child)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
