"""The marks that a journal left in a file of another system: stamps of spans, event records, checkpoints.

They stand among spans and log records of anybody. A file is what a Collector's file exporter wrote (OTLP/JSON lines or
protobuf, plain or gzip), or an answer of Jaeger's API.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from otel_agentrec.audit.structure import printable
from otel_agentrec.capture.otlp import OtlpFile
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.errors import RecordingUnreadable
from otel_agentrec.journal.stamps import CHECKPOINT, EVENT, PREFIX, stamp_of

__all__ = ["BrokenMark", "Checkpoint", "EventRecord", "KeptFile", "Mark", "StampMark"]

_HASH = re.compile(r"[0-9a-f]{64}")
_MOST = 1 << 63
"""OTLP's integers have 64 bits, but a JSON text may say any number."""
_STAMP = tuple(PREFIX + key for key in ("stream", "seq", "hash", "prev_hash", "record_id"))


class EventRecord(NamedTuple):
    """Event ``seq`` of ``stream``: its canonical bytes, its hash and the one before it. Nothing is checked but their form.

    ``place``: where it was read, ``file, line n`` (of protobuf ``message n``).
    """

    stream: str
    seq: int
    hash: str
    prev_hash: str
    body: bytes
    place: str


class StampMark(NamedTuple):
    """What the stamp of a span says."""

    stream: str
    seq: int
    hash: str
    prev_hash: str
    record_id: str
    place: str


class Checkpoint(NamedTuple):
    """A head of a stream: ``hash`` of the last of its first ``size`` events."""

    stream: str
    size: int
    hash: str
    place: str


class BrokenMark(NamedTuple):
    """A mark that can't be read. ``stream`` and ``seq`` as far as it still tells them."""

    what: str
    stream: str | None
    seq: int | None
    is_event: bool
    place: str


Mark = EventRecord | StampMark | Checkpoint | BrokenMark


class KeptFile:
    """One file of another system.

    Raises:
        UsageError: it is missing, empty, no regular file, or in an encoding that can't be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = OtlpFile(path)
        self.path = Path(path)
        self.size = self._file.size
        self.foreign = 0
        """Spans and log records without a mark, as far as it was read."""
        self.faults: list[str] = []
        """Lines (of protobuf: messages) that can't be read, ``line n: why`` (the first 100)."""
        self.unread = 0
        """How many they are."""

    def marks(self, progress: Callable[[int], None] | None = None) -> Iterator[Mark]:
        """The marks in the order of the file.

        Raises:
            RecordingUnreadable: it holds no telemetry at all.
        """
        known = False
        unit = "line" if self._file.format == "json" else "message"
        for batch in self._file.batches(progress):
            known = known or batch.known
            for fault in batch.faults:
                self.unread += 1
                if len(self.faults) < 100:
                    self.faults.append(f"{unit} {batch.place}: {printable(fault)}")
            place = f"{self.path.name}, {unit} {batch.place}"
            for span in batch.spans:
                mark = _of_span(span, place)
                self.foreign += mark is None
                if mark is not None:
                    yield mark
            for log in batch.logs:
                mark = _of_log(log, place)
                self.foreign += mark is None
                if mark is not None:
                    yield mark
        if not known:
            raise RecordingUnreadable(
                f"{self.path} is neither a recording nor what a Collector or Jaeger keeps of one",
                "give a recording, a file of the Collector's file exporter, or a saved answer of Jaeger's "
                "/api/v3/traces/TRACE, TRACE being a whole id",
            )


def _of_span(span: SpanView, place: str) -> Mark | None:
    told = span.attributes
    if span.name == CHECKPOINT:
        return _checkpoint(told, place)
    if not any(name in told for name in _STAMP):
        return None
    stamp = stamp_of(told)
    if stamp is None or not 0 <= stamp.seq < _MOST or not _is_hash(stamp.hash) or not _is_hash(stamp.prev_hash):
        return _broken("the stamp of a span is not whole", told, None, place)
    return StampMark(stamp.stream, stamp.seq, stamp.hash, stamp.prev_hash, stamp.record_id, place)


def _of_log(log: LogView, place: str) -> Mark | None:
    told = log.attributes
    if log.event_name == CHECKPOINT:
        return _checkpoint(told, place)
    if log.event_name != EVENT:
        return None
    stream, seq = told.get(f"{PREFIX}stream"), _integer(told.get(f"{PREFIX}seq"))
    hash_, prev_hash = told.get(f"{PREFIX}hash"), told.get(f"{PREFIX}prev_hash")
    body = log.body.encode("utf-8", "surrogatepass") if isinstance(log.body, str) else None
    if body is None:
        return _broken("an event record whose body is no text", told, b"", place)
    if not (isinstance(stream, str) and stream):
        return _broken("an event record that names no stream", told, body, place)
    if seq is None or seq < 0:
        return _broken("an event record without a readable number", told, body, place)
    if not _is_hash(hash_) or not _is_hash(prev_hash):
        return _broken("an event record without two readable hashes", told, body, place)
    return EventRecord(stream, seq, str(hash_), str(prev_hash), body, place)


def _checkpoint(told: Mapping[str, Any], place: str) -> Mark:
    stream, size = told.get(f"{PREFIX}stream"), _integer(told.get(f"{PREFIX}size"))
    hash_ = told.get(f"{PREFIX}hash")
    if not (isinstance(stream, str) and stream) or size is None or size < 1 or not _is_hash(hash_):
        return BrokenMark("a checkpoint that is not whole", _text(stream), None, False, place)
    return Checkpoint(stream, size, str(hash_), place)


def _broken(what: str, told: Mapping[str, Any], body: bytes | None, place: str) -> BrokenMark:
    """What can't be read, with its place in the journal as its attributes or its body still tell it."""
    stream, seq = _text(told.get(f"{PREFIX}stream")), _integer(told.get(f"{PREFIX}seq"))
    event: Any = None
    if body:
        try:
            event = orjson.loads(body)
        except ValueError:
            pass
    if isinstance(event, dict):
        stream = stream or _text(event.get("stream"))
        seq = _integer(event.get("seq")) if seq is None else seq
    return BrokenMark(what, stream, seq, body is not None, place)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        return int(value)
    return value if type(value) is int and abs(value) < _MOST else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
