"""Failed, or cut off? A tool that raises has failed unless its error tells that nobody waited for the end."""

from __future__ import annotations

import asyncio
import smtplib
import sqlite3
import subprocess
import urllib.error

import httpx2 as httpx
import psycopg
import pytest
import sqlalchemy.exc

from otel_agentrec.capture.outcomes import is_unknown, is_unknown_error
from otel_agentrec.intercept.tools.codecs import outcome_of_error


class ReadTimeout(Exception):
    """As HTTP clients name it."""


class ConnectTimeout(TimeoutError):
    pass


class ChunkedEncodingError(Exception):
    """As requests tells of an answer that broke off."""


class McpError(Exception):
    """As MCP clients tell of everything."""


class ClientConnectorError(OSError):
    """As aiohttp tells that nothing was sent."""


class Group(Exception):
    """As an ExceptionGroup, which Python 3.10 does not have."""

    def __init__(self, *exceptions: BaseException) -> None:
        super().__init__("unhandled errors in a TaskGroup")
        self.exceptions = exceptions


class ServerSelectionTimeoutError(ConnectionError):
    """As pymongo tells that it found no server to send to."""


class BotocoreError(Exception):
    """As botocore tells of an answer."""

    response = {"ResponseMetadata": {"HTTPStatusCode": 504}}  # noqa: RUF012


class OperationalError(Exception):
    """As the clients of MySQL tell of everything."""

    __module__ = "pymysql.err"


def answered(status: int, method: str = "POST") -> Exception:
    request = httpx.Request(method, "http://bank/charge")
    return httpx.HTTPStatusError(str(status), request=request, response=httpx.Response(status, request=request))


def in_sqlalchemy(error: Exception, *, invalidated: bool = False) -> Exception:
    return sqlalchemy.exc.OperationalError("COMMIT", {}, error, connection_invalidated=invalidated)


def handling(error: BaseException, raised: Exception, *, openly: bool = True) -> Exception:
    """``except error: raise raised``, or ``raise raised from None``."""
    try:
        try:
            raise error
        except BaseException:
            if openly:
                raise raised  # noqa: B904
            raise raised from None
    except Exception as told:
        return told


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def wrapped(error: Exception, times: int) -> Exception:
    """As each layer of a program wraps what it caught."""
    return error if times == 0 else caused(ValueError(f"layer {times}"), wrapped(error, times - 1))


def in_a_circle() -> Exception:
    one, other = ValueError(), KeyError()
    caused(one, other), caused(other, one)
    return Group(one, other, one)


CUT_OFF = [
    TimeoutError(),
    asyncio.TimeoutError(),
    ConnectionResetError(),
    BrokenPipeError(),
    ReadTimeout(),
    subprocess.TimeoutExpired("x", 1),
    caused(ValueError("the bank did not answer"), ReadTimeout()),
    ChunkedEncodingError(),
    asyncio.IncompleteReadError(b"", 4),
    smtplib.SMTPServerDisconnected(),
    McpError("Timed out while waiting for response to ClientRequest. Waited 5.0 seconds."),
    McpError("Request 'tools/call' timed out"),
    McpError("Connection closed"),
    Group(ValueError(), Group(ReadTimeout())),
    answered(502),
    answered(504, "PUT"),
    answered(499),
    caused(ValueError("the bank is away"), answered(502)),
    wrapped(answered(502), 12),
    Group(in_a_circle(), wrapped(ReadTimeout(), 4)),
    BotocoreError(),
    urllib.error.HTTPError("u", 504, "m", None, None),  # type: ignore[arg-type]
    handling(TimeoutError(), ValueError("the bank did not answer")),
    handling(TimeoutError(), caused(ValueError("the bank did not answer"), ReadTimeout())),
    handling(handling(ReadTimeout(), KeyError()), ValueError()),
    psycopg.OperationalError("server closed the connection unexpectedly"),
    psycopg.OperationalError("consuming input failed: SSL SYSCALL error: EOF detected"),
    psycopg.errors.AdminShutdown("terminating connection due to administrator command"),
    psycopg.errors.lookup("08007")("it is not known whether it was committed"),
    in_sqlalchemy(psycopg.OperationalError("the connection is lost"), invalidated=True),
    in_sqlalchemy(RuntimeError("what a driver says that nobody knows"), invalidated=True),
    OperationalError(2013, "Lost connection to MySQL server during query"),
]
FAILED = [
    ValueError("no"),
    ConnectionRefusedError(),
    ConnectTimeout(),
    urllib.error.HTTPError("u", 500, "m", None, None),  # type: ignore[arg-type]
    caused(ValueError(), KeyError()),
    in_a_circle(),
    McpError("no such order"),
    ClientConnectorError(),
    Group(ValueError(), KeyError()),
    answered(500),
    answered(503),
    answered(408),
    answered(404),
    answered(504, "GET"),
    handling(KeyError(), ValueError()),
    handling(ReadTimeout(), ValueError("the cache is slow, and the order was wrong"), openly=False),
    psycopg.OperationalError('connection to server at "db" failed: Connection refused'),
    psycopg.OperationalError("could not translate host name"),
    psycopg.errors.DeadlockDetected("deadlock detected"),
    psycopg.errors.QueryCanceled("canceling statement due to statement timeout"),
    psycopg.errors.UniqueViolation("duplicate key"),
    in_sqlalchemy(psycopg.errors.LockNotAvailable("canceling statement due to lock timeout")),
    in_sqlalchemy(sqlite3.OperationalError("database is locked")),
    sqlite3.OperationalError("database is locked"),
    OperationalError(1213, "Deadlock found when trying to get lock"),
    ServerSelectionTimeoutError(),
]


@pytest.mark.parametrize("error", CUT_OFF, ids=repr)
def test_cut_off(error: Exception) -> None:
    assert is_unknown(error)
    assert is_unknown_error(outcome_of_error(error).error or {})


@pytest.mark.parametrize("error", FAILED, ids=repr)
def test_failed(error: Exception) -> None:
    assert not is_unknown(error)
    assert not is_unknown_error(outcome_of_error(error).error or {})


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit(), asyncio.CancelledError()])
def test_what_is_no_exception_cut_it_off(error: BaseException) -> None:
    assert is_unknown(error)


def test_what_is_kept_by_name_only() -> None:
    assert is_unknown_error({"type": "ReadTimeout", "module": "a.library.that.is.not.here", "message": ""})
    assert not is_unknown_error({"type": "Odd", "module": "nowhere", "message": ""})
    assert not is_unknown_error({})


def test_what_the_caller_was_handling_is_not_the_tools_error() -> None:
    try:
        raise TimeoutError
    except TimeoutError as before:
        told = handling(KeyError(), ValueError())
        assert is_unknown(told)
        assert not is_unknown(told, before=before)
        assert not is_unknown_error(outcome_of_error(told, before).error or {})
