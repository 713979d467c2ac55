"""Sinks are told of records while events are still coming."""

from __future__ import annotations

import dataclasses
import threading
import time
import uuid
from collections.abc import Iterable
from typing import Any

from otel_agentrec.capture.guard import Guard
from otel_agentrec.capture.payloads import frozen_copy
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.journal.draft import SealedAt
from otel_agentrec.journal.events import Event
from otel_agentrec.journal.gate import Gate
from otel_agentrec.nodes.live import LiveFold
from otel_agentrec.records import IoCaptureSink, NodeIoRecord

__all__ = ["SinkTeller"]

Json = Any


class SinkTeller:
    """Folds the events of one writer and hands the records to sinks. What a sink raises is counted, and the next is told.

    Sinks get nothing that has not passed the ``gate``. Any thread may feed. Sinks are called without a lock: a sink that waits
    for another thread holds up only its own.
    """

    def __init__(self, sinks: Iterable[IoCaptureSink], guard: Guard, gate: Gate) -> None:
        self.sinks = list(sinks)
        self._gate = gate
        self._guard = guard
        self._lock = threading.Lock()
        self._fold = LiveFold()
        self._seq = 0

    def feed(self, event: StepEvent, at: SealedAt | None = None) -> int:
        """Take an event that was written to ``at`` (None: it stands in no journal); returns its sequence number."""
        payload = self._gate.payload(event.type, frozen_copy(event.payload))
        run, session, turn = map(self._gate.identifier, (event.run, event.session, event.turn))
        with self._lock:
            seq = at.seq if at is not None else self._seq
            self._seq = seq + 1
            records = self._fold.feed(
                Event(
                    id=str(uuid.uuid4()),
                    stream=at.stream if at is not None else "",
                    seq=seq,
                    ts=at.ts if at is not None else time.time_ns() // 1_000_000,
                    type=event.type,
                    payload=payload,
                    run=run,
                    session=session,
                    turn=turn,
                    step=event.step,
                    trace=event.trace or None,
                    hash=at.hash if at is not None else "",
                    prev_hash=at.prev_hash if at is not None else "",
                )
            )
        self._tell(records)
        return seq

    def finish(self) -> None:
        """Hand out what was still waiting."""
        with self._lock:
            records = self._fold.close()
        self._tell(records)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._fold = LiveFold()

    def _tell(self, records: list[NodeIoRecord]) -> None:
        for record in records:
            if record.journal is not None and not record.journal.stream:
                record = dataclasses.replace(record, journal=None)
            for sink in self.sinks:
                self._guard.run("a sink", sink.capture, record)
