"""``otel-agentrec run``: start a Python program so that it is recorded, without touching it.

The program takes the place of this process (execve), so its exit code, its signals and its terminal are its own. It is
recorded because ``injected/sitecustomize.py`` stands first on its PYTHONPATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from otel_agentrec.capture.content import ask_for_content
from otel_agentrec.errors import UsageError
from otel_agentrec.journal import process
from otel_agentrec.redaction.redactor import check_setting
from otel_agentrec.settings import Settings

__all__ = ["Started", "is_python_source", "program_of", "recorded_command", "run_command", "started_by"]

INJECTED = Path(__file__).parent / "injected"
HOME = Path(__file__).parent.parent.parent
"""The directory that this package is imported from."""

_PYTHON = re.compile(r"(python|pypy)[0-9.]*[a-z]?(-[\w.-]+)?(\.exe)?", re.IGNORECASE)
_LAUNCHERS = frozenset(
    [
        "bash",
        "conda",
        "dash",
        "doas",
        "env",
        "fish",
        "gosu",
        "hatch",
        "ksh",
        "make",
        "mamba",
        "micromamba",
        "nice",
        "nohup",
        "nox",
        "pdm",
        "pipenv",
        "pixi",
        "poetry",
        "rye",
        "setsid",
        "sh",
        "stdbuf",
        "sudo",
        "tini",
        "time",
        "timeout",
        "tox",
        "torchrun",
        "uv",
        "uvx",
        "watchexec",
        "xargs",
        "xvfb-run",
        "zsh",
    ]
)
"""Commands that start another one; what is Python below them is recorded."""
_SHELL_TRICK = re.compile(rb"'''exec'\s+(?:'([^']+)'|\"([^\"]+)\"|(\S+))")
"""How installers write a script whose interpreter has a path too long, or with a space, for a ``#!`` line."""


def run_command(
    cmd: list[str], out: Path, env: Mapping[str, str] | None = None, more: Mapping[str, str] | None = None
) -> int:
    """Become ``cmd`` with recording on. Returns only where a process can't be replaced: then with its exit code.

    Args:
        cmd: the program and its arguments: ``python app.py``, ``python -m mod``, a script, a console script, ``app.py``.
        out: the recording directory.
        env: the environment; default: ours.
        more: further variables for the program.

    Raises:
        ConfigurationError: a setting has a value that can't be used; the program was not started.
        UsageError: there is no such program, it is no Python program, or ``out`` is something else than a directory.
    """
    argv, environ = recorded_command(cmd, out, {**(os.environ if env is None else env), **(more or {})})
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
    if os.name == "nt":  # execve would return to the shell at once
        environ.pop("OTEL_AGENTREC__PID", None)
        return subprocess.call(argv, env=environ)
    try:
        os.execve(argv[0], [cmd[0] if argv[0] != sys.executable else argv[0], *argv[1:]], environ)
    except OSError as error:
        raise UsageError(f"{argv[0]} can't be started: {error.strerror}") from None


def recorded_command(cmd: list[str], out: Path, env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """(arguments, environment) of a program that will be recorded; the first argument is an existing file. Raises as
    :func:`run_command`."""
    environ = dict(env)
    argv = program_of(cmd, environ)
    settings = Settings.load(environ, path=str(out))
    if settings.enabled:
        if out.exists() and not out.is_dir():
            raise UsageError(f"{out} is no directory", "give a directory for the recording (--out)")
        if isinstance(settings.redact, str):
            check_setting(settings.redact)  # the program would run unrecorded
        environ["OTEL_AGENTREC_PATH"] = str(out.absolute())
        environ["OTEL_AGENTREC__PID"] = str(os.getpid())
        environ[process.VARIABLE] = process.of_command(environ)
        source = [] if HOME.name in ("site-packages", "dist-packages") else [str(HOME)]  # we run from a checkout
        places = [str(INJECTED), environ.get("PYTHONPATH", ""), *source]
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
        if settings.content != "off":
            ask_for_content(environ)
    return argv, environ


def program_of(cmd: list[str], environ: Mapping[str, str]) -> list[str]:
    """The full argument list for a command, its first element an existing file.

    Raises:
        UsageError: see :func:`run_command`.
    """
    if not cmd:
        raise UsageError("no command to run", "otel-agentrec run -- python app.py")
    found = shutil.which(cmd[0], path=environ.get("PATH"))
    if found is None:
        if is_python_source(Path(cmd[0])):
            return [sys.executable, *cmd]
        raise UsageError(f"{cmd[0]}: no such program", "give it as in the shell: otel-agentrec run -- python app.py")
    started = started_by(Path(found), cmd[1:])
    if started.kind is None:
        if is_python_source(Path(found)):
            return [sys.executable, found, *cmd[1:]]
        raise UsageError(
            f"{cmd[0]} is not a Python program",
            "start otel-agentrec serve --out DIR, and point the OTLP exporter of the program at it (docs/serve.md)",
        )
    deaf = _deaf(started.options) if started.kind == "python" else ""
    if deaf:
        raise UsageError(
            f"python -{deaf} does not look at PYTHONPATH, so recording can't be switched on from outside",
            f"leave out -{deaf}, or call otel_agentrec.configure('./agentrec') in the program",
        )
    return [found, *cmd[1:]]


class Started(NamedTuple):
    """What a program is started by: ``kind`` is ``python``, ``launcher`` or None; ``options`` follow its name;
    ``interpreter``: its path, or its name on the PATH, where it is Python."""

    kind: str | None
    options: list[str]
    interpreter: str | None = None


def started_by(program: Path, args: list[str]) -> Started:
    """Who runs a program, as its name and its first line tell."""
    name = program.name
    if _PYTHON.fullmatch(name):
        return Started("python", args, str(program))
    if name in _LAUNCHERS:
        return Started("launcher", args)
    try:
        with program.open("rb") as f:
            head = f.read(1024)
    except OSError:
        return Started(None, args)
    if not head.startswith(b"#!"):
        beside = program.parent / "python.exe"
        is_console_script = name.lower().endswith(".exe") and beside.exists()
        return Started("python", [], str(beside)) if is_console_script else Started(None, args)
    words = head[2:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = words[1:]
        while words and (words[0].startswith("-") or "=" in words[0]):
            words = words[1:]
    if not words:
        return Started(None, args)
    interpreter = Path(words[0]).name
    if _PYTHON.fullmatch(interpreter):
        return Started("python", words[1:], words[0])
    trick = _SHELL_TRICK.search(head)
    if trick:
        target = next(filter(None, trick.groups())).decode("utf-8", "replace")
        return Started("python", [], target) if _PYTHON.fullmatch(Path(target).name) else Started(None, args)
    return Started("launcher", words[1:]) if interpreter in _LAUNCHERS else Started(None, args)


def is_python_source(path: Path) -> bool:
    """Whether Python can run it without being named: a file, or a directory with a ``__main__``."""
    return (path.suffix in (".py", ".pyw", ".pyz") and path.is_file()) or (path / "__main__.py").is_file()


def _deaf(options: list[str]) -> str:
    """The interpreter option that makes it ignore PYTHONPATH or sitecustomize: ``I``, ``E``, ``S`` or none."""
    skip = False
    for option in options:
        if skip:
            skip = False
            continue
        if not option.startswith("-") or option in ("-", "--"):
            return ""
        if option.startswith("--"):
            skip = option == "--check-hash-based-pycs"
            continue
        for i, letter in enumerate(option[1:], start=1):
            if letter in "IES":
                return letter
            if letter in "mc":
                return ""
            if letter in "WX":
                skip = i == len(option) - 1
                break
    return ""
