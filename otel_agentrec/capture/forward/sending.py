"""Send things to an OTLP receiver in batches that it takes, and know what became of each.

The SDK's exporters tell by their result only that a batch was lost. Here a batch that was refused at once is taken apart, down
to the one thing that the receiver does not take; one that nobody answered is lost as a whole. What an exporter logs or raises
meanwhile is kept as the reason, not printed once per batch.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from opentelemetry import context as otel_context

from otel_agentrec.capture.forward.partly import partly_taken

__all__ = ["BATCH_BYTES", "BATCH_COUNT", "GRPC_LIMIT", "TIMEOUT", "Away", "Delivery", "batches", "deliver", "shorter"]

BATCH_BYTES: dict[str, int] = {"grpc": 3 << 20, "http/protobuf": 8 << 20}
"""Most bytes of a batch before compression: gRPC receivers take 4 MiB unless told otherwise."""
GRPC_LIMIT = 4 << 20
"""Bytes of a message that gRPC receivers take unless told otherwise."""
BATCH_COUNT = 512
TIMEOUT = 10.0
"""Seconds that one batch may take, with the exporter's own retries."""

MOST_SAID = 160
MOST_IN_A_ROW = 32
"""Refused one by one with none taken in between: whoever refuses so many is not asked for the rest of the batch."""

T = TypeVar("T")
_EXPORTERS = "opentelemetry.exporter.otlp"
_AWAY = (
    "due to timeout",
    "DEADLINE_EXCEEDED",
    "UNAVAILABLE",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "UNIMPLEMENTED",
    "Connection",
)
_AWAY_CODES = ("code: 401", "code: 403", "code: 404")


class Away(Exception):
    """Nobody is there, or whoever is there does not know us: the next batch would fare no better."""


@dataclass(slots=True)
class Delivery(Generic[T]):
    """What became of a batch: how many were taken, in how many requests; how many the receiver rejected of those that it said it
    took, and does not name; those that were taken only in a smaller form; those that would not be taken even alone; how many of
    them since one was taken; and what was said last of a refusal."""

    sent: int = 0
    rejected: int = 0
    requests: int = 0
    reduced: list[T] = field(default_factory=list)
    refused: list[T] = field(default_factory=list)
    in_a_row: int = 0
    why: str = ""

    @property
    def dealt_with(self) -> int:
        """How many from the first on are settled, one way or the other."""
        return self.sent + self.rejected + len(self.refused)


def batches(
    things: Sequence[T] | Iterator[T], size_of: Callable[[T], int], most_bytes: int, most: int = BATCH_COUNT
) -> Iterator[list[T]]:
    """Batches of at most ``most_bytes`` encoded bytes; what is larger by itself goes alone."""
    batch: list[T] = []
    held = 0
    for thing in things:
        size = size_of(thing)
        if batch and (held + size > most_bytes or len(batch) >= most):
            yield batch
            batch, held = [], 0
        batch.append(thing)
        held += size
    if batch:
        yield batch


def deliver(
    batch: Sequence[T],
    export: Callable[[Sequence[T]], bool],
    into: Delivery[T],
    timeout: float = TIMEOUT,
    smaller: Callable[[T], T | None] = lambda thing: None,
) -> None:
    """Send a batch, whole or in parts.

    Args:
        export: sends some of it and returns whether they were taken; called without instrumentation.
        into: counts what became of it.
        timeout: of the exporter: when it took more than half of it, nobody answered.
        smaller: what is sent in place of one that is refused alone, if anything.

    Raises:
        Away: what was not sent by then would not be taken either; ``into.why`` says what was heard.
    """
    if into.in_a_row >= MOST_IN_A_ROW:
        into.refused += batch
        return
    began = time.monotonic()
    with _heard() as said, _without_instrumentation(), partly_taken() as partly:
        try:
            taken = export(batch)
        except Exception as error:
            taken = False
            said.append(f"{type(error).__name__}: {error}")
    if taken and not (partly.rejected and len(batch) == 1):
        rejected = min(partly.rejected, len(batch))
        into.sent += len(batch) - rejected
        into.rejected += rejected
        into.why = partly.why or into.why
        into.requests += 1
        into.in_a_row = 0
        return
    into.why = partly.why or "; ".join(dict.fromkeys(said))[:500] or "no reason was given"
    away = any(word in into.why for word in (*_AWAY, *_AWAY_CODES))
    if away or time.monotonic() - began > timeout * 0.5:
        raise Away(into.why)
    if len(batch) == 1:
        less = smaller(batch[0])
        if less is None:
            into.refused.append(batch[0])
            into.in_a_row += 1
            return
        refused = len(into.refused)
        deliver([less], export, into, timeout)
        if len(into.refused) > refused:
            into.refused[-1] = batch[0]
        else:
            into.reduced.append(batch[0])
        return
    middle = len(batch) // 2
    for half in (batch[:middle], batch[middle:]):
        deliver(half, export, into, timeout, smaller)


def shorter(why: str) -> str:
    """A reason as it fits into one line for a person."""
    return why if len(why) <= MOST_SAID else f"{why[:MOST_SAID]} …"


@contextmanager
def _without_instrumentation() -> Iterator[None]:
    """Our own requests are nobody's telemetry: neither an instrumentation's nor a point's of interception."""
    context = otel_context.get_current()
    for key in ("_SUPPRESS_INSTRUMENTATION_KEY", "_SUPPRESS_HTTP_INSTRUMENTATION_KEY"):
        if hasattr(otel_context, key):
            context = otel_context.set_value(getattr(otel_context, key), True, context)
    token = otel_context.attach(otel_context.set_value("suppress_instrumentation", True, context))
    try:
        yield
    finally:
        otel_context.detach(token)


class _Ear(logging.Handler):
    """Keeps what the exporters log on threads that listen; what they log on others goes where it ever went."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.listening: dict[int, list[str]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        said = self.listening.get(threading.get_ident())
        if said is None:
            parent = logging.getLogger(_EXPORTERS).parent
            if parent is not None:
                parent.callHandlers(record)
        elif record.levelno >= logging.WARNING:
            said.append(" ".join(record.getMessage().split())[:300])


_EAR = _Ear()


@contextmanager
def _heard() -> Iterator[list[str]]:
    """What the SDK's exporters log of a failure on this thread, in place of printing it."""
    logger, me = logging.getLogger(_EXPORTERS), threading.get_ident()
    if _EAR not in logger.handlers:
        logger.addHandler(_EAR)
        logger.propagate = False
    for name, other in list(logging.root.manager.loggerDict.items()):  # they drop a line that is like the one before it
        if name.startswith(_EXPORTERS) and isinstance(other, logging.Logger):
            for one in other.filters:
                if hasattr(one, "last_log"):
                    one.last_log = None
    outer = _EAR.listening.get(me)
    said = _EAR.listening[me] = [] if outer is None else outer
    try:
        yield said
    finally:
        if outer is None:
            _EAR.listening.pop(me, None)
