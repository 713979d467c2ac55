"""No network while a recording is replayed: a guard in Python, and one in the kernel where there is one.

The audit hook refuses what goes through Python's sockets, by host and port. It does not see C libraries with sockets of
their own (uvloop, gRPC) nor other programs; Landlock does, by port (:mod:`.landlock`). :func:`report` says which of them
was active, so that nobody takes the one for the other.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Iterable
from typing import Any

from opentelemetry import context

from otel_agentrec.errors import ReplayDivergence
from otel_agentrec.intercept import landlock as kernel
from otel_agentrec.intercept.active import refusal
from otel_agentrec.intercept.exchanges import SUPPRESSED

__all__ = ["allow_sockets", "forbid_sockets", "report"]

HINT = "nothing is sent while a recording is replayed; allow the host and port if it must be"
_PROGRAMS = {"subprocess.Popen": 0, "os.system": 0, "os.exec": 0, "os.posix_spawn": 0}
"""Audit events of started programs, and which argument names the program."""
MAX_TOLD = 100


class _Guard:
    """``places``: (address, port) that may be connected to; ``names``: hosts that may be looked up."""

    def __init__(self) -> None:
        self.on = False
        self.hooked = False
        self.allowed: list[tuple[str, int]] = []
        self.places: frozenset[tuple[str, int]] = frozenset()
        self.names: frozenset[str] = frozenset()
        self.refused: list[str] = []
        self.started: list[str] = []
        self.kernel = "not asked for"
        self.kernel_ports: list[int] | None = None


_guard = _Guard()


def forbid_sockets(allow: Iterable[tuple[str, int]] = (), *, landlock: bool = True) -> dict[str, Any]:
    """Refuse all connections, datagrams and name look-ups of this process from now on.

    Call it before threads are started: Landlock holds for the calling thread and what it starts.

    Args:
        allow: (host, port) that are not refused, such as a collector's. Landlock lets the port pass to every host. Port 0 is
            any port; Landlock can't hold then.
        landlock: also ask the kernel. That can't be undone, and narrows with each call.

    Returns:
        What :func:`report` says.
    """
    allowed = [(host, int(port)) for host, port in allow]
    _guard.on = False  # names are looked up once, now
    _guard.allowed = allowed
    _guard.places = frozenset((address, port) for host, port in allowed for address in _addresses(host))
    _guard.names = frozenset(host.lower() for host, _ in allowed)
    _guard.refused, _guard.started = [], []
    if landlock and any(not port for _, port in allowed):
        _guard.kernel = "no: a host is allowed with any port, and Landlock knows only ports"
    elif landlock:
        others = threading.active_count() - 1
        try:
            kernel.restrict_tcp(port for _, port in allowed)
        except OSError as error:
            if _guard.kernel_ports is None:
                _guard.kernel = f"no: {error}"
        else:
            _guard.kernel = "active" if not others else f"active, but not for {others} threads that ran already"
            _guard.kernel_ports = sorted({port for _, port in allowed})
    if not _guard.hooked:
        sys.addaudithook(_audit)
        _guard.hooked = True
    _guard.on = True
    return report()


def allow_sockets() -> None:
    """Switch the audit hook off. What Landlock was told stays."""
    _guard.on = False


def report() -> dict[str, Any]:
    """Which guards are active, and what they met.

    ``{audit_hook, landlock, landlock_ports, allowed, refused, programs}``: ``landlock`` is ``active``, or why it is not;
    ``allowed``, ``refused``: ``host:port``, the latter as far as the audit hook saw them; ``programs``: those started, which
    only Landlock holds back. Lists of what was met stop at 100.
    """
    return {
        "audit_hook": _guard.on,
        "landlock": _guard.kernel,
        "landlock_ports": _guard.kernel_ports,
        "allowed": [f"{host}:{port}" for host, port in _guard.allowed],
        "refused": list(_guard.refused),
        "programs": list(_guard.started),
    }


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not _guard.on:
        return
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        _may_reach(args[1])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        _may_ask(args[0])
    elif event in _PROGRAMS and len(_guard.started) < MAX_TOLD:
        program = args[_PROGRAMS[event]]
        words = os.fsdecode(program) if isinstance(program, (str, bytes, os.PathLike)) else str(program)
        _guard.started.append(words.split(" ", 1)[0])  # arguments may be secrets


def _may_reach(address: Any) -> None:
    """Raises unless the address is allowed, is no internet address, or was given to an earlier connect."""
    if not isinstance(address, tuple) or len(address) < 2:
        return
    host, port = address[:2]
    if not {(host, port), (host, 0), (str(host).lower(), port), (str(host).lower(), 0)} & _guard.places:
        _refuse(f"{host}:{port}")


def _may_ask(host: Any) -> None:
    """Raises when a name would be looked up. Addresses as text are not looked up anywhere."""
    if host is None:
        return
    name = (host.decode("ascii", "replace") if isinstance(host, (bytes, bytearray)) else str(host)).lower()
    if name in _guard.names or not name or name == "localhost":
        return
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        _refuse(name)


def _refuse(where: str) -> None:
    if len(_guard.refused) < MAX_TOLD:
        _guard.refused.append(where)
    if any(context.get_value(key) for key in SUPPRESSED):  # an exporter: its own thread must not die of it
        raise ConnectionRefusedError(f"{where} is not connected to: {HINT}")
    raise refusal(ReplayDivergence(f"the program wants to reach {where}", HINT))


def _addresses(host: str) -> set[str]:
    """What a host is connected to as, its own name included; only that when it can't be looked up."""
    found = {host.lower()}
    try:
        found |= {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        pass
    return found
