"""Event logs of sessions -> the session streams of a recording."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, cast

from otel_agentrec._version import __version__
from otel_agentrec.capture.eventlogs import Chain, NotAnEvent, Numbers, event_of
from otel_agentrec.capture.ingest_report import IngestReport
from otel_agentrec.capture.jsonlines import lines
from otel_agentrec.capture.otlp import OtlpFile
from otel_agentrec.errors import AgentRecError, UsageError
from otel_agentrec.journal.canonical import canonical_any, from_canonical
from otel_agentrec.journal.draft import ContentMode, Envelope, NewEvent
from otel_agentrec.journal.events import TYPES, Event
from otel_agentrec.journal.events.session import SessionEvent
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.named import NamedStream
from otel_agentrec.journal.reader import Resolver, StreamFile
from otel_agentrec.journal.sessions import open_session, seal_session, stream_of
from otel_agentrec.redaction import Redactor
from otel_agentrec.settings import Settings

__all__ = ["EventLogs"]

Json = Any
Advance = Callable[[int], None]

_AT_ONCE = 256
"""So many events are written at once."""
_SESSION_TYPES = frozenset(name for name, cls in TYPES.items() if issubclass(cls, SessionEvent))
_GONE = {"$off", "$erased", "$missing", "$cut"}


@dataclass(slots=True)
class _Log:
    file: OtlpFile
    chain: Chain = field(default_factory=Chain)
    numbers: Numbers = field(default_factory=Numbers)
    faults: int = 0


class EventLogs:
    """Read twice: what a file says of itself stands at the beginning of the session that it becomes."""

    def __init__(self, files: Sequence[OtlpFile], report: IngestReport, settings: Settings, redactor: Redactor) -> None:
        self._logs = [_Log(file) for file in files]
        self._report, self._settings, self._redactor = report, settings, redactor
        self._gate = Gate(redactor)

    def survey(self, advance: Advance | None) -> None:
        """Pass 1: chains, numbers, and what can't be read.

        Raises:
            UsageError: a file has no event that can be read.
        """
        for log in self._logs:
            path, first = log.file.path, ""
            for line in lines(log.file, advance):
                log.chain.add(line)
                try:
                    named, event = event_of(line)
                except NotAnEvent as e:
                    log.faults += 1
                    why = self._redactor.text(str(e))
                    first = first or f"line {line.place}: {why}"
                    self._report.quarantine(path, line.place, [why])
                    continue
                log.numbers.add(named or _session_of(path), event)
            if not log.numbers.sessions:
                raise UsageError(
                    f"{path} holds no event of a session: {first}", "its lines should have seq, type, payload"
                )
            self._tell(log)

    def _tell(self, log: _Log) -> None:
        path, notes = log.file.path, self._report.notes
        if log.chain.links:
            said = log.chain.to_json()
            self._report.chains.append({"file": str(path), **said})
            if not said["valid"]:
                notes.append(
                    f"{path}: the chain does not hold: it breaks at line {log.chain.first_broken} ({log.chain.why}); "
                    "its events are recorded as they are, and the recording says so"
                )
        if log.numbers.missing:
            notes.append(f"{path}: {log.numbers.missing} sequence number(s) are missing: events were lost or left out")
        if log.numbers.disordered:
            notes.append(f"{path}: {log.numbers.disordered} event(s) have a number that is not above the one before")

    def write(self, directory: Path, advance: Advance | None) -> None:
        """Pass 2.

        Raises:
            AgentRecError: a session can't be written; what was written by then is valid.
        """
        for log in self._logs:
            if len(log.numbers.sessions) == 1:
                (session,) = log.numbers.sessions
                self._session(log, session, (e for _, e in self._events(log, advance)), directory)
                continue
            by_session: dict[str, list[NewEvent]] = defaultdict(list)
            for session, event in self._events(log, advance):
                by_session[session].append(event)
            for session, events in by_session.items():
                self._session(log, session, iter(events), directory)

    def _events(self, log: _Log, advance: Advance | None) -> Iterator[tuple[str, NewEvent]]:
        for line in lines(log.file, advance):
            try:
                named, event = event_of(line)
            except NotAnEvent:
                continue
            session = named or _session_of(log.file.path)
            where = Envelope(session=session, turn=event.where.turn)
            yield session, NewEvent(event.type, event.payload, where)

    def _session(self, log: _Log, session: str, events: Iterator[NewEvent], directory: Path) -> None:
        """Add what a session does not hold yet."""
        settings = self._settings
        origin: dict[str, Json] = {"file": self._redactor.text(log.file.path.name), "format": "toyagent"}
        if log.chain.links:
            origin["chain"] = log.chain.to_json()
        opened = {"sdk": {"name": "otel-agentrec ingest", "version": __version__}, "restoredFrom": origin}
        mode = cast(ContentMode, settings.content)
        if session not in self._report.sessions:
            self._report.sessions.append(session)
        try:
            with open_session(
                directory, session, origin=settings.host, gate=self._gate, mode=mode, opened=opened
            ) as stream:
                new = self._new(_held(directory, session), events)
                if new is None:
                    why = f"session {session} is in {directory} already, with other events: nothing of it was added"
                    self._report.quarantine(log.file.path, 1, [why])
                    return
                if self._append(stream, new, log):
                    seal_session(directory, stream, origin=settings.host)
        except OSError as e:
            why = e.strerror or str(e)
            raise AgentRecError(
                f"{directory / stream_of(session)}.jsonl can't be written: {why}",
                "make room and ingest again: an event that is there already counts once",
            ) from e

    def _append(self, stream: NamedStream, events: Iterator[NewEvent], log: _Log) -> int:
        done = 0
        while some := list(islice(events, _AT_ONCE)):
            done += len(stream.append(some))
        self._report.session_events += done
        if done and log.faults:
            stream.append([NewEvent("DROPPED", {"count": log.faults, "reason": "ingest: no readable event"})])
        return done

    def _new(self, held: Iterable[Event], events: Iterator[NewEvent]) -> Iterator[NewEvent] | None:
        """The events that come after those that are there; None when they contradict them."""
        first = next(events, None)
        if first is None:
            return iter(())
        wanted: NewEvent | None = first
        number, met, last = _number(first.payload), False, -1
        for event in held:
            seq = _number(event.payload)
            last = max(last, seq if seq is not None else last)
            if not met and number is not None and seq != number:
                continue  # an earlier part of the log
            met = True
            if wanted is None:
                break  # the recording is ahead
            if not self._is_same(event, wanted):
                return None
            wanted = next(events, None)
        if not met and last >= 0 and (number is None or number <= last):
            return None
        return _chained(wanted, events)

    def _is_same(self, held: Event, wanted: NewEvent) -> bool:
        """Is it the event that is there, as far as what was said is still there?"""
        if held.type != wanted.type:
            return False
        told = from_canonical(canonical_any(self._gate.payload(wanted.type, wanted.payload)))
        return held.payload.keys() == told.keys() and all(
            value == told[key] or (isinstance(value, dict) and not _GONE.isdisjoint(value))
            for key, value in held.payload.items()
        )


def _chained(first: NewEvent | None, rest: Iterator[NewEvent]) -> Iterator[NewEvent]:
    if first is not None:
        yield first
    yield from rest


def _held(directory: Path, session: str) -> Iterator[Event]:
    """The session's own events in its stream, with their content."""
    name = stream_of(session)
    stream = StreamFile(name, directory / f"{name}.jsonl")
    with Resolver(stream) as resolver:
        for event in stream.events():
            if event.type in _SESSION_TYPES:
                yield dataclasses.replace(event, payload=resolver.resolve(event))


def _number(payload: dict[str, Json]) -> int | None:
    original = payload.get("original")
    seq = original.get("seq") if isinstance(original, dict) else None
    return seq if type(seq) is int else None


def _session_of(path: Path) -> str:
    """The session that a file is: its name without endings."""
    name = path.name
    for ending in (".gz", ".jsonl", ".ndjson", ".json", ".log"):
        name = name.removesuffix(ending) or name
    return name
