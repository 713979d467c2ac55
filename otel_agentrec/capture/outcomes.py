"""Whether anybody can know what became of a tool that raised (design: 4-resume-replay, "three outcomes").

A tool that raises has failed, and says so: its caller may try again. But a time-out, a cancellation, a signal or a connection
that was lost on the way tell only that nobody waited for the end: the charge may have gone through.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["is_unknown", "is_unknown_error"]

_NEVER_SENT = frozenset(
    {"ConnectionRefusedError", "ConnectTimeout", "ConnectError", "PoolTimeout", "NewConnectionError"}
)
"""Classes that tell that nothing has left: the tool has failed."""
_CUT_OFF = frozenset(
    {
        *("TimeoutError", "Timeout", "TimeoutException", "ReadTimeout", "WriteTimeout", "ReadTimeoutError"),
        *("ConnectionError", "ConnectionAbortedError", "ConnectionResetError", "BrokenPipeError", "IncompleteRead"),
        *("ReadError", "WriteError", "RemoteProtocolError", "APITimeoutError", "APIConnectionError", "TimeoutExpired"),
        *("ServerTimeoutError", "ServerDisconnectedError", "ConnectionClosed", "ConnectionLost", "ProtocolError"),
    }
)
"""Classes of the standard library and of HTTP and database clients, by name, with all that derive from them."""
_CAUSES = 4


def is_unknown(error: BaseException) -> bool:
    """Whether the outcome of a tool that raised this is unknown. Looks at the class, its bases, and the causes it names."""
    at: BaseException | None = error
    for _ in range(_CAUSES):
        if at is None:
            return False
        if not isinstance(at, Exception):
            return True
        told = _told([cls.__name__ for cls in type(at).__mro__])
        if told is not None:
            return told
        at = at.__cause__
    return False


def is_unknown_error(error: Mapping[str, Any]) -> bool:
    """The same of an error as it is kept: ``{type, module, message, cause?}``. Its class is looked for where it is loaded."""
    at: Any = error
    for _ in range(_CAUSES):
        if not isinstance(at, Mapping):
            return False
        told = _told(_names(at))
        if told is not None:
            return told
        at = at.get("cause")
    return False


def _told(names: list[str]) -> bool | None:
    if not _NEVER_SENT.isdisjoint(names):
        return False
    return True if not _CUT_OFF.isdisjoint(names) else None


def _names(error: Mapping[str, Any]) -> list[str]:
    thing: Any = sys.modules.get(str(error.get("module")))
    name = str(error.get("type") or "")
    for part in name.split("."):
        thing = vars(thing).get(part) if hasattr(thing, "__dict__") else None
    if isinstance(thing, type):
        return [cls.__name__ for cls in thing.__mro__]
    return [name.rpartition(".")[2]]
