"""Failed, or cut off? A tool that raises has failed unless its error tells that nobody waited for the end."""

from __future__ import annotations

import asyncio
import smtplib
import subprocess
import urllib.error

import pytest

from otel_agentrec.capture.outcomes import is_unknown, is_unknown_error
from otel_agentrec.intercept.tools.raised import error_kept


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


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


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
]
FAILED = [
    ValueError("no"),
    ConnectionRefusedError(),
    ConnectTimeout(),
    urllib.error.HTTPError("u", 500, "m", None, None),  # type: ignore[arg-type]
    caused(ValueError(), KeyError()),
    McpError("no such order"),
    ClientConnectorError(),
    Group(ValueError(), KeyError()),
]


@pytest.mark.parametrize("error", CUT_OFF, ids=repr)
def test_cut_off(error: Exception) -> None:
    assert is_unknown(error)
    assert is_unknown_error(error_kept(error))


@pytest.mark.parametrize("error", FAILED, ids=repr)
def test_failed(error: Exception) -> None:
    assert not is_unknown(error)
    assert not is_unknown_error(error_kept(error))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit(), asyncio.CancelledError()])
def test_what_is_no_exception_cut_it_off(error: BaseException) -> None:
    assert is_unknown(error)


def test_what_is_kept_by_name_only() -> None:
    assert is_unknown_error({"type": "ReadTimeout", "module": "a.library.that.is.not.here", "message": ""})
    assert not is_unknown_error({"type": "Odd", "module": "nowhere", "message": ""})
    assert not is_unknown_error({})
