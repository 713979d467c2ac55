"""The words of a command: what launches the program, what they set in its environment, and what is left of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["CommandLine", "unwrapped"]

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"python[0-9.]*")


class CommandLine(NamedTuple):
    """``launcher``: ``run``, ``opentelemetry-instrument`` or empty; ``environ``: what the program is started with."""

    words: list[str]
    launcher: str
    environ: dict[str, str]


def unwrapped(words: list[str], environ: Mapping[str, str]) -> CommandLine:
    """The program below ``env``, ``otel-agentrec run`` and ``opentelemetry-instrument``, in any order."""
    line = CommandLine(words, "", dict(environ))
    while True:
        below = _without_one(line)
        if below is None:
            return line
        line = below


def _without_one(line: CommandLine) -> CommandLine | None:
    words, launcher, environ = line
    name = Path(words[0]).name if words else ""
    if name == "env" and words[1:2] and (_ASSIGNMENT.match(words[1]) or not words[1].startswith("-")):
        rest = words[1:]
        while rest and _ASSIGNMENT.match(rest[0]):
            key, _, environ[key] = rest[0].partition("=")
            rest = rest[1:]
        return CommandLine(rest, launcher, environ)
    if name == "otel-agentrec" and words[1:2] == ["run"]:
        return CommandLine(_run(words[2:], environ), "run", environ)
    if _PYTHON.fullmatch(name) and words[1:4] == ["-m", "otel_agentrec", "run"]:
        return CommandLine(_run(words[4:], environ), "run", environ)
    if name == "opentelemetry-instrument":
        return CommandLine(_instrument(words[1:], environ), launcher or name, environ)
    return None


def _run(words: list[str], environ: dict[str, str]) -> list[str]:
    environ["OTEL_AGENTREC_PATH"] = "agentrec"
    while words and words[0].startswith("--"):
        option, equals, value = words[0].partition("=")
        if option == "--":
            return words[1:]
        if option == "--out":
            environ["OTEL_AGENTREC_PATH"] = value if equals else "".join(words[1:2])
            words = words if equals else words[1:]
        words = words[1:]
    return words


def _instrument(words: list[str], environ: dict[str, str]) -> list[str]:
    """Its options are variables without ``OTEL_`` or ``OTEL_PYTHON_``; each takes a value."""
    while words and words[0].startswith("--"):
        option, equals, value = words[0].partition("=")
        name = option[2:].upper()
        if not equals:
            value = "".join(words[1:2])
            words = words[1:]
        environ[f"OTEL_{name}"] = value
        if not name.startswith("AGENTREC_"):
            environ.setdefault(f"OTEL_PYTHON_{name}", value)
        words = words[1:]
    return words
