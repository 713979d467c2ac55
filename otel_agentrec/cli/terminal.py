"""What goes to the terminal, a pipe or a file: safe text, JSON lines, consoles, and streams that are closed or narrow.

Words from a recording were said by models and tools: they may hold escape sequences and are printed only through
:func:`plain`.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "close_quietly",
    "console",
    "make_streams_safe",
    "plain",
    "print_error",
    "print_json",
    "reader_may_leave",
    "reading_bar",
]

Json = Any

PIPE_WIDTH = 400
"""Columns when the output is no terminal: nothing is cut for a width that nobody has."""

LOOKALIKES = {"→": "->", "…": "...", "·": "-", "–": "-", "—": "-", "’": "'", "“": '"', "”": '"'}

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]")
"""Control characters, line separators, marks that turn the direction of text, lone surrogates."""


def plain(text: str, limit: int | None = None) -> str:
    """One line of ``text``: white space joined, what could steer a terminal shown as ``\\x1b`` instead of done.

    Args:
        limit: longest result in characters; a cut one ends with ``…``.
    """
    if limit is not None and len(text) > 8 * limit:
        text = text[: 8 * limit] + "…"
    text = UNSAFE.sub(_escaped, " ".join(text.split()))
    if limit is not None and len(text) > limit:
        return text[: max(0, limit - 1)] + "…"
    return text


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def print_json(value: Json) -> None:
    """Print one JSON value on one line of stdout.

    Integers stay exact; what JSON can't say (NaN, bytes) takes the form it has in a recording.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        data = text.encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        from otel_agentrec.journal.canonical import canonical, normalise

        data = canonical(normalise(value))
    # the bytes of JSON are UTF-8, whatever the locale says
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        sys.stdout.write(data.decode() + "\n")
    else:
        sys.stdout.flush()
        binary.write(data + b"\n")


def print_error(what: str, hint: str = "") -> None:
    """Two lines on stderr: what happened, how to mend it. Nothing happens when stderr is closed."""
    try:
        print(f"otel-agentrec: {plain(what)}", file=sys.stderr)
        if hint:
            print(f"  {plain(hint)}", file=sys.stderr)
    except OSError:
        pass


def console(*, stderr: bool = False) -> Console:
    """A rich console. Colours only on a terminal and without NO_COLOR; as wide as the terminal, or :data:`PIPE_WIDTH`."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            # rich would end the program with code 1 here; what it means is for the command to say
            raise BrokenPipeError

    file = sys.stderr if stderr else sys.stdout
    on_terminal = file.isatty()
    width = None if on_terminal or os.environ.get("COLUMNS", "").isdigit() else PIPE_WIDTH
    return Plain(file=file, highlight=False, markup=False, emoji=False, width=width, soft_wrap=False)


@contextmanager
def reading_bar() -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr while files are read, told (bytes done, bytes in all); none when stderr is no terminal."""
    bar_console = console(stderr=True)
    if not bar_console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=bar_console, transient=True) as progress:
        task = progress.add_task("reading", total=None)

        def advance(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield advance


def _readable(error: UnicodeError) -> tuple[str, int]:
    """Encoding errors: our own signs become their ASCII look-alikes, all else a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(LOOKALIKES.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def make_streams_safe() -> None:
    """Printing never fails for the characters of a locale, nor because the program was started without streams."""
    codecs.register_error("otel-agentrec", _readable)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - it lives as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="otel-agentrec")


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """For a command whose exit code is the answer: it stands even when nobody reads the words."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        close_quietly()


def close_quietly() -> None:
    """Flush stdout; when nobody reads it, keep the interpreter from saying so at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            try:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
            except (OSError, ValueError):
                pass
