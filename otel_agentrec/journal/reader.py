"""Read a recording: its streams, their events in constant memory, one event by its number, and the content they refer to.

What is handed out was checked: a line whose hash does not fit is never shown as an event.
"""

from __future__ import annotations

import dataclasses
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import orjson

from otel_agentrec.errors import RecordingNotFound, RecordingUnreadable
from otel_agentrec.journal.cellfile import CellFile
from otel_agentrec.journal.chain import GENESIS, split
from otel_agentrec.journal.events import Event
from otel_agentrec.journal.lines import MAX_LINE, bisect_lines, last_start_before, lines, open_lines, size_of
from otel_agentrec.journal.liveness import is_locked
from otel_agentrec.journal.resolve import Resolver

__all__ = ["SESSIONS", "Recording", "Resolver", "StreamFile", "event_of", "read_events"]

INDEX = "index"
SESSIONS = "sessions"
_EVENTS, _CONTENT = ".jsonl", ".content.jsonl"
_PROBE = 16 << 10
"""Read ahead while bisecting, in bytes: every step reads at another place."""
_MARK_EVERY = 64 << 10
_NEAR_END = 8 << 10


class StreamFile:
    """One stream: ``<name>.jsonl`` and, where there is content, ``<name>.content.jsonl``.

    Args:
        name: the stream's name, as its events say it (``sessions/<id>`` for a named stream below ``sessions/``).
        path: the events; the content file lies beside it.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.content_path = path.with_name(path.name.removesuffix(_EVENTS) + _CONTENT)
        self.damaged_at: int | None = None
        """Line at which the last iteration of :meth:`events` first met damage (0-based); None: it met none so far."""
        self._marks: list[tuple[int, int]] = [(0, 0)]
        """(seq, byte offset) of events met while reading from the start, one per _MARK_EVERY bytes: where to look."""

    def __repr__(self) -> str:
        return f"StreamFile({self.name!r})"

    @property
    def named(self) -> bool:
        """A stream that is reopened by later processes (sessions, the index)."""
        return self.name == INDEX or self.name.startswith(SESSIONS + "/")

    def is_live(self) -> bool:
        """Whether the process that writes it is alive. Never raises."""
        return is_locked(self.path, probe=self.name != INDEX)

    @property
    def sealed(self) -> bool:
        """Whether its last whole line is STREAM_SEALED."""
        last = self.last()
        return last is not None and last.type == "STREAM_SEALED"

    def first(self) -> Event | None:
        """Its first event; None when it has none that is whole."""
        return next(self.events(), None)

    def last(self) -> Event | None:
        """The event of its last whole line, found from the end of the file; None when there is none."""
        with open_lines(self.path, _PROBE) as file:
            start = size_of(self.path)
            tail = b""
            while start > 0 and len(tail) < 2 * MAX_LINE:
                step = min(start, max(_PROBE, len(tail)))
                start -= step
                file.seek(start)
                tail = file.read(step) + tail
                stop = tail.rfind(b"\n")
                begin = tail.rfind(b"\n", 0, max(0, stop))
                if stop >= 0 and (begin >= 0 or start == 0):
                    return event_of(tail[begin + 1 : stop])
        return None

    def events(
        self, from_seq: int = 0, *, skip_broken: bool = False, on_damage: Callable[[int], None] | None = None
    ) -> Iterator[Event]:
        """The events from ``from_seq`` on, in constant memory, up to the first line that does not fit the chain.

        A torn last line is passed over. The file is read up to the size that it has at the start.

        Args:
            skip_broken: pass over lines that do not fit and go on with the next line that is whole in itself.
            on_damage: told the 0-based line (counted from ``from_seq``) of each line that does not fit.

        Raises:
            RecordingUnreadable: the file can't be read.
        """
        self.damaged_at = None
        with open_lines(self.path) as file:
            stop = size_of(self.path)
            offset = self._find(file, stop, from_seq) if from_seq > 0 else 0
            file.seek(offset)
            prev = GENESIS if from_seq <= 0 else None
            for index, (at, line) in enumerate(lines(file, offset, stop), max(0, from_seq)):
                whole = line.endswith(b"\n")
                if not whole and at + len(line) == stop:
                    return  # the torn tail
                event = event_of(line[:-1]) if whole else None
                if event is not None and (prev is None or event.prev_hash == prev or skip_broken):
                    if prev is not None and at - self._marks[-1][1] >= _MARK_EVERY:
                        self._marks.append((event.seq, at))
                    prev = event.hash
                    if from_seq <= 0 or event.seq >= from_seq:
                        yield event
                    continue
                if self.damaged_at is None:
                    self.damaged_at = index
                if on_damage is not None:
                    on_damage(index)
                if not skip_broken:
                    return

    def at(self, seq: int) -> Event:
        """The event with number ``seq``, found by bisecting the file.

        Raises:
            IndexError: there is none, or its line is damaged.
            RecordingUnreadable: the file can't be read.
        """
        with open_lines(self.path, _PROBE) as file:
            stop = size_of(self.path)
            file.seek(self._find(file, stop, seq))
            event = event_of(file.readline(MAX_LINE).removesuffix(b"\n"))
        if event is None or event.seq != seq:
            raise IndexError(f"{self.name} has no readable event {seq}")
        return event

    def cells(self) -> CellFile:
        """Its content; close it."""
        return CellFile(self.content_path)

    def _find(self, file: BinaryIO, stop: int, seq: int) -> int:
        """Offset of the first line whose number is not below ``seq``."""
        k = bisect_right(self._marks, (seq, stop))
        low = self._marks[k - 1][1]
        high = self._marks[k][1] if k < len(self._marks) else stop
        if high == stop and stop - low > 8 * _NEAR_END:  # what is asked for most often is what was written last
            low = last_start_before(file, stop, seq, _seq_of, low, stop - _NEAR_END)
        return bisect_lines(file, stop, seq, _seq_of, low, min(high, stop))


class Recording:
    """A recording directory, or a single stream file (then what lies beside it is used where it helps).

    Raises:
        RecordingNotFound: the path is not there, or holds no recording.
        RecordingUnreadable: it can't be read, or is no recording.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not os.fspath(path):
            raise RecordingNotFound("no path was given")
        self.path = Path(path)
        try:
            is_dir = self.path.is_dir()
            there = is_dir or self.path.exists() or self.path.is_symlink()
        except (OSError, ValueError) as e:
            raise RecordingNotFound(f"{str(path)[:200]!r} is no path that can be read: {e}") from e
        if not there:
            raise RecordingNotFound(f"{self.path} does not exist")
        self.single: StreamFile | None = None
        """The stream, when the path is a single file."""
        self._streams: list[StreamFile]
        self._sessions: list[StreamFile] = []
        if is_dir:
            self.directory = self.path
            self._scan()
        else:
            self.directory = self.path.parent
            self.single = self._single()
            self._streams = [self.single]
        index = self.directory / f"{INDEX}{_EVENTS}"
        self.index: StreamFile | None = StreamFile(INDEX, index) if index.is_file() else None

    def streams(self) -> list[StreamFile]:
        """The streams of processes, sorted by name (by time); the index is not among them."""
        return list(self._streams)

    def sessions(self) -> list[StreamFile]:
        """The named streams below ``sessions/``, sorted by name."""
        return list(self._sessions)

    def stream(self, name: str) -> StreamFile | None:
        """The stream of that name; ``index`` names the index."""
        if name == INDEX:
            return self.index
        return next((s for s in (*self._streams, *self._sessions) if s.name == name), None)

    def orphans(self) -> list[Path]:
        """Content files whose stream is not there."""
        known = {stream.content_path for stream in (*self._streams, *self._sessions)}
        found = [p for where in (self.directory, self.directory / SESSIONS) for p in where.glob(f"*{_CONTENT}")]
        return sorted(set(found) - known)

    def relative(self, path: Path) -> str:
        """How a file of this recording is named in reports: relative to the directory, with forward slashes."""
        return path.relative_to(self.directory).as_posix()

    def _scan(self) -> None:
        try:
            self._streams = _stream_files(self.directory, "")
            sessions = self.directory / SESSIONS
            self._sessions = _stream_files(sessions, f"{SESSIONS}/") if sessions.is_dir() else []
        except OSError as e:
            raise RecordingUnreadable(
                f"{self.directory} can't be read: {e.strerror}", "check who may read the directory"
            ) from e
        if not self._streams and not self._sessions and not (self.directory / f"{INDEX}{_EVENTS}").is_file():
            raise RecordingNotFound(f"{self.directory} holds no recording")

    def _single(self) -> StreamFile:
        name = self.path.name
        if name.endswith(_CONTENT):
            stem = name.removesuffix(_CONTENT)
            raise RecordingUnreadable(f"{self.path} is a content file", f"give its stream instead: {stem}{_EVENTS}")
        if size_of(self.path) == 0 and self.path.is_file():
            raise RecordingUnreadable(f"{self.path} is empty", "give a stream that holds events, or the directory")
        open_lines(self.path).close()
        if not looks_like_stream(self.path):
            raise RecordingUnreadable(
                f"{self.path} is no recording",
                'its lines should read {"event":…,"hash":…,"prevHash":…}; spans in OTLP files go through: otel-agentrec ingest',
            )
        stem = name.removesuffix(_EVENTS)
        if self.directory.name == SESSIONS:
            session = StreamFile(f"{SESSIONS}/{stem}", self.path)
            first = session.first()
            if first is not None and first.stream == session.name:  # else a recording that happens to have this name
                self.directory = self.directory.parent
                return session
        return StreamFile(stem, self.path)


