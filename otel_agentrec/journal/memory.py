"""An event store in memory: the twin of the files for tests, and for sessions that are kept as snapshots.

Its lines have the form of a recording's, with all content inside, so that a stream can be handed on whole and checked.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from otel_agentrec.errors import RecordingTampered
from otel_agentrec.journal.canonical import canonical_any, denormalise, from_canonical
from otel_agentrec.journal.chain import GENESIS, seal, split
from otel_agentrec.journal.draft import NewEvent, SealedAt
from otel_agentrec.journal.events import FORMAT, Event
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.store import Appendable, SequenceConflict, check_name, new_events
from otel_agentrec.journal.times import now
from otel_agentrec.redaction import Redactor

__all__ = ["InMemoryEventStore"]

Json = Any


class InMemoryEventStore:
    """See :class:`~otel_agentrec.journal.store.EventStore`. Threads may share it."""

    def __init__(self, *, redactor: Redactor | None = None) -> None:
        self._gate = Gate(redactor)
        self._lines: dict[str, list[bytes]] = {}
        self._saved: dict[tuple[str, str], bytes] = {}
        self._lock = threading.RLock()

    def append(
        self,
        stream: str,
        events: Sequence[Appendable],
        expected_seq: int | None = None,
        *,
        opened: Mapping[str, Any] | None = None,
    ) -> list[SealedAt]:
        check_name(stream)
        with self._lock:
            lines = self._lines.get(stream, [])
            size = len(lines)
            if expected_seq is not None and expected_seq != size and not (size == 0 and expected_seq == 1):
                raise SequenceConflict(stream, expected_seq, size)
            new = (
                []
                if size
                else [NewEvent("STREAM_OPENED", {"origin": "memory", "nonce": uuid.uuid4().hex, **(opened or {})})]
            )
            added: list[bytes] = []
            done: list[SealedAt] = []
            prev = _hash(lines[-1]) if lines else GENESIS
            for event in [*new, *new_events(events)]:
                seq = size + len(added)
                ts, mono = now()
                ts = ts if event.ts is None else event.ts
                body = _envelope(event, stream, seq, ts, mono, self._gate.payload(event.type, event.payload))
                line, digest = seal(prev, canonical_any(body))
                added.append(line[:-1])
                done.append(SealedAt(stream, seq, digest, prev, ts))
                prev = digest
            self._lines[stream] = [*lines, *added]
            return done[len(new) :]

    def read(self, stream: str, from_seq: int = 0) -> Iterator[Event]:
        for line in self._lines.get(stream, [])[max(0, from_seq) :]:
            parts = split(line)
            assert parts is not None
            value = denormalise(from_canonical(parts[0]))
            yield Event.from_json(value, hash=parts[1], prev_hash=parts[2])

    def streams(self) -> list[str]:
        return sorted(self._lines)

    def head(self, stream: str) -> tuple[int, str] | None:
        lines = self._lines.get(stream)
        return (len(lines), _hash(lines[-1])) if lines else None

    def save(self, stream: str, name: str, data: bytes) -> None:
        self._saved[stream, name] = data

    def saved(self, stream: str, name: str) -> bytes | None:
        return self._saved.get((stream, name))

    def lines(self, stream: str) -> list[dict[str, Json]]:
        """The lines of a stream, parsed: ``{event, hash, prevHash}``."""
        return [orjson.loads(line) for line in self._lines.get(stream, [])]

    def restore(self, stream: str, lines: Sequence[Mapping[str, Json]]) -> None:
        """Put lines as :meth:`lines` gave them in place of a stream, after checking every hash.

        Raises:
            RecordingTampered: a line does not fit the one before it, or is none; nothing was changed.
        """
        checked: list[bytes] = []
        prev = GENESIS
        for index, line in enumerate(lines):
            event = line.get("event") if isinstance(line, Mapping) else None
            try:
                sealed, digest = seal(prev, canonical_any(denormalise(event)))
            except Exception:
                sealed, digest = b"", ""
            is_ours = isinstance(event, Mapping) and (event.get("stream"), event.get("seq")) == (stream, index)
            if not is_ours or (line.get("hash"), line.get("prevHash")) != (digest, prev):
                raise RecordingTampered(f"event {index} of {stream} is not as it was saved", "use an older snapshot")
            checked.append(sealed[:-1])
            prev = digest
        with self._lock:
            self._lines[stream] = checked


def _envelope(event: NewEvent, stream: str, seq: int, ts: int, mono: int, payload: Json) -> dict[str, Json]:
    where = event.where
    fields = {
        "copyOf": event.copy_of,
        "run": where.run,
        "session": where.session,
        "turn": where.turn,
        "step": where.step,
        "trace": where.trace,
    }
    return {
        "id": event.id or str(uuid.uuid4()),
        "v": FORMAT,
        "stream": stream,
        "seq": seq,
        "ts": ts,
        "mono": str(mono),
        "type": event.type,
        "payload": payload,
        **{key: value for key, value in fields.items() if value is not None},
    }


def _hash(line: bytes) -> str:
    parts = split(line)
    assert parts is not None
    return parts[1]
