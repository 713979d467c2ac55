"""What the commands share: their frame (-h, examples, --debug), the recording argument, --json and --since."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

__all__ = ["HELP_NAMES", "Since", "command", "debug_option", "json_option", "recording_argument", "write_examples"]

HELP_NAMES: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    MillisecondsType = click.ParamType[int]
else:
    MillisecondsType = click.ParamType  # generic only from click 8.4 on


def _remember_debug(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and isinstance(ctx.find_root().obj, dict):
        ctx.find_root().obj["debug"] = True


debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_remember_debug,
    help="Print the traceback of an error.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Machine output on stdout, stable keys.")

recording_argument = click.argument("recording", metavar="REC", type=click.Path())
"""A recording directory, or one ``.jsonl`` of it."""


class Command(click.Command):
    """A command whose epilog is a section of command lines, printed as they are."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples("Examples", self.epilog or "", formatter)


def write_examples(title: str, lines: str, formatter: click.HelpFormatter) -> None:
    """A section of the help with one command line per line; nothing is wrapped, so that it can be copied."""
    formatter.write(f"\n{title}:\n")
    for line in lines.strip().splitlines():
        formatter.write(f"  {line.strip()}\n")


def command(*, examples: str, **settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Decorator: a command with ``-h``, ``--debug`` and examples at the end of its help.

    Args:
        examples: one command line per line.
        settings: more of click's context settings.
    """

    def made(function: Callable[..., Any]) -> click.Command:
        made = click.command(cls=Command, context_settings={**HELP_NAMES, **settings}, epilog=examples)(function)
        debug_option(made)
        return made

    return made


class Since(MillisecondsType):
    """A moment: ISO 8601 (local time unless it says otherwise), or a time span back from now: ``10m``, ``2h``, ``3d``.

    Converts to milliseconds since the epoch.
    """

    name = "time"
    units: ClassVar[dict[str, str]] = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip()
        span = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)([smhdw])", text)
        try:
            if span:
                then = datetime.now().astimezone() - timedelta(**{self.units[span[2]]: float(span[1])})
            else:
                # Python 3.10 does not read the Z of ISO 8601
                then = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text)).astimezone()
            return int(then.timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            self.fail(f"{text!r} is no time: give 10m, 2h, 3d or 2026-01-31T12:00", param, ctx)
