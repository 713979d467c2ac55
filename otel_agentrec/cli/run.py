"""``otel-agentrec run``: a program with recording on."""

from __future__ import annotations

import click

from otel_agentrec.cli.command import command as make_command

__all__ = ["command"]


@make_command(
    examples="""
    otel-agentrec run -- python agent.py
    otel-agentrec run --out recordings/today -- python -m my_agent --verbose
    """,
    ignore_unknown_options=True,
    allow_interspersed_args=False,
)
@click.option(
    "--out",
    default="agentrec",
    show_default=True,
    metavar="DIR",
    type=click.Path(),
    help="The recording to write into.",
)
@click.argument("cmd", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, out: str, cmd: tuple[str, ...]) -> None:
    """Run a Python program with recording on; its code need not change.

    The installed OpenTelemetry instrumentations are started, and every span that describes a step of an agent is written
    to the recording. The exit code is the program's own.
    """
    from pathlib import Path

    from otel_agentrec.capture.launch import run_command

    ctx.exit(run_command(list(cmd), Path(out)))
