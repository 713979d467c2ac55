"""An event store in an SQLite database: the twin of the files where one file for all streams, and SQL, are wanted.

Tables (made on first use)::

    agentrec_stream      stream, next_seq, last_hash            one row per stream; who appends moves it
    agentrec_event       stream, seq, event_id, line            lines of a recording, byte for byte, without newline
    agentrec_cell        stream, seq, i, line                   their content; what is to be forgotten is deleted here
    agentrec_projection  stream, name, data                     what was computed; may be deleted at any time

Triggers refuse to change or delete events, and to change cells.
"""

from __future__ import annotations

import functools
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otel_agentrec.errors import UsageError
from otel_agentrec.journal.chain import GENESIS, seal
from otel_agentrec.journal.content import cell_line
from otel_agentrec.journal.database import Database, load_sqlalchemy, to_ascii
from otel_agentrec.journal.draft import Draft, NewEvent, SealedAt, make_draft
from otel_agentrec.journal.events import Event
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.index import opening_payload
from otel_agentrec.journal.journal import make_directory
from otel_agentrec.journal.lists import ListCache
from otel_agentrec.journal.reader import event_of
from otel_agentrec.journal.resolve import Resolver
from otel_agentrec.journal.store import Appendable, SequenceConflict, check_name, new_events, plain
from otel_agentrec.journal.times import now
from otel_agentrec.redaction import Redactor
from otel_agentrec.settings import name_of_host

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, MetaData

__all__ = ["SqlEventStore"]

PREFIX = "agentrec_"
FIRST_PAGE = 8
PAGE_EVENTS = 512
PAGE_BYTES = 4 << 20
"""An iteration holds about this much, and no transaction between its pages: a slow reader stops no writer."""


