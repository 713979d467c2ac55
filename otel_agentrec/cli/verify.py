"""``otel-agentrec verify``: was anything in a recording changed, removed or put in?"""

from __future__ import annotations

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option

__all__ = ["command"]


@make_command(
    examples="""
    otel-agentrec verify agentrec
    otel-agentrec verify agentrec --json | jq .kind
    otel-agentrec verify agentrec/20260131T120000Z-4711-abcdef.jsonl
    otel-agentrec verify agentrec --no-content
    otel-agentrec verify agentrec --against evidence.jsonl
    otel-agentrec verify evidence.jsonl
    """
)
@click.argument("recordings", metavar="REC", nargs=-1, required=True, type=click.Path())
@click.option(
    "--level",
    type=click.Choice(["chained", "structured", "anchored"]),
    help="What must hold. chained: every line is unchanged and in its place. structured (the default): also nothing is "
    "missing at the start, the end or between streams. anchored: also what --against names has a hash that seals every event.",
)
@click.option("--no-content", is_flag=True, help="Check the events alone, not the words in the content files.")
@click.option(
    "--against",
    metavar="FILE",
    multiple=True,
    type=click.Path(),
    help="What another system kept of the recording: a file of the Collector's file exporter, or an answer of Jaeger's API. "
    "Each mark in it must equal the line in REC that it names: stamps (a line's place and hash, on a span), event records (a "
    "whole line, as a log record), checkpoints (how long a stream was). May be given more than once.",
)
@click.option(
    "--shared",
    is_flag=True,
    help="FILE also holds other recordings: what it says of streams that REC does not know is passed over.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    recordings: tuple[str, ...],
    level: str | None,
    no_content: bool,
    against: tuple[str, ...],
    shared: bool,
    as_json: bool,
) -> None:
    """Check that nothing in a recording was changed, removed or put in.

    REC is a recording directory or one stream of it, a .jsonl; or the file that a Collector wrote of event records (`export
    --events`, OTEL_AGENTREC_EVENTS=otlp; more than one file after a rotation), in which the chain is checked by itself.

    Exit code: 0 it holds · 1 it was changed · 2 it can't be read · 3 what is there holds, but the end or the level is not
    proven (the program was killed or still runs), or FILE says nothing of it · 4 it contradicts what is kept elsewhere.
    """
    from otel_agentrec.cli.terminal import console, print_json, reader_may_leave, reading_bar
    from otel_agentrec.cli.verdict import verdict
    from otel_agentrec.errors import UsageError
    from otel_agentrec.export.kept.verify import verify

    if shared and not against:
        raise UsageError("--shared says what --against may hold", "otel-agentrec verify REC --against FILE --shared")
    given = recordings[0] if len(recordings) == 1 else recordings
    with reading_bar() as advance:
        report = verify(given, level=level, content=not no_content, against=against, shared=shared, progress=advance)
    with reader_may_leave():
        if as_json:
            print_json(report.to_json())
        else:
            out = console()
            for line in verdict(report):
                out.print(line)
    ctx.exit(report.exit_code)
