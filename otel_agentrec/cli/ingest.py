"""``otel-agentrec ingest``: files of the OpenTelemetry Collector, of ai4j, of ToyAgent and others into a recording."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option

if TYPE_CHECKING:
    from otel_agentrec.capture.ingest import IngestReport

__all__ = ["command"]

TOLD = 10
"""So many of the things that could not be read are named on stderr; --json names more."""


@make_command(
    examples="""
    otel-agentrec ingest traces.jsonl --out agentrec
    otel-agentrec ingest traces.jsonl logs.jsonl --out agentrec --json
    otel-agentrec ingest ai4j-io.jsonl step22-events.jsonl --out agentrec
    """
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--out", required=True, metavar="DIR", type=click.Path(), help="The recording to write into.")
@json_option
def command(files: tuple[str, ...], out: str, as_json: bool) -> None:
    """Turn files into a recording: OTLP (JSON lines or protobuf; traces and logs), node records of ai4j (one JSON object a
    line), event logs of sessions as ToyAgent writes them (plain, or sealed to a hash chain). What a file is shows in it.

    Give the files of traces and logs that belong together in one go. Lines that can't be read are left out and counted, in
    the recording and on stderr.
    """
    from otel_agentrec.capture.ingest import ingest
    from otel_agentrec.cli.terminal import print_json, reader_may_leave, reading_bar

    with reading_bar() as advance:
        report = ingest(files, out, progress=advance)
    _tell_losses(report)
    with reader_may_leave():
        if as_json:
            print_json(report.to_json())
        else:
            _print(report, out)


def _tell_losses(report: IngestReport) -> None:
    import sys

    from otel_agentrec.cli.terminal import plain
    from otel_agentrec.cli.wording import count

    lines = [plain(note) for note in report.notes]
    if report.quarantined_count:
        lines.append(f"{count(report.quarantined_count, 'thing')} could not be read and {_is(report)} left out:")
        lines += [f"  {plain(f'{fault.file}:{fault.line}: {fault.reason}')}" for fault in report.quarantined[:TOLD]]
        if report.quarantined_count > TOLD:
            lines.append(f"  and {report.quarantined_count - TOLD} more")
    for line in lines:
        print(line, file=sys.stderr)


def _is(report: IngestReport) -> str:
    return "is" if report.quarantined_count == 1 else "are"


def _print(report: IngestReport, out: str) -> None:
    from rich.text import Text

    from otel_agentrec.cli.terminal import console
    from otel_agentrec.cli.wording import count

    say = console()
    found = []
    if report.stream:
        found += [
            count(report.agents, "agent step"),
            count(report.models, "model call"),
            count(report.tools, "tool call"),
            count(report.logs_recorded, "log record"),
        ]
    if report.sessions:
        found.append(f"{count(report.session_events, 'event')} of {count(len(report.sessions), 'session')}")
    other = f"; {count(report.foreign, 'other span')} left out" if report.foreign else ""
    say.print(f"{', '.join(found)} from {count(report.files, 'file')}{other}")
    for chain in report.chains:
        if chain["valid"]:
            say.print(Text(f"{chain['file']}: the chain of {count(chain['links'], 'event')} holds"), soft_wrap=True)
    then = "show" if report.stream else "verify"
    say.print(Text(f"otel-agentrec {then} {shlex.quote(out)}", style="cyan"), soft_wrap=True)
