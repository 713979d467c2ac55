"""Whether anybody can know what became of a tool that raised (docs/resume.md, "Three outcomes, not two").

A tool that raises has failed, and says so: its caller may try again. But a time-out, a cancellation, a signal, a connection
that was lost on the way, or a gateway that had no answer tell only that nobody waited for the end: the charge may have gone
through.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.databases import database_tells
from otel_agentrec.capture.gateways import status_tells

__all__ = ["is_unknown", "is_unknown_error"]

_NEVER_SENT = frozenset(
    {
        *("ConnectionRefusedError", "ConnectTimeout", "ConnectError", "PoolTimeout", "NewConnectionError"),
        *("ConnectTimeoutError", "ConnectionTimeoutError", "ClientConnectorError", "EndpointConnectionError"),
        "ServerSelectionTimeoutError",
    }
)
"""Classes that tell that nothing has left: the tool has failed."""
_CUT_OFF = frozenset(
    {
        *("TimeoutError", "Timeout", "TimeoutException", "ReadTimeout", "WriteTimeout", "ReadTimeoutError"),
        *("ConnectionError", "ConnectionAbortedError", "ConnectionResetError", "BrokenPipeError", "IncompleteRead"),
        *("ReadError", "WriteError", "RemoteProtocolError", "APITimeoutError", "APIConnectionError", "TimeoutExpired"),
        *("ServerTimeoutError", "ServerDisconnectedError", "ConnectionClosed", "ConnectionLost", "ProtocolError"),
        *("CloseError", "ChunkedEncodingError", "ClientPayloadError", "ClientOSError", "ConnectionClosedError"),
        *("ResponseStreamingError", "BadStatusLine", "IncompleteReadError", "SSLEOFError", "SSLZeroReturnError"),
        *("SMTPServerDisconnected", "AutoReconnect", "NetworkTimeout", "DeadlineExceeded", "GatewayTimeout"),
        *("BrokenResourceError", "ClosedResourceError", "EndOfStream"),
    }
)
"""Classes of the standard library and of HTTP and database clients, by name, with all that derive from them."""
_BY_MESSAGE = {
    **dict.fromkeys(("McpError", "MCPError"), re.compile(r"timed out|connection closed", re.IGNORECASE)),
    "RpcError": re.compile(r"StatusCode\.(?:DEADLINE_EXCEEDED|UNAVAILABLE|CANCELLED|UNKNOWN|ABORTED)"),
}
"""Classes that tell of anything: MCP and gRPC say by a code, which their message names, whether an answer came."""
_CAUSES = 32
"""Errors in a row that are looked at: each layer of a program may wrap what it caught in an error of its own."""


def is_unknown(error: BaseException, *, before: BaseException | None = None) -> bool:
    """Whether the outcome of a tool that raised this is unknown. Looks at the class, its bases, what HTTP and database clients
    tell in it, the members of a group, and its cause: the one that it names (``raise … from``), else the one that was being
    handled when it was raised; none where it says so (``from None``). One that was cut off is enough.

    Args:
        before: what was being handled when the tool was called: it is none of the tool's errors.
    """
    return _is_unknown(error, before, _CAUSES, set())


def _is_unknown(error: BaseException, before: BaseException | None, deep: int, seen: set[int]) -> bool:
    if not isinstance(error, Exception):
        return True
    seen.add(id(error))  # causes may go round in a circle, and groups share them
    told = _told([cls.__name__ for cls in type(error).__mro__], error)
    told = _asked(error) if told is None else told
    if told is not None:
        return told
    members = getattr(error, "exceptions", None)
    cause = error.__cause__ if error.__suppress_context__ or error.__cause__ is not None else error.__context__
    inner = [*(members if isinstance(members, tuple) else ()), *([] if cause is before else [cause])]
    return deep > 1 and any(
        isinstance(one, BaseException) and id(one) not in seen and _is_unknown(one, before, deep - 1, seen)
        for one in inner
    )


def _asked(error: Exception) -> bool | None:
    """What a client tells by more than the name of a class. An attribute of an error may raise anything."""
    try:
        told = database_tells(error)
        return status_tells(error) if told is None else told
    except Exception:
        return None


def is_unknown_error(error: Mapping[str, Any], deep: int = _CAUSES) -> bool:
    """The same of an error as it is kept: ``{type, module, message, cutOff?, cause?, group?}``. ``cutOff``: what
    :func:`is_unknown` said of the error itself. Without it the class is looked for where it is loaded."""
    if error.get("cutOff") is True:
        return True
    told = _told(_names(error), error.get("message"))
    if told is not None:
        return told
    members = error.get("group")
    inner = [*(members if isinstance(members, list) else ()), error.get("cause")]
    return deep > 1 and any(isinstance(one, Mapping) and is_unknown_error(one, deep - 1) for one in inner)


def _told(names: list[str], message: object) -> bool | None:
    if not _NEVER_SENT.isdisjoint(names):
        return False
    if not _CUT_OFF.isdisjoint(names):
        return True
    for name in _BY_MESSAGE.keys() & names:
        if _BY_MESSAGE[name].search(str(message)):
            return True
    return None


def _names(error: Mapping[str, Any]) -> list[str]:
    thing: Any = sys.modules.get(str(error.get("module")))
    name = str(error.get("type") or "")
    for part in name.split("."):
        thing = vars(thing).get(part) if hasattr(thing, "__dict__") else None
    if isinstance(thing, type):
        return [cls.__name__ for cls in thing.__mro__]
    return [name.rpartition(".")[2]]