class SqlEventStore:
    """See :class:`~otel_agentrec.journal.store.EventStore`. Threads and processes may share the database.

    Events pass the redactor (default: the default rules) before they are written.

    Args:
        url_or_engine: ``sqlite:///FILE``, or an Engine of SQLAlchemy for one.
        origin: goes into STREAM_OPENED.

    Raises:
        ExtraMissing: the extra ``sql`` is not installed.
        UsageError: no URL of an SQLite database.

    All methods raise StoreUnavailable where the database can't be used, and RecordingBusy where another process holds it
    for too long.
    """

    def __init__(
        self, url_or_engine: str | Engine, *, origin: str | None = None, redactor: Redactor | None = None
    ) -> None:
        self._sa = load_sqlalchemy()
        tables = _tables(self._sa)
        self._database = Database(url_or_engine, tables)
        if self._database.kind != "sqlite":
            raise UsageError(
                "events are kept in SQLite, or in files", "give sqlite:///FILE; snapshots may go to PostgreSQL"
            )
        self._streams, self._events, self._cells, self._projections = (
            tables.tables[f"{PREFIX}{name}"] for name in ("stream", "event", "cell", "projection")
        )
        self._gate = Gate(redactor)
        self._origin = origin or name_of_host()

    def __enter__(self) -> SqlEventStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, unless an Engine was given."""
        self._database.close()

    def append(
        self,
        stream: str,
        events: Sequence[Appendable],
        expected_seq: int | None = None,
        *,
        opened: Mapping[str, Any] | None = None,
    ) -> list[SealedAt]:
        check_name(stream)
        drafts = [(event, self._draft(event)) for event in new_events(events)]  # before anything is locked
        with self._database.writing() as connection:
            head = self._head(connection, stream)
            size, prev = head or (0, GENESIS)
            if expected_seq is not None and expected_seq != size and not (size == 0 and expected_seq == 1):
                raise SequenceConflict(stream, expected_seq, size)
            if not size:
                first = NewEvent("STREAM_OPENED", {**opening_payload(self._origin, stream), **(opened or {})})
                drafts.insert(0, (first, self._draft(first)))
            done = self._write(connection, stream, size, prev, drafts)
        return done if size else done[1:]

    def read(self, stream: str, from_seq: int = 0) -> Iterator[Event]:
        """The events from a seq on, as they were appended, up to the first line that does not fit the chain."""
        check_name(stream)
        seq, prev = max(0, from_seq), GENESIS if from_seq <= 0 else None
        end, size = self.head(stream), FIRST_PAGE
        rows = _Rows(self._sa, self._database, stream)
        with Resolver(rows) as resolver:
            while end is not None and seq < end[0] and (page := rows.page(seq, size)):
                size = min(4 * size, PAGE_EVENTS)
                for line in page[: end[0] - seq]:
                    event = event_of(line)
                    if (
                        event is None
                        or (event.stream, event.seq) != (stream, seq)
                        or prev not in (None, event.prev_hash)
                    ):
                        return
                    yield plain(event, resolver)
                    seq, prev = seq + 1, event.hash

    def streams(self) -> list[str]:
        with self._database.reading() as connection:
            return sorted(connection.execute(self._sa.select(self._streams.c.stream)).scalars())

    def head(self, stream: str) -> tuple[int, str] | None:
        check_name(stream)
        with self._database.reading() as connection:
            return self._head(connection, stream)

    def save(self, stream: str, name: str, data: bytes) -> None:
        check_name(stream)
        rows = self._projections
        keep = self._database.insert(rows).values(stream=stream, name=to_ascii(name), data=data)
        with self._database.writing() as connection:
            connection.execute(keep.on_conflict_do_update(index_elements=["stream", "name"], set_={"data": data}))

    def saved(self, stream: str, name: str) -> bytes | None:
        check_name(stream)
        rows = self._projections
        find = self._sa.select(rows.c.data).where(rows.c.stream == stream, rows.c.name == to_ascii(name))
        with self._database.reading() as connection:
            data = connection.execute(find).scalar_one_or_none()
        return data if isinstance(data, bytes) else None

    def export(self, stream: str, directory: str | os.PathLike[str]) -> Path:
        """Hand a stream on as the files of a recording, byte for byte, to be verified, shown, or sent elsewhere.

        Returns:
            the events' file, ``<directory>/<stream>.jsonl``; the content stands beside it.

        Raises:
            UsageError: there is no such stream, or there is such a file.
            OSError: it can't be written.
        """
        head = self.head(stream)
        path = Path(directory) / f"{stream}.jsonl"
        if head is None:
            raise UsageError(f"there is no stream {stream}", "streams() tells what there is")
        if path.exists():
            raise UsageError(f"{path} is there already", "export into another directory")
        make_directory(Path(directory))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = path.with_name(f"{path.stem}.content.jsonl")
        beside = [p.with_name(f".{p.name}.{os.getpid()}.tmp") for p in (path, content)]
        rows, seq = _Rows(self._sa, self._database, stream), 0
        try:
            with open(beside[0], "xb", opener=_for_owner) as lines, open(beside[1], "xb", opener=_for_owner) as cells:
                while seq < head[0] and (page := rows.page(seq, PAGE_EVENTS)):
                    lines.writelines(line + b"\n" for line in page[: head[0] - seq])
                    cells.writelines(line + b"\n" for (owner, _), line in rows.held.items() if owner < head[0])
                    seq += len(page)
            if beside[1].stat().st_size:
                beside[1].replace(content)
            beside[0].replace(path)
        finally:
            for left in beside:
                left.unlink(missing_ok=True)
        return path

    def _draft(self, event: NewEvent) -> Draft:
        return make_draft(event.type, event.payload, event.where, ListCache(), self._gate)

    def _head(self, connection: Connection, stream: str) -> tuple[int, str] | None:
        rows = self._streams
        found = connection.execute(self._sa.select(rows.c.next_seq, rows.c.last_hash).where(rows.c.stream == stream))
        row = found.one_or_none()
        return None if row is None else (row[0], row[1])

    def _write(
        self, connection: Connection, stream: str, seq: int, prev: str, drafts: Sequence[tuple[NewEvent, Draft]]
    ) -> list[SealedAt]:
        lines: list[dict[str, Any]] = []
        cells: list[dict[str, Any]] = []
        done: list[SealedAt] = []
        for event, draft in drafts:
            ts, mono = now()
            ts = ts if event.ts is None else event.ts
            id_ = event.id or str(uuid.uuid4())
            line, digest = seal(prev, draft.event(stream, seq, ts, mono, id_, event.copy_of))
            lines.append({"stream": stream, "seq": seq, "event_id": to_ascii(id_), "line": line[:-1]})
            for i, (salt, value) in enumerate(draft.cells):
                cells.append({"stream": stream, "seq": seq, "i": i, "line": cell_line(i, salt, seq, value)[:-1]})
            done.append(SealedAt(stream, seq, digest, prev, ts))
            seq, prev = seq + 1, digest
        if not lines:
            return done
        try:
            connection.execute(self._events.insert(), lines)
        except self._sa.exc.IntegrityError as e:
            raise UsageError(f"stream {stream}: {e.orig}", "give each event an id of its own, or none") from None
        if cells:
            connection.execute(self._cells.insert(), cells)
        head = {"next_seq": seq, "last_hash": prev}
        move = self._database.insert(self._streams).values(stream=stream, **head)
        connection.execute(move.on_conflict_do_update(index_elements=["stream"], set_=head))
        return done


class _Rows:
    """A stream's rows, a page at a time, as the resolver wants them (see ``resolve.StreamLike``).

    ``held``: the cells of the last page's events by (seq, i).
    """

    def __init__(self, sa: Any, database: Database, stream: str) -> None:
        self._sa = sa
        self._database = database
        self._events, self._cells = (_tables(sa).tables[f"{PREFIX}{name}"] for name in ("event", "cell"))
        self._stream = stream
        self.held: dict[tuple[int, int], bytes] = {}

    def page(self, seq: int, size: int) -> list[bytes]:
        """Lines from ``seq`` on, at most ``size`` of them and about PAGE_BYTES, up to the first gap; fills ``held``."""
        events, cells = self._events, self._cells
        find = self._sa.select(events.c.seq, events.c.line).where(events.c.stream == self._stream)
        find = find.where(events.c.seq >= seq).order_by(events.c.seq).limit(size)
        beside = self._sa.select(cells.c.seq, cells.c.i, cells.c.line).where(cells.c.stream == self._stream)
        beside = beside.where(cells.c.seq >= seq, cells.c.seq < seq + size).order_by(cells.c.seq, cells.c.i)
        lines: list[bytes] = []
        weight = 0
        self.held = {}
        with self._database.reading() as connection:
            found = iter(connection.execute(beside))
            cell = next(found, None)
            for number, line in connection.execute(find):
                if number != seq + len(lines) or weight > PAGE_BYTES or not isinstance(line, bytes):
                    break
                lines.append(line)
                weight += len(line)
                while cell is not None and cell[0] <= number:
                    data = cell[2] if isinstance(cell[2], bytes) else b""  # SQLite keeps whatever it is given
                    self.held[cell[0], cell[1]] = data
                    weight += len(data)
                    cell = next(found, None)
        return lines

    def at(self, seq: int) -> Event:
        rows = self._events
        line = self._one(self._sa.select(rows.c.line).where(rows.c.stream == self._stream, rows.c.seq == seq))
        event = event_of(line) if line is not None else None
        if event is None or (event.stream, event.seq) != (self._stream, seq):
            raise IndexError(f"{self._stream} has no readable event {seq}")
        return event

    def cells(self) -> _Rows:
        return self

    def line(self, seq: int, i: int) -> bytes | None:
        """A cell of the page, or one of an earlier event that a list of the page refers to."""
        rows = self._cells
        wanted = (rows.c.stream == self._stream, rows.c.seq == seq, rows.c.i == i)
        held = self.held.get((seq, i))
        return held if held is not None else self._one(self._sa.select(rows.c.line).where(*wanted))

    def close(self) -> None:
        self.held = {}

    def _one(self, find: Any) -> bytes | None:
        with self._database.reading() as connection:
            found = connection.execute(find).scalar_one_or_none()
        return found if isinstance(found, bytes) else None


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@functools.cache
def _tables(sa: Any) -> MetaData:
    tables: MetaData = sa.MetaData()
    text, number, data = sa.Text, sa.BigInteger, sa.LargeBinary

    def table(name: str, keys: dict[str, Any], more: dict[str, Any], *rules: Any) -> Any:
        columns = [sa.Column(key, kind, primary_key=True, autoincrement=False) for key, kind in keys.items()]
        columns += [sa.Column(key, kind, nullable=False) for key, kind in more.items()]
        return sa.Table(f"{PREFIX}{name}", tables, *columns, *rules)

    in_order = {"stream": text, "seq": number}
    table("stream", {"stream": text}, {"next_seq": number, "last_hash": sa.String(64)})
    event = table("event", in_order, {"event_id": text, "line": data}, sa.UniqueConstraint("stream", "event_id"))
    cell = table("cell", {**in_order, "i": sa.Integer}, {"line": data})
    table("projection", {"stream": text, "name": text}, {"data": data})
    same_event = "stream = NEW.stream AND (seq = NEW.seq OR event_id = NEW.event_id)"
    for of, verb, when in (
        (event, "UPDATE", ""),
        (event, "DELETE", ""),
        # INSERT OR REPLACE deletes without asking the trigger of DELETE
        (event, "INSERT", f"WHEN EXISTS (SELECT 1 FROM {event.name} WHERE {same_event})"),
        (cell, "UPDATE", ""),
        (
            cell,
            "INSERT",
            f"WHEN EXISTS (SELECT 1 FROM {cell.name} WHERE stream = NEW.stream AND seq = NEW.seq AND i = NEW.i)",
        ),
    ):
        refuse = f"SELECT RAISE(ABORT, '{of.name} is append-only')"
        ddl = f"CREATE TRIGGER {of.name}_{verb.lower()} BEFORE {verb} ON {of.name} {when} BEGIN {refuse}; END"
        sa.event.listen(of, "after_create", sa.DDL(ddl).execute_if(dialect="sqlite"))
    return tables
