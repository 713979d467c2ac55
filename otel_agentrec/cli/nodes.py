"""``otel-agentrec nodes``: the model and tool calls of a recording, in cause order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from otel_agentrec.cli.command import Since, json_option, recording_argument
from otel_agentrec.cli.command import command as make_command

if TYPE_CHECKING:
    from rich.text import Text

    from otel_agentrec.records import NodeIoRecord

__all__ = ["command"]


@make_command(
    examples="""
    otel-agentrec nodes agentrec
    otel-agentrec nodes agentrec --type tool --status error
    otel-agentrec nodes agentrec --since 2h --grep 'refund|invoice'
    otel-agentrec nodes agentrec --model 'gpt-5*' --json | jq .outputText
    """
)
@recording_argument
@click.option("--run", metavar="ID", help="Only this run; the beginning of its id is enough.")
@click.option("--session", metavar="ID", help="Only this session; * and ? match any characters.")
@click.option("--type", "node_type", type=click.Choice(["MODEL", "TOOL"], case_sensitive=False), help="Only these.")
@click.option("--model", metavar="NAME", help="Only calls of this model; * and ? match any characters.")
@click.option("--tool", metavar="NAME", help="Only calls of this tool; * and ? match any characters.")
@click.option("--status", type=click.Choice(["ok", "error", "interrupted", "partial"]), help="Only with this status.")
@click.option("--since", type=Since(), metavar="TIME", help="Begun since then: 10m, 2h, 3d, or 2026-01-31T12:00.")
@click.option("--grep", metavar="REGEX", help="Only where input or output has this text (case is ignored).")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Stop after N records. Default: all.")
@json_option
def command(
    recording: str,
    run: str | None,
    session: str | None,
    node_type: str | None,
    model: str | None,
    tool: str | None,
    status: str | None,
    since: int | None,
    grep: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print the model and tool calls of a recording, each after what caused it.

    With --json one record per line, everything resolved: inputs, outputs, tokens, ids, and where it stands in the journal.
    """
    from otel_agentrec.cli.filters import Filter, pattern
    from otel_agentrec.cli.opened import open_view

    wanted = Filter(run, session, node_type and node_type.upper(), model, tool, status, since, pattern(grep))
    found = islice((record for record in open_view(recording).records() if wanted.fits(record)), limit)
    if as_json:
        from otel_agentrec.cli.terminal import print_json

        for record in found:
            print_json(record.to_json())
    else:
        _print(found)


def _print(records: Iterable[NodeIoRecord]) -> None:
    from otel_agentrec.cli.terminal import console

    out = console()
    for line in _lines(records, max(20, min(200, out.width))):
        out.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def _lines(records: Iterable[NodeIoRecord], room: int) -> Iterator[Text]:
    from rich.text import Text

    from otel_agentrec.cli.terminal import plain
    from otel_agentrec.cli.wording import STATUS_STYLE, asked, clock, count, duration, on_wire, said, tokens

    for record in records:
        name = record.tool_name if record.node_type.value == "TOOL" else record.model_id
        words = " → ".join(filter(None, (asked(record, room // 2), said(record, room))))
        yield Text.assemble(
            (clock(record.started_at_epoch_ms), "dim"),
            f"  {record.node_type.value:5}  ",
            (f"{plain(name or '?', 24):24}", "bold"),
            "  ",
            (f"{record.status:11}", STATUS_STYLE.get(record.status, "")),
            f"  {duration(record.duration_ms):>8}  ",
            (f"{tokens(record):18}  ", "dim"),
            (f"{count(record.retry_count, 'retry', 'retries')}  " if record.retry_count else "", "yellow"),
            (f"{told}  " if (told := on_wire(record)) else "", "dim"),
            words,
        )
