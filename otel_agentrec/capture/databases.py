"""What an error of a database client tells: whether what it was asked to commit can have been committed, all the same.

A database that answers has rolled back: a deadlock, a constraint, a lock that did not come. A connection that is lost on the way
may have been lost after the commit; one that could not be made, before anything was sent. By SQLSTATE (SQL standard class 08,
and PostgreSQL's 57P01, 57P02 and 40003), by MySQL's numbers, or, where a client has neither, by what it says.
"""

from __future__ import annotations

import re

__all__ = ["database_tells"]

_LOST = frozenset({"08000", "08003", "08006", "08007", "08P01", "08S01", "57P01", "57P02", "40003"})
_NEVER_CONNECTED = frozenset({"08001", "08004", "57P03"})
_MYSQL_LOST = frozenset({1053, 2006, 2013, 2055})
"""The server goes down; it is gone; the connection was lost during a query; and the same with what the system said."""
_POSTGRES = frozenset({"psycopg", "psycopg2", "asyncpg", "pg8000"})
_MYSQL = frozenset({"pymysql", "MySQLdb", "mysql", "aiomysql", "asyncmy"})
_OTHERS = frozenset({"pyodbc", "oracledb", "cx_Oracle", "pymssql"})
_SAID_LOST = re.compile(
    r"server closed the connection|connection (is |was )?(lost|closed in the middle)|closed unexpectedly|EOF detected"
    r"|consuming input failed|sending (query|data) failed|could not (receive|send) data|terminating connection"
    r"|ORA-0311[34]|ORA-03135|DPY-4011|communication link failure|broken pipe|reset by peer",
    re.IGNORECASE,
)
_SAID_NEVER_CONNECTED = re.compile(
    r"^connection (to server at .* )?failed|^connection is bad|could not (connect|translate host)|connection refused|timeout expired$",
    re.IGNORECASE,
)
_STATE = re.compile(r"[0-9A-Z]{5}")


def database_tells(error: BaseException) -> bool | None:
    """True: nobody knows whether it was committed; False: it was not; None: no such error, or one that leaves no doubt."""
    library = type(error).__module__.partition(".")[0]
    if library == "sqlalchemy":
        return _wrapped(error)
    if library in _MYSQL:
        number = getattr(error, "errno", None) or (error.args[0] if error.args else None)
        return True if number in _MYSQL_LOST else None
    if library not in _POSTGRES | _OTHERS:
        return None
    state = _sqlstate(error)
    if state in _LOST:
        return True
    if state in _NEVER_CONNECTED:
        return False
    text = str(error).strip()
    if state is not None and library in _POSTGRES:
        return None
    if _SAID_NEVER_CONNECTED.search(text):
        return False
    if library.startswith("psycopg") and any(cls.__name__ == "OperationalError" for cls in type(error).__mro__):
        return True  # no state: the server has not answered
    return True if _SAID_LOST.search(text) else None


def _wrapped(error: BaseException) -> bool | None:
    """SQLAlchemy's: the driver's error, and whether the pool took the connection for lost."""
    inner = getattr(error, "orig", None)
    told = database_tells(inner) if isinstance(inner, BaseException) else None
    if told is None and getattr(error, "connection_invalidated", False) is True:
        return True
    return told


def _sqlstate(error: BaseException) -> str | None:
    told = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if told is None and type(error).__module__.startswith("pyodbc") and error.args:
        told = error.args[0]
    return told if isinstance(told, str) and _STATE.fullmatch(told) else None
