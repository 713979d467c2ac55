"""``otel-agentrec show``: a run as a timeline."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option, recording_argument

if TYPE_CHECKING:
    from rich.console import Console

    from otel_agentrec.nodes.fold import View
    from otel_agentrec.nodes.runs import Run

__all__ = ["choose", "command", "print_run"]


@make_command(
    examples="""
    otel-agentrec show agentrec
    otel-agentrec show agentrec 4bf92f35
    otel-agentrec show agentrec --follow
    otel-agentrec show agentrec --json
    """
)
@recording_argument
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--follow", is_flag=True, help="Print each call as soon as it has ended, while the program still runs.")
@json_option
def command(recording: str, run: str | None, follow: bool, as_json: bool) -> None:
    """Show a run as a timeline: turns, their steps, and the model and tool calls of each.

    RUN is a run's id or the beginning of it, as `runs` lists them. Without RUN it is the newest one.
    With --json the same as one object; what was said is in `nodes --json`.

    With --follow RUN is printed call by call until it has ended; without RUN the newest one and all that come after it,
    until Ctrl-C. With --json one call per line then.
    """
    if follow:
        from otel_agentrec.cli.following import follow as follow_runs

        follow_runs(recording, choose(recording, run)[1].id if run is not None else None, as_json=as_json)
        return
    from otel_agentrec.cli.terminal import console, print_json
    from otel_agentrec.cli.timeline import turns_json

    view, chosen, others = choose(recording, run)
    if as_json:
        print_json({**chosen.to_json(), "turns": turns_json(view.records(chosen.id))})
        return
    print_run(console(), view, chosen)
    from otel_agentrec.cli.wording import unknown_effects

    for line in unknown_effects([chosen], recording):
        click.echo(line)
    if others:
        from otel_agentrec.cli.wording import count

        more = f"the newest run; {count(others, 'other')}: otel-agentrec runs {shlex.quote(recording)}"
        console(stderr=True).print(more, style="dim", soft_wrap=True)


def choose(recording: str | Path, run: str | None) -> tuple[View, Run, int]:
    """The run that is meant, and the number of runs that were passed over.

    Args:
        run: an id, or the beginning of one; None means the newest.

    Raises:
        UsageError: there is no such run, or several begin like that.
        RecordingNotFound, RecordingUnreadable: there is no recording to look into.
    """
    from otel_agentrec.cli.opened import open_view
    from otel_agentrec.cli.runs import newest_first
    from otel_agentrec.errors import UsageError

    view = open_view(recording)
    runs = newest_first(view.runs)
    see = f"otel-agentrec runs {shlex.quote(str(recording))} lists them"
    if not runs:
        raise UsageError(f"{recording} holds no run yet", "no agent, model or tool call was recorded")
    if run is None:
        return view, runs[0], len(runs) - 1
    found = [r for r in runs if r.id == run] or [r for r in runs if r.id.startswith(run)]
    if not found:
        raise UsageError(f"there is no run {run!r} in {recording}", see)
    if len(found) > 1:
        raise UsageError(f"{len(found)} runs begin with {run!r}", see)
    return view, found[0], 0


def print_run(out: Console, view: View, run: Run) -> None:
    """Print the timeline of a run, and the calls that nobody answered."""
    from otel_agentrec.cli.terminal import plain
    from otel_agentrec.cli.timeline import tree

    out.print(tree(run, view.records(run.id)))
    for call in run.unpaired:
        name = plain(str(call.get("toolName") or "?"), 40)
        out.print(f"{name} was asked for and has no result: its outcome is unknown", style="yellow")
