"""How far a stream has come, as a span: whoever keeps it can tell later that the end of the stream was cut off.

Not signed so far: it holds as much as the place where it is kept is out of reach of whoever cuts.
"""

from __future__ import annotations

import hashlib
import random
import time

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from otel_agentrec._version import __version__
from otel_agentrec.journal.draft import SealedAt
from otel_agentrec.journal.stamps import CHECKPOINT, PREFIX

__all__ = ["SCOPE", "Checkpoints", "checkpoint_span"]

EVERY_EVENTS = 256
EVERY_SECONDS = 5.0
SCOPE = InstrumentationScope("otel_agentrec.journal", __version__)


class Checkpoints:
    """When one is due, and what it says. Needs no thread: the first span that is handed on when it is due brings it along."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        self._head: SealedAt | None = None
        self._told: SealedAt | None = None
        self._at = time.monotonic()

    def written(self, at: SealedAt) -> None:
        """An event was written. One assignment: it is called under the journal's lock."""
        self._head = at

    def due(self, *, now: bool = False) -> SealedAt | None:
        """The newest event, if its place is to be told: after so many events or seconds, when a stream was left, or now."""
        head, told = self._head, self._told
        if head is None or head is told:
            return None
        is_same = told is not None and told.stream == head.stream
        since = head.seq - told.seq if told is not None and is_same else head.seq + 1
        if not now and since < EVERY_EVENTS and time.monotonic() - self._at < EVERY_SECONDS:
            return None
        self._told, self._at = head, time.monotonic()
        return head


def checkpoint_span(head: SealedAt, resource: Resource) -> ReadableSpan:
    """The span ``agentrec.checkpoint``. All of a stream are in one trace, whose id is made of the stream's name."""
    trace = int.from_bytes(hashlib.sha256(head.stream.encode()).digest()[:16], "big") or 1
    now = time.time_ns()
    return ReadableSpan(
        CHECKPOINT,
        SpanContext(trace, random.getrandbits(64) or 1, False, TraceFlags(TraceFlags.SAMPLED)),
        resource=resource,
        attributes={
            f"{PREFIX}stream": head.stream,
            f"{PREFIX}size": head.seq + 1,
            f"{PREFIX}hash": head.hash,
        },
        kind=SpanKind.INTERNAL,
        start_time=now,
        end_time=now,
        instrumentation_scope=SCOPE,
    )
