"""``otel-agentrec why-miss``: why a request would not be answered from a recording."""

from __future__ import annotations

from typing import Any

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option, recording_argument

__all__ = ["command"]

Json = Any


@make_command(
    examples="""
    otel-agentrec why-miss agentrec request.json
    otel-agentrec why-miss agentrec request.json --inert '$.metadata.trace_id'
    echo '{"name": "pay", "arguments": {"eur": 5}}' | otel-agentrec why-miss agentrec -
    otel-agentrec nodes agentrec --json | tail -1 | otel-agentrec why-miss other-recording - --json
    """
)
@recording_argument
@click.argument("request", metavar="REQUEST.json", type=click.Path())
@click.option("--run", metavar="ID", help="Only calls of this run; the beginning of its id is enough.")
@click.option(
    "--inert", metavar="PATH", multiple=True, help="A path that shall not count, such as $.user. May be repeated."
)
@json_option
def command(recording: str, request: str, run: str | None, inert: tuple[str, ...], as_json: bool) -> None:
    """Say whether a request would be answered from a recording, and if not, why.

    REQUEST.json (or - for standard input) is a tool call {"name", "arguments"}, the body of a model request as it is sent,
    {"method", "path", "api", "body"}, an AgentPrompt, or a line of `nodes --json`. The nearest recorded request is named,
    the paths where they differ, and what --inert would make it the same.

    Exit code: 0 it would be answered, 1 it would not.
    """
    from otel_agentrec.cli.terminal import plain, print_json
    from otel_agentrec.journal.reader import Recording
    from otel_agentrec.resume.whyrecorded import why_miss_in

    report = why_miss_in(Recording(recording), _read(request), run=run, inert=inert)
    if as_json:
        print_json(report.to_json())
    else:
        for line in report.lines():
            click.echo(" " * (len(line) - len(line.lstrip())) + plain(line))
    if not report.hit:
        raise click.exceptions.Exit(1)


def _read(path: str) -> Json:
    """The JSON of a file, or of standard input; large integers stay exact."""
    from otel_agentrec.errors import UsageError
    from otel_agentrec.nodes.exactjson import read_text

    try:
        with click.open_file(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise UsageError(
            f"{path} can't be read: {error.strerror}", "give a JSON file, or - for standard input"
        ) from None
    value = read_text(raw)
    if isinstance(value, bytes):
        raise UsageError(f"{path} is no JSON", "give one JSON object")
    return value