def looks_like_stream(path: Path) -> bool:
    """Whether one of the first lines of a file is a sealed event, or JSON that was one, or the stub of one."""
    with open_lines(path) as file:
        stop = min(size_of(path), 1 << 20)
        for _, line in lines(file, 0, stop):
            body = line.removesuffix(b"\n")
            if split(body) is not None or body.startswith(b'{"event":'):
                return True
            try:
                value = orjson.loads(body)
            except ValueError:
                continue
            if isinstance(value, dict) and {"event", "hash", "prevHash"} <= value.keys():
                return True
    return False


def read_events(recording: Recording | str | os.PathLike[str], *, resolve: bool = True) -> Iterator[Event]:
    """All events of a recording, stream by stream in the order of names.

    Args:
        resolve: put content in place of references; else the payload is what was sealed. Resolved values may be shared
            between events: don't change them in place.

    Raises:
        RecordingNotFound, RecordingUnreadable: see :class:`Recording`.
    """
    opened = recording if isinstance(recording, Recording) else Recording(recording)
    for stream in (*opened.streams(), *opened.sessions()):
        if not resolve:
            yield from stream.events()
            continue
        with Resolver(stream) as resolver:
            for event in stream.events():
                yield dataclasses.replace(event, payload=resolver.resolve(event))


