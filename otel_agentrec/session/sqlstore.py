"""Snapshots of sessions in a database, where several machines share them: SQLite or PostgreSQL."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from otel_agentrec.errors import RecordingUnreadable, UsageError
from otel_agentrec.journal.database import Database, from_ascii, load_sqlalchemy, to_ascii
from otel_agentrec.session.snapshot import AgentSessionSnapshot, from_bytes, to_bytes
from otel_agentrec.session.stores import stale

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["SqlAgentSessionStore"]

TABLE = "agentrec_session"
LONGEST = 2000
"""Characters of an encoded id that an index of PostgreSQL surely holds."""


class SqlAgentSessionStore:
    """One row per session: ``(session_id, version, snapshot, saved_at)``.

    ``session_id`` is percent-encoded where it is not plain ASCII; ``snapshot`` holds the bytes that the file store writes,
    JSON in UTF-8, which unlike a text column take any text; ``saved_at`` is in milliseconds.
    A save is one statement, so the newer of two snapshots stays, whoever saves at the same time.

    Args:
        url_or_engine: ``sqlite:///FILE``, ``postgresql://USER@HOST/DATABASE``, or an Engine of SQLAlchemy.
        table: its name: letters, digits and ``_``. Made on first use.

    Raises:
        ExtraMissing: the extra ``sql`` is not installed.
        UsageError: no URL that can be used, or no name of a table.

    All methods raise StoreUnavailable where the database can't be reached or used.
    """

    def __init__(self, url_or_engine: str | Engine, *, table: str = TABLE) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", table):
            raise UsageError(f"{table!r} is no name of a table", "use at most 63 letters, digits and _")
        sa = load_sqlalchemy()
        self._rows: Any = sa.Table(
            table,
            sa.MetaData(),
            sa.Column("session_id", sa.Text, primary_key=True),
            sa.Column("version", sa.BigInteger, nullable=False),
            sa.Column("snapshot", sa.LargeBinary, nullable=False),
            sa.Column("saved_at", sa.BigInteger, nullable=False),
        )
        self._select: Any = sa.select
        self._database = Database(url_or_engine, self._rows.metadata)
        self._insert: Any = self._database.insert

    def __enter__(self) -> SqlAgentSessionStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, unless an Engine was given."""
        self._database.close()

    def save(self, snapshot: AgentSessionSnapshot) -> None:
        key, rows = _key(snapshot.session_id), self._rows
        values = {
            "version": snapshot.version,
            "snapshot": to_bytes(snapshot),
            "saved_at": time.time_ns() // 1_000_000,
        }
        upsert = self._insert(rows).values(session_id=key, **values)
        upsert = upsert.on_conflict_do_update(
            index_elements=[rows.c.session_id], set_=values, where=rows.c.version <= snapshot.version
        ).execution_options(preserve_rowcount=True)
        with self._database.writing() as connection:
            if connection.execute(upsert).rowcount:
                return
            # Read under the lock that the statement took: it is the version that stood in the way.
            have = connection.execute(self._select(rows.c.version).where(rows.c.session_id == key)).scalar_one()
        raise stale(snapshot, have)

    def load(self, session_id: str) -> AgentSessionSnapshot | None:
        find = self._select(self._rows.c.snapshot).where(self._rows.c.session_id == _key(session_id))
        with self._database.reading() as connection:
            data = connection.execute(find).scalar_one_or_none()
        if data is None:
            return None
        where = f"session {session_id!r} in {self._database.name}"
        try:
            snapshot = from_bytes(data)
        except RecordingUnreadable as e:
            raise RecordingUnreadable(
                f"{where} is damaged: {e}", "take it from a backup, or delete it to begin the session anew"
            ) from None
        if snapshot.session_id != session_id:
            raise RecordingUnreadable(f"{where} is session {snapshot.session_id!r}")
        return snapshot

    def delete(self, session_id: str) -> bool:
        remove = self._rows.delete().where(self._rows.c.session_id == _key(session_id))
        with self._database.writing() as connection:
            return bool(connection.execute(remove).rowcount)

    def list_session_ids(self) -> list[str]:
        with self._database.reading() as connection:
            keys = connection.execute(self._select(self._rows.c.session_id)).scalars().all()
        return sorted(from_ascii(key) for key in keys)


def _key(session_id: str) -> str:
    if not isinstance(session_id, str) or not session_id:
        raise UsageError("a session needs an id", "give any text: a user, a chat, a ticket")
    key = to_ascii(session_id)
    if len(key) > LONGEST:
        raise UsageError(f"session id {session_id[:40]!r}… is too long for a database's index", "give a shorter one")
    return key
