"""Every journal event goes out as a log record, in order, by a thread of our own.

The writing thread only puts the line into a queue. While nobody answers, the queue is kept and tried again; what does not fit
into it is lost to the receiver, counted, and said once: the recording has it all.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult

from otel_agentrec.capture.forward.aside import Aside
from otel_agentrec.capture.forward.eventrecords import OVERHEAD, EventRecords
from otel_agentrec.capture.forward.exporters import asked_timeout, protocol_of_exporter
from otel_agentrec.capture.forward.partly import listened_to
from otel_agentrec.capture.forward.sending import BATCH_BYTES, BATCH_COUNT, GRPC_LIMIT, Away, Delivery, deliver, shorter
from otel_agentrec.capture.guard import Guard
from otel_agentrec.journal.draft import SealedAt

__all__ = ["EventSender"]

MAX_WAITING = 32 << 20
"""Bytes of lines that may wait."""
LINGER = 1.0
"""Seconds that lines gather before they are sent."""
PAUSE = 5.0
"""Seconds after nobody answered in which the end of the program does not wait again."""
LONGEST_PAUSE = 30.0
"""Seconds between tries while nobody answers."""
_SENT, _LOST = "events_sent", "events_lost"

_Line = tuple[bytes, SealedAt]


class EventSender:
    """Args:
    make: makes the exporter; called again in a forked child.
    aside: where the program does not wait for it longer than it wants to.
    """

    def __init__(self, make: Callable[[], LogRecordExporter], path: str, guard: Guard, aside: Aside) -> None:
        self._make = make
        self._aside = aside
        self._path = path
        self._guard = guard
        self._counters = guard.counters
        self._is_closed = False
        self.after_fork()
        self._ready()  # it imports: a thread that does so while the process forks leaves the child with a lock nobody holds

    def after_fork(self) -> None:
        """In the child there is no thread, and what waited is the parent's to send."""
        self._queue: deque[_Line] = deque()
        self._bytes = 0
        self._exporter: LogRecordExporter | None = None
        self._records: EventRecords | None = None
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._sending = threading.Lock()
        self._away_at: float | None = None
        self._why = ""

    def put(self, line: bytes, at: SealedAt) -> None:
        """Take a line that was written. Called under the journal's lock, in order; never raises."""
        if self._is_closed:
            return
        size = len(line)
        if self._bytes + size > MAX_WAITING:
            self._lost(1, at, "the receiver does not keep up")
            return
        self._queue.append((line, at))
        self._bytes += size
        if self._thread is None:
            self._start()
        if not self._wake.is_set():
            self._wake.set()

    def flush(self, seconds: float) -> bool:
        """Send what waits; False when that took too long, or nobody answered."""
        if not self._queue:
            return True
        work = partial(self._guard.run, "sending events", self._flush, seconds)
        return self._aside.within(seconds, work) is True

    def _flush(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        if not self._sending.acquire(timeout=max(0.0, seconds)):
            return False
        try:
            while self._queue and time.monotonic() < end:
                if not self._send_one():
                    return False
            return not self._queue
        finally:
            self._sending.release()

    def at_end(self, seconds: float) -> None:
        """Send what waits, once; what is not taken is lost. More may still come."""
        away = self._away_at is not None and time.monotonic() - self._away_at < PAUSE
        done = not away and self.flush(seconds)
        left = len(self._queue)
        if left and not done:
            self._away_at = time.monotonic()  # whoever asks again, now or at the very end, need not wait again
            self._lost(left, self._queue[0][1], self._why or "nobody took it before the end")
            for _ in range(left):
                self._done()

    def close(self, seconds: float) -> None:
        """The same, and nothing more will come."""
        if self._is_closed:
            return
        self._hurry.set()
        self.at_end(seconds)
        self._is_closed = True
        self._wake.set()
        if self._exporter is not None:
            end = partial(self._guard.run, "the end of sending events", self._exporter.shutdown)
            self._aside.within(PAUSE, end)

    # --- our thread ---

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="otel-agentrec-events", daemon=True)
        self._thread = thread
        self._aside.ready()
        try:
            thread.start()
        except RuntimeError:  # the interpreter is about to end: close() sends it
            self._thread = None

    def _ready(self) -> tuple[LogRecordExporter, EventRecords]:
        if self._records is None:
            self._records = EventRecords()
        if self._exporter is None:
            self._exporter = listened_to(self._make())
        return self._exporter, self._records

    def _run(self) -> None:
        me, pause = threading.current_thread(), LINGER
        while self._thread is me and not self._is_closed:
            self._wake.wait()
            self._wake.clear()
            self._hurry.wait(pause)
            if self._hurry.is_set():
                return  # close() is here
            with self._sending:
                done = True
                while self._queue and done:
                    done = self._guard.run("sending events", self._send_one) is True
            pause = LINGER if done else min(2 * max(pause, LINGER), LONGEST_PAUSE)
            if not done:
                self._wake.set()

    def _send_one(self) -> bool:
        """Send the first batch that waits; it leaves the queue once it was dealt with. False: nobody answered."""
        exporter, records = self._ready()
        protocol = protocol_of_exporter(exporter)
        batch: list[_Line] = []
        size = 0
        for n in range(min(len(self._queue), BATCH_COUNT)):
            line, at = self._queue[n]
            if batch and size + len(line) + OVERHEAD > BATCH_BYTES[protocol]:
                break
            batch.append((line, at))
            size += len(line) + OVERHEAD
        if not batch:
            return True
        delivery: Delivery[_Line] = Delivery()

        def export(some: Sequence[_Line]) -> bool:
            made: list[ReadableLogRecord] = [
                records.of_line(line, at.stream, at.seq, at.hash, at.prev_hash, at.ts) for line, at in some
            ]
            return exporter.export(made) is LogRecordExportResult.SUCCESS

        try:
            if protocol == "grpc" and size > GRPC_LIMIT:
                delivery.refused, delivery.why = batch, "larger than the 4 MiB that gRPC receivers take"
            else:
                deliver(batch, export, delivery, asked_timeout("logs"))
        except Away as away:
            self._away_at, self._why = time.monotonic(), str(away)
            self._settled(batch[: delivery.dealt_with], delivery)
            return False
        self._away_at = None
        self._settled(batch, delivery)
        return True

    def _settled(self, lines: Sequence[_Line], delivery: Delivery[_Line]) -> None:
        """These leave the queue: they were taken, or never will be."""
        for _ in lines:
            self._done()
        self._counters.add(_SENT, delivery.sent)
        lost = delivery.rejected + len(delivery.refused)
        if lost:
            self._lost(lost, delivery.refused[0][1] if delivery.refused else None, delivery.why)

    def _done(self) -> None:
        try:
            line, _ = self._queue.popleft()
        except IndexError:  # the end did not wait for this batch
            return
        size = len(line)
        self._bytes -= size  # no call between reading and writing it: the writing thread adds

    def _lost(self, count: int, first: SealedAt | None, why: str) -> None:
        self._counters.add(_LOST, count)
        where = f", the first is event {first.seq} of {first.stream}" if first is not None else ""
        self._guard.notices.once(
            "events lost",
            f"events of the recording did not reach the OTLP receiver{where}: {shorter(why)}; "
            f"the recording has them: otel-agentrec export {self._path} --otlp URL --events sends them again (said once)",
        )
