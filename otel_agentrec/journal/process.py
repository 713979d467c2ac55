"""Which process writes, and which ones started it: a path of ids, handed down by an environment variable and by fork.

    r6f1c0a9be421/p9a31c07d/p55b0e1f2

Each part that begins with ``r`` is an ``otel-agentrec run``, each with ``p`` a Python process that records; the outermost
comes first. Processes with the same path up to an ``r`` part were started by the same command, so they will all be started
again when that command is: whoever resumes a run must know them. Programs of other commands that write into the same
directory have another one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

__all__ = ["VARIABLE", "command_of", "depth_of", "is_below", "of_command", "own_path"]

VARIABLE = "OTEL_AGENTREC__PROCESS"
_DEEPEST = 32
"""Parts of a path; a process below that stands beside its parent."""

_OWN: str | None = None


def own_path() -> str:
    """The path of this process. From now on the processes that it starts stand below it."""
    global _OWN
    if _OWN is None:
        above = os.environ.get(VARIABLE)
        _OWN = _below(_handed_to_ancestor() if above is None else above, "p" + secrets.token_hex(4))
    if os.environ.get(VARIABLE) != _OWN:
        os.environ[VARIABLE] = _OWN
    return _OWN


def of_command(environ: Mapping[str, str]) -> str:
    """The path for a program that ``otel-agentrec run`` is about to start with this environment."""
    return _below(environ.get(VARIABLE, ""), "r" + secrets.token_hex(6))


def command_of(path: str) -> str:
    """The part of a path that all processes of the same command share; of a process without one its own."""
    parts = path.split("/")
    last = max((i for i, part in enumerate(parts) if part.startswith("r")), default=len(parts) - 1)
    return "/".join(parts[: last + 1])


def depth_of(path: str) -> int:
    """How many recorded processes stand between a process and its command: 1 for the one that the command started."""
    return path.count("/") - command_of(path).count("/")


def is_below(path: str, above: str) -> bool:
    """Whether a process was started by another one, or by one that it started."""
    return path.startswith(above + "/")


def _handed_to_ancestor() -> str:
    """The path that the nearest ancestor was given which was given one: a process whose environment was emptied is started
    again all the same. Only where the system shows it (Linux); not of one whose ancestors have ended."""
    pid = os.getppid()
    for _ in range(_DEEPEST):
        if pid <= 1:
            break
        process = Path("/proc", str(pid))
        try:
            environ = process.joinpath("environ").read_bytes()
        except OSError:  # of another user, as sudo is
            environ = b""
        for one in environ.split(b"\0"):
            name, _, value = one.partition(b"=")
            if name == VARIABLE.encode() and value:
                return value.decode("utf-8", "surrogateescape")
        try:
            pid = int(process.joinpath("stat").read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return ""


def _below(above: str, part: str) -> str:
    parts = [one for one in above.split("/") if one]
    return "/".join([*parts[: _DEEPEST - 1], part])


def _after_fork_in_child() -> None:
    global _OWN
    if _OWN is not None:
        _OWN = _below(_OWN, "p" + secrets.token_hex(4))
        os.environ[VARIABLE] = _OWN


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
