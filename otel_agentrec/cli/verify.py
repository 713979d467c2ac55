"""``otel-agentrec verify``: was anything in a recording changed, removed or put in?"""

from __future__ import annotations

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option, recording_argument

__all__ = ["command"]


@make_command(
    examples="""
    otel-agentrec verify agentrec
    otel-agentrec verify agentrec --json | jq .kind
    otel-agentrec verify agentrec/20260131T120000Z-4711-abcdef.jsonl
    otel-agentrec verify agentrec --no-content
    """
)
@recording_argument
@click.option(
    "--level",
    type=click.Choice(["chained", "structured"]),
    help="What must hold. chained: every line is unchanged and in its place. structured (the default): also nothing is "
    "missing at the start, the end or between streams.",
)
@click.option("--no-content", is_flag=True, help="Check the events alone, not the words in the content files.")
@json_option
@click.pass_context
def command(ctx: click.Context, recording: str, level: str | None, no_content: bool, as_json: bool) -> None:
    """Check that nothing in a recording was changed, removed or put in.

    Exit code: 0 it holds · 1 it was changed · 2 it can't be read · 3 what is there holds, but the end or the level is not
    proven (the program was killed or still runs) · 4 it contradicts what is kept elsewhere.
    """
    from otel_agentrec.audit.verify import verify
    from otel_agentrec.cli.terminal import console, print_json, reader_may_leave
    from otel_agentrec.cli.verdict import verdict

    report = verify(recording, level=level, content=not no_content)
    with reader_may_leave():
        if as_json:
            print_json(report.to_json())
        else:
            out = console()
            for line in verdict(report):
                out.print(line)
    ctx.exit(report.exit_code)