def _stream_files(directory: Path, prefix: str) -> list[StreamFile]:
    names = sorted(
        entry.name
        for entry in os.scandir(directory)
        if entry.name.endswith(_EVENTS)
        and not entry.name.endswith(_CONTENT)
        and not entry.name.startswith(".")
        and not (not prefix and entry.name == f"{INDEX}{_EVENTS}")
    )
    files = [StreamFile(prefix + name.removesuffix(_EVENTS), directory / name) for name in names]
    return sorted(files, key=lambda f: f.name)


def _decode(e: bytes, hash: str, prev_hash: str) -> Event | None:
    try:
        value = orjson.loads(e)
        return Event.from_json(value, hash=hash, prev_hash=prev_hash) if isinstance(value, dict) else None
    except (ValueError, TypeError, OverflowError):
        return None


def event_of(line: bytes) -> Event | None:
    """The event of a line that is whole in itself."""
    parts = split(line)
    if parts is None or sha256(b"%s|%s" % (parts[2].encode(), parts[0])).hexdigest() != parts[1]:
        return None
    return _decode(*parts)


def _seq_of(line: bytes) -> int | None:
    """The sequence number of a line that is whole in itself; None for any other."""
    event = event_of(line.removesuffix(b"\n"))
    return None if event is None else event.seq
