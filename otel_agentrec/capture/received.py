"""Batches that arrive one by one, from any number of senders -> a recording. What ``serve`` does behind its sockets.

A batch is written as it comes. Who stands above whom is remembered for the newest traces, since children arrive before
their parents; log records wait a while for their span, since exporters send them earlier.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from otel_agentrec._version import __version__
from otel_agentrec.capture import dialects
from otel_agentrec.capture.batches import Batch
from otel_agentrec.capture.conversations.live import session_teller
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.ingest import kind_and_session, write_log, write_step
from otel_agentrec.capture.once import SaidOnce
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.capture.survey import Survey
from otel_agentrec.journal.draft import ContentMode, Envelope, SealedAt
from otel_agentrec.journal.facts import Facts
from otel_agentrec.journal.journal import Journal, StreamMoved, make_directory
from otel_agentrec.redaction import Redactor
from otel_agentrec.settings import Settings

__all__ = ["Outcome", "Receiver"]

MAX_TRACES = 10_000
"""Traces whose structure is remembered."""
MAX_WAITING_LOGS = 20_000
LOG_PATIENCE = 30.0
"""Seconds that a log record waits for its span."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``rejected`` items of a batch could not be read (``message`` says why); ``stored`` is False when the recording could
    not be written: then the sender should send the whole batch again."""

    rejected: int = 0
    message: str = ""
    stored: bool = True


class Receiver:
    """Writes batches into a recording, one at a time. Thread-safe.

    Raises:
        OSError: the directory can't be made.
    """

    def __init__(self, out: str | os.PathLike[str], settings: Settings) -> None:
        self.settings = settings
        self.counters: Counter[str] = Counter()
        """``batches``, ``spans``, ``logs``, ``foreign``, ``rejected``."""
        make_directory(Path(out))
        self.journal = Journal(
            out,
            origin=settings.host,
            content=cast(ContentMode, settings.content),
            durability="fsync" if settings.durability == "fsync" else "written",
            segment_bytes=settings.segment_bytes,
            value_bytes=settings.value_bytes,
            opened={"sdk": {"name": "otel-agentrec serve", "version": __version__}},
            redactor=Redactor.from_setting(settings.redact),
        )
        self._sessions = session_teller(out, settings, self.journal.gate, PROCESS)
        self._once = SaidOnce(self._put, lambda: self.journal.stream)
        self._traces: OrderedDict[str, _Trace] = OrderedDict()
        self._logs: OrderedDict[tuple[str, str], list[LogView]] = OrderedDict()
        self._waiting: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._lock = threading.Lock()
        self._failed = False

    def take(self, batch: Batch) -> Outcome:
        """Write all that a batch tells. What can't be read in it costs only itself."""
        with self._lock:
            self._failed = False
            faults = list(batch.faults)
            readings = self._survey(batch, faults)
            for log in batch.logs:
                self._take_log(log)
            for trace_id in {span.trace_id for span in batch.spans}:
                self._write_links(trace_id)
            for span, reading in readings:
                self._take_span(span, reading, faults)
            self._give_up_logs(time.monotonic() - LOG_PATIENCE)
            self.counters.update(batches=1, spans=len(batch.spans), logs=len(batch.logs), rejected=len(faults))
            return Outcome(len(faults), "; ".join(faults[:3]), not self._failed)

    def close(self) -> None:
        """Write what still waits, and seal the stream."""
        with self._lock:
            self._give_up_logs(float("inf"))
            self.journal.seal()
            if self._sessions is not None:
                PROCESS.run("sessions", self._sessions.finish)

    # --- spans ---

    def _survey(self, batch: Batch, faults: list[str]) -> list[tuple[SpanView, dialects.Reading]]:
        found = []
        for span in batch.spans:
            try:
                reading = dialects.read(span, self._logs.get((span.trace_id, span.span_id), ()))
            except Exception as e:
                faults.append(f"span {span.span_id}: {type(e).__name__} while it was read")
                continue
            self._trace(span.trace_id).survey.add(span, *kind_and_session(span, reading, self.settings))
            if reading is None:
                self.counters["foreign"] += 1
            else:
                found.append((span, reading))
        return found

    def _take_span(self, span: SpanView, reading: dialects.Reading, faults: list[str]) -> None:
        key = (span.trace_id, span.span_id)
        joined = self._logs.pop(key, [])
        self._waiting.pop(key, None)
        try:
            write_step(span, reading, self._trace(span.trace_id).survey, self)
        except Exception as e:
            faults.append(f"span {span.span_id}: {type(e).__name__} while it was written")
        for log in dialects.unread(reading, joined):
            write_log(log, self)

    def _trace(self, trace_id: str) -> _Trace:
        trace = self._traces.get(trace_id)
        if trace is None:
            trace = self._traces[trace_id] = _Trace(Survey(), set())
            if len(self._traces) > MAX_TRACES:
                self._traces.popitem(last=False)
        else:
            self._traces.move_to_end(trace_id)
        return trace

    def _write_links(self, trace_id: str) -> None:
        trace = self._trace(trace_id)
        for links in trace.survey.links():
            new = {span: parent for span, parent in links[trace_id].items() if span not in trace.linked}
            if new:
                trace.linked.update(new)
                self.append(StepEvent("LINKS", {"links": {trace_id: new}}))

    # --- logs ---

    def _take_log(self, log: LogView) -> None:
        use = dialects.log_use(log.event_name)
        if use == "ignore":
            return
        known = self._traces.get(log.trace_id or "")
        told = known is not None and known.survey.is_step(log.trace_id, log.span_id)
        if use == "join" and log.trace_id and log.span_id and not told:
            self._logs.setdefault((log.trace_id, log.span_id), []).append(log)
            self._waiting.setdefault((log.trace_id, log.span_id), time.monotonic())
            return
        write_log(log, self)

    def _give_up_logs(self, before: float) -> None:
        """Log records whose span has not come are recorded as they are."""
        while self._waiting:
            key, since = next(iter(self._waiting.items()))
            if since > before and len(self._logs) <= MAX_WAITING_LOGS:
                return
            del self._waiting[key]
            for log in self._logs.pop(key, ()):
                write_log(log, self)

    # --- the sink that write_step writes to ---

    def append(self, event: StepEvent, resource: Mapping[str, Any] | None = None) -> int | None:
        if resource:
            self.provider(resource)
        done = self._put(event)
        return done.seq if done is not None else None

    def provider(self, resource: Mapping[str, Any]) -> int | None:
        """The seq of the PROVIDER_SEEN of a resource in the stream that is being written; equal resources are one."""
        return self._once.resource(resource)

    def header(self, facts: Facts, scope: str) -> int | None:
        """The seq of the REQUEST_HEADER of these facts in the stream that is being written; equal ones are one."""
        return self._once.header_of(facts, scope)

    def _put(self, event: StepEvent) -> SealedAt | None:
        where = Envelope(event.run, event.session, event.turn, event.step, event.trace or None, event.scope)
        points = "header" in event.payload or "provider" in event.payload
        try:
            done = self.journal.append(
                event.type, event.payload, where, only_in=self.journal.stream if points else None
            )
        except StreamMoved:  # the stream has just been left: what the event points at is said again by its next like
            payload = {k: v for k, v in event.payload.items() if k not in ("header", "provider")}
            done = self.journal.append(event.type, payload, where)
        if done is None:
            self._failed = True
        elif self._sessions is not None:
            PROCESS.run("sessions", self._sessions.feed, event, done)
        return done


@dataclass(slots=True)
class _Trace:
    survey: Survey
    linked: set[str]
    """Foreign spans whose parent was written."""
