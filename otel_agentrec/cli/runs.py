"""``otel-agentrec runs``: what ran, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option, recording_argument

if TYPE_CHECKING:
    from otel_agentrec.nodes.runs import Run

__all__ = ["command", "newest_first", "short_ids"]

COLUMNS = ("run", "started", "took", "status", "calls", "tokens", "agent", "session", "")
RIGHT = {"took", "calls", "tokens"}
SHRINK = {"agent", "session", ""}
"""Columns that a narrow terminal cuts."""


@make_command(
    examples="""
    otel-agentrec runs agentrec
    otel-agentrec runs agentrec --limit 5
    otel-agentrec runs agentrec --json | jq -r 'select(.status != "ok") | .id'
    """
)
@recording_argument
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Only the newest N. Default: all.")
@json_option
def command(recording: str, limit: int | None, as_json: bool) -> None:
    """List the runs of a recording, newest first, with the unfinished ones marked.

    A run that was resumed is listed once per attempt. Below the list stand the effects whose outcome is unknown, each with
    the command that settles it.
    """
    from otel_agentrec.cli.opened import open_view

    runs = newest_first(open_view(recording).runs)[:limit]
    if as_json:
        from otel_agentrec.cli.terminal import print_json

        for run in runs:
            print_json(run.to_json())
    else:
        _print(runs)
        from otel_agentrec.cli.wording import unknown_effects

        for line in unknown_effects(runs, recording):
            click.echo(line)


def newest_first(runs: list[Run]) -> list[Run]:
    """Runs by their start, the newest first; those without times last."""
    return sorted(runs, key=lambda run: run.started_ms or 0, reverse=True)


def _print(runs: list[Run]) -> None:
    from rich.table import Table
    from rich.text import Text

    from otel_agentrec.cli.terminal import console, plain
    from otel_agentrec.cli.wording import STATUS_STYLE, duration, moment, run_duration, run_notes, token_pair

    rows = [
        (
            Text(plain(name), style="bold"),
            Text(moment(run.started_ms)),
            Text(duration(run_duration(run))),
            Text(run.status, style=STATUS_STYLE.get(run.status, "")),
            Text(str(run.records)),
            Text(token_pair(run.tokens)),
            Text(plain(run.agent or "", 40)),
            Text(plain(run.session or "", 40)),
            Text(run_notes(run), style="yellow"),
        )
        for run, name in zip(runs, short_ids([run.id for run in runs]), strict=True)
    ]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for at, title in enumerate(COLUMNS):
        whole = 0 if title in SHRINK else max([len(title), *(row[at].cell_len for row in rows)])
        table.add_column(
            title, justify="right" if title in RIGHT else "left", no_wrap=True, overflow="ellipsis", min_width=whole
        )
    for row in rows:
        table.add_row(*row)
    console().print(table)


def short_ids(ids: list[str]) -> list[str]:
    """The beginning of each id, long enough to tell it from the others; an id of up to 16 characters stays whole."""
    length = 12
    while length < 64 and len({name[:length] for name in ids}) < len(set(ids)):
        length += 4
    return [name if len(name) <= 16 else name[:length] for name in ids]
