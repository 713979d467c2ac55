"""A database that keeps sessions or events (SQLite, PostgreSQL): opened, its tables made, its errors told in one line.

SQLAlchemy (extra ``sql``) is imported when a store is made, never before.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import string
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from otel_agentrec.errors import ExtraMissing, RecordingBusy, StoreUnavailable, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, MetaData

__all__ = ["Database", "from_ascii", "load_sqlalchemy", "to_ascii"]

URLS = "sqlite:///FILE, or postgresql://USER@HOST/DATABASE"
LOCK_WAIT = 30.0
"""Seconds that a writer of an SQLite file waits for the others."""
CONNECT_WAIT = 10
"""Seconds that a PostgreSQL server has to answer, unless the URL says ``connect_timeout``."""
MAKING = 0x6167656E74726563
"""Number of the advisory lock under which tables are made in PostgreSQL."""
_KEPT = string.punctuation.replace("%", "")


def load_sqlalchemy() -> Any:
    """The module.

    Raises:
        ExtraMissing: the extra ``sql`` is not installed.
    """
    try:
        import sqlalchemy
    except ImportError:
        raise ExtraMissing("a store in a database", "sql") from None
    return sqlalchemy


def to_ascii(text: str) -> str:
    """Any text, also with NUL and lone surrogates, which no text column takes, as ASCII; one text, one spelling.

    Percent-encoded UTF-8; letters, digits and punctuation other than ``%`` stand as they are.
    """
    return quote(text, safe=_KEPT, errors="surrogatepass")


def from_ascii(spelled: str) -> str:
    """The inverse of :func:`to_ascii`."""
    return unquote(spelled, errors="surrogatepass")


class Database:
    """One database with the tables of one store. Threads may share it; so may processes that are forked from this one.

    Args:
        url_or_engine: ``sqlite:///FILE``, ``postgresql://USER@HOST/DATABASE``, or an Engine of SQLAlchemy (which stays the
            caller's: it is not closed here).
        tables: what the store needs; made on first use, where they are not there.

    Raises:
        ExtraMissing: the database's driver is not installed.
        UsageError: it is no URL, or one of another kind of database.
    """

    def __init__(self, url_or_engine: str | Engine, tables: MetaData) -> None:
        sa = load_sqlalchemy()
        self._tables = tables
        self._errors = sa.exc
        self._inspect = sa.inspect
        self._making = threading.Lock()
        self._is_made = False
        given: Any = url_or_engine
        self._is_ours = not isinstance(given, sa.Engine)
        self._engine: Engine = _engine(sa, given) if self._is_ours else given
        dialect = self._engine.dialect
        if dialect.name not in ("sqlite", "postgresql") or dialect.is_async:
            kind = f"{dialect.name} by {dialect.driver}" if dialect.is_async else dialect.name
            raise UsageError(f"a store can't be kept in {kind}", f"give {URLS}")
        self.kind: str = dialect.name
        """``sqlite`` or ``postgresql``."""
        self.name: str = self._engine.url.set(query={}).render_as_string(hide_password=True)
        """The URL without password and options, for messages."""
        self.insert: Any = importlib.import_module(f"sqlalchemy.dialects.{self.kind}").insert
        """The database's own INSERT, which knows ON CONFLICT."""
        # A database in memory lives in one connection, so one thread uses it at a time.
        is_one = isinstance(self._engine.pool, sa.pool.StaticPool)
        self._turn = threading.RLock() if is_one else contextlib.nullcontext()

    def close(self) -> None:
        """Close the connections that were opened here. The store may be used again; it then opens new ones."""
        if self._is_ours:
            self._engine.dispose()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads.

        Raises:
            RecordingBusy: another process holds the SQLite file for too long.
            StoreUnavailable: the database can't be reached or used.
        """
        self._make()
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes: all of it is done at the end of the block, or nothing if that raises.

        Raises:
            RecordingBusy: another process holds the SQLite file for too long.
            StoreUnavailable: the database can't be reached or used. If the connection broke at the very end, nobody knows
                whether it was done.
        """
        self._make()
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with self._turn, self._told(), self._engine.connect() as plain:
            if self.kind != "sqlite":
                connection = plain.execution_options(isolation_level="READ COMMITTED")
                with connection.begin():
                    yield connection
                return
            # The driver of SQLite would begin late, and without the lock that a writer needs before it looks.
            connection = plain.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql(begin)
            try:
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                with contextlib.suppress(self._errors.SQLAlchemyError):
                    connection.exec_driver_sql("ROLLBACK")
                raise

    def _make(self) -> None:
        """Make the tables that are not there, as one step also beside other processes."""
        if self._is_made:
            return
        with self._making:
            self._make_file()
            # Looking first needs no right to make tables, where somebody else has made them.
            with self._transaction("BEGIN") as connection:
                inspector = self._inspect(connection)
                is_made = all(inspector.has_table(name) for name in self._tables.tables)
            if not is_made:
                with self._transaction("BEGIN IMMEDIATE") as connection:
                    if self.kind == "postgresql":
                        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MAKING})")
                    self._tables.create_all(connection)
            self._is_made = True

    def _make_file(self) -> None:
        """SQLite would make its file readable by everybody; ours are for their owner."""
        file = self._engine.url.database
        if not self._is_ours or self.kind != "sqlite" or _is_memory(file) or file is None or file.startswith("file:"):
            return
        path = Path(file)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as e:
            raise StoreUnavailable(
                f"{path} can't be made: {e.strerror}", "check the path and who may write it"
            ) from None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the database in one line, without the statement and the values that it was given."""
        try:
            yield
        except self._errors.SQLAlchemyError as e:
            cause = getattr(e, "orig", None) or e
            what = " ".join(str(cause).split())[:300]
            if "database is locked" in what:
                raise RecordingBusy(f"{self.name} is being written by another process", "try again") from None
            raise StoreUnavailable(f"{self.name}: {what}", self._hint(e)) from None

    def _hint(self, error: Exception) -> str | None:
        if not isinstance(error, (self._errors.OperationalError, self._errors.InterfaceError)):
            return "check that the tables are this store's, and what the user may do with them"
        return "check the path and who may write it" if self.kind == "sqlite" else None


def _engine(sa: Any, url: Any) -> Engine:
    if not isinstance(url, (str, sa.URL)):
        raise UsageError(f"{type(url).__name__} is neither a database URL nor an Engine", f"give {URLS}")
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        shown = "this" if "@" in url else repr(url)  # never a password
        raise UsageError(f"{shown} is no database URL", f"give {URLS}") from None
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    backend = parsed.get_backend_name()
    options: dict[str, Any] = {"hide_parameters": True}
    if backend == "sqlite" and _is_memory(parsed.database):
        options |= {"poolclass": sa.pool.StaticPool, "connect_args": {"check_same_thread": False}}
    elif backend == "sqlite":
        # No connection outlives its transaction: none is carried into a forked process, none is left open.
        waits = {} if "timeout" in parsed.query else {"timeout": LOCK_WAIT}
        options |= {"poolclass": sa.pool.NullPool, "connect_args": waits}
    else:
        options["pool_pre_ping"] = True
        if "connect_timeout" not in parsed.query and parsed.drivername.endswith(("+psycopg", "+psycopg2")):
            options["connect_args"] = {"connect_timeout": CONNECT_WAIT}
    try:
        engine: Engine = sa.create_engine(parsed, **options)
    except ImportError:
        if parsed.drivername == "postgresql+psycopg":
            raise ExtraMissing("a store in PostgreSQL", "sql") from None
        raise UsageError(f"the driver of {parsed.drivername} is not installed", f"give {URLS}") from None
    except (sa.exc.SQLAlchemyError, ValueError, TypeError):
        raise UsageError(f"a store can't be kept in {parsed.drivername}", f"give {URLS}") from None
    if backend == "postgresql":
        _forget_after_fork(engine)
    return engine


def _is_memory(file: str | None) -> bool:
    return file in (None, "", ":memory:")


def _forget_after_fork(engine: Engine) -> None:
    """A forked process opens connections of its own: two that write into one socket garble each other."""
    if not hasattr(os, "register_at_fork"):
        return
    held = weakref.ref(engine)

    def forget() -> None:
        theirs = held()
        if theirs is not None:
            theirs.dispose(close=False)

    os.register_at_fork(after_in_child=forget)
