"""Event stores: named streams behind one protocol, and its file twin (the embedded default).

A stream's first event, STREAM_OPENED (seq 0), is written by the store; the caller's first event is seq 1.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from otel_agentrec.errors import AgentRecError, EventInvalid, RecordingNotFound, UsageError
from otel_agentrec.journal.canonical import denormalise
from otel_agentrec.journal.draft import Envelope, NewEvent, SealedAt
from otel_agentrec.journal.events import Event, Payload
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.index import Index, opening_payload
from otel_agentrec.journal.named import NamedStream, read_tail
from otel_agentrec.journal.reader import Resolver, StreamFile
from otel_agentrec.journal.sessions import seal_session
from otel_agentrec.journal.wholefile import replace_file
from otel_agentrec.redaction import Redactor
from otel_agentrec.settings import name_of_host

__all__ = ["Appendable", "EventStore", "FileEventStore", "SequenceConflict", "check_name", "new_events", "plain"]

Appendable = NewEvent | Payload | Mapping[str, Any]
"""An event that a store takes: as it is, as a typed payload, or as ``{type, payload}`` with what else an event may say."""

_NAME = re.compile(r"[A-Za-z0-9_%~-][A-Za-z0-9._%~-]*(/[A-Za-z0-9_%~-][A-Za-z0-9._%~-]*)*")
LOCK_WAIT = 5.0


def check_name(stream: str) -> None:
    """Raises UsageError for a name that is none."""
    if not _NAME.fullmatch(stream):
        raise UsageError(f"{stream!r} is no stream name", "percent-encode it: urllib.parse.quote(name, safe='')")


def plain(event: Event, resolver: Resolver) -> Event:
    """An event as it was appended: content in its place, values as Python has them (a key ``$ref`` is one again)."""
    payload: dict[str, Any] = denormalise(resolver.resolve(event))
    run, session, turn = (denormalise(value) for value in (event.run, event.session, event.turn))
    return dataclasses.replace(event, payload=payload, run=run, session=session, turn=turn)


def new_events(events: Iterable[Appendable]) -> list[NewEvent]:
    """Events as a store writes them.

    Raises:
        EventInvalid: one is none of the forms that can be appended.
    """
    return [event if isinstance(event, NewEvent) else _new(event) for event in events]


def _new(event: Payload | Mapping[str, Any]) -> NewEvent:
    if isinstance(event, Payload):
        return NewEvent(event.event_type, event.to_json())
    type_, payload = (event.get("type"), event.get("payload", {})) if isinstance(event, Mapping) else (None, None)
    if not isinstance(type_, str) or not isinstance(payload, Mapping):
        raise EventInvalid(f"{event!r} is no event", 'give {"type": "...", "payload": {...}}')
    if odd := sorted(map(str, event.keys() - {"type", "payload", "id", *_WHERE})):
        raise EventInvalid(
            f"{type_} says {odd[0]!r}, which is not its own to say", f"may be given: id, {', '.join(_WHERE)}"
        )
    return NewEvent(type_, dict(payload), Envelope(**{k: event[k] for k in _WHERE if k in event}), event.get("id"))


_WHERE = ("run", "session", "turn", "step", "trace")


class SequenceConflict(AgentRecError):
    """Somebody else appended first. ``head``: the seq that comes next now."""

    default_hint = "read the events that came in between, decide again, and append with the new expected seq"

    def __init__(self, stream: str, expected: int, head: int) -> None:
        super().__init__(f"stream {stream} is at seq {head}, not at {expected}")
        self.head = head


@runtime_checkable
class EventStore(Protocol):
    """Append-only streams of events with optimistic concurrency."""

    def append(
        self,
        stream: str,
        events: Sequence[Appendable],
        expected_seq: int | None = None,
        *,
        opened: Mapping[str, Any] | None = None,
    ) -> list[SealedAt]:
        """Append events, all or none.

        Args:
            events: new events; typed payloads; or ``{"type": ..., "payload": {...}}``.
            expected_seq: the seq that the first event shall get (0 or 1: the stream is new); None: wherever the end is.
            opened: further keys of STREAM_OPENED, if this opens the stream.

        Raises:
            SequenceConflict: the stream's end is elsewhere.
            EventInvalid: something given is no event.
        """
        ...

    def read(self, stream: str, from_seq: int = 0) -> Iterator[Event]:
        """The events from a seq on, as they were appended. An unknown stream has none."""
        ...

    def streams(self) -> list[str]: ...

    def head(self, stream: str) -> tuple[int, str] | None:
        """(next seq, hash of the last event), or None for an unknown stream."""
        ...

    def save(self, stream: str, name: str, data: bytes) -> None:
        """Keep something that was computed from a stream, in place of what was kept under that name; all or nothing."""
        ...

    def saved(self, stream: str, name: str) -> bytes | None:
        """What was kept last; None: nothing, or it is gone. It can always be computed anew."""
        ...


class FileEventStore:
    """Streams as files ``<directory>/<name>.jsonl`` with their content beside them, listed in the recording's index.

    Events pass the redactor (default: the default rules) before they are written. Names are path segments of letters, digits and ``. _ ~ - %``; encode anything else (``urllib.parse.quote``).
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, origin: str | None = None, redactor: Redactor | None = None
    ) -> None:
        self.directory = Path(directory)
        self._gate = Gate(redactor)
        self._origin = origin or name_of_host()

    def append(
        self,
        stream: str,
        events: Sequence[Appendable],
        expected_seq: int | None = None,
        *,
        opened: Mapping[str, Any] | None = None,
    ) -> list[SealedAt]:
        path, new = self._path(stream), new_events(events)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedStream(path, stream, content=True, wait=LOCK_WAIT, gate=self._gate) as named:
            size = named.tail.size
            if expected_seq is not None and expected_seq != size and not (size == 0 and expected_seq == 1):
                raise SequenceConflict(stream, expected_seq, size)
            if not size:
                self._open(named, opened or {})
            return named.append(new)

    def _open(self, named: NamedStream, opened: Mapping[str, Any]) -> None:
        with Index(self.directory, self._origin).opening() as opening:
            payload = {**opening_payload(self._origin, named.name), **opened}
            if opening.tip:
                payload["indexTip"] = opening.tip
            (first,) = named.append([NewEvent("STREAM_OPENED", payload)])
            opening.entries.append(("OPENED", {"stream": named.name, "hash": first.hash}))

    def seal(self, stream: str) -> None:
        """Say that a stream ends here for now: ``verify`` then knows that nothing was cut off. Anybody may still go on with it.

        Nothing is written to one that ends so already, or has no events.

        Raises:
            RecordingBusy: another process writes it.
            OSError: nothing was written.
        """
        path = self._path(stream)
        if not path.exists():
            return
        with NamedStream(path, stream, content=True, wait=LOCK_WAIT, gate=self._gate) as named:
            if named.tail.size and not self.is_sealed(stream):
                seal_session(self.directory, named, origin=self._origin)

    def is_sealed(self, stream: str) -> bool:
        """Whether the last event of a stream says that it ends there."""
        head = self.head(stream)
        return head is not None and [event.type for event in self.read(stream, head[0] - 1)] == ["STREAM_SEALED"]

    def read(self, stream: str, from_seq: int = 0) -> Iterator[Event]:
        path = self._path(stream)
        if not path.exists():
            return
        file = StreamFile(stream, path)
        with Resolver(file) as resolver:
            for event in file.events(from_seq):
                yield plain(event, resolver)

    def streams(self) -> list[str]:
        if not self.directory.is_dir():
            return []
        whole = (p for p in self.directory.rglob("*.jsonl") if p.stat().st_size)  # else only its lock was ever taken
        found = (p.relative_to(self.directory).as_posix() for p in whole)
        return sorted(n[:-6] for n in found if not n.endswith(".content.jsonl") and n != "index.jsonl")

    def head(self, stream: str) -> tuple[int, str] | None:
        path = self._path(stream)
        if not path.exists():
            return None
        with path.open("rb") as f:
            tail = read_tail(f.fileno())
        return (tail.size, tail.hash) if tail.size else None

    def save(self, stream: str, name: str, data: bytes) -> None:
        replace_file(self._projection(stream, name), data)

    def saved(self, stream: str, name: str) -> bytes | None:
        try:
            return self._projection(stream, name).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    def _projection(self, stream: str, name: str) -> Path:
        """``projections/<digest>.json``; the file itself says what it holds."""
        self._path(stream)
        digest = sha256(f"{stream}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.directory / "projections" / f"{digest}.json"

    def _path(self, stream: str) -> Path:
        check_name(stream)
        if not self.directory.parent.exists():
            raise RecordingNotFound(f"{self.directory.parent} does not exist")
        return self.directory / f"{stream}.jsonl"
