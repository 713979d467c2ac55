"""``otel-agentrec replay``: a program once more, answered from a recording of it."""

from __future__ import annotations

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option, recording_argument

__all__ = ["command"]

INTERRUPTED = 130


@make_command(
    examples="""
    otel-agentrec replay agentrec -- python agent.py
    otel-agentrec replay agentrec --inert '$.metadata.request_id' -- python agent.py
    git bisect run otel-agentrec replay agentrec -- python agent.py
    """
)
@recording_argument
@click.option("--run", "runs", metavar="ID", multiple=True, help="The run that is meant; may be repeated.")
@click.option(
    "--allow-host", "hosts", metavar="HOST[:PORT]", multiple=True, help="A host that may be reached all the same."
)
@click.option(
    "--rerun-tools",
    metavar="NAME,...|all",
    default="",
    help="Tools that may run though no outcome of them is recorded.",
)
@click.option("--inert", metavar="PATH", multiple=True, help="A path of requests that can't change an answer.")
@click.option(
    "--retries",
    type=click.Choice(["replay", "collapse"]),
    default="replay",
    help="Answer failed attempts as they were, or leave them and their waiting out.  [default: replay]",
)
@click.option(
    "--as-http-error", is_flag=True, help="Answer a model call that diverges with status 400, and go on to the end."
)
@click.option("--out", metavar="DIR", type=click.Path(), help="Record the replay here, to compare it with diff.")
@json_option
@click.argument("cmd", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def command(
    ctx: click.Context,
    recording: str,
    runs: tuple[str, ...],
    hosts: tuple[str, ...],
    rerun_tools: str,
    inert: tuple[str, ...],
    retries: str,
    as_http_error: bool,
    out: str | None,
    as_json: bool,
    cmd: tuple[str, ...],
) -> None:
    """Run a program once more: its models and tools answer from the recording, and it reaches no network.

    Its code need not change. The recording is verified first, and nothing is written into it. The first request that is not
    the recorded one stops the run: step, JSON path, recorded and new value are told. With --json what the program prints goes
    to stderr.

    Exit codes, as git bisect run takes them: 0 the same; 1 it diverged, or failed though all answers were the same; 125 it
    can't be replayed.
    """
    from pathlib import Path

    from otel_agentrec.cli.terminal import print_json
    from otel_agentrec.errors import AgentRecError, CannotReplay
    from otel_agentrec.redaction import Redactor
    from otel_agentrec.replay.order import Order
    from otel_agentrec.replay.running import prepared, replay_command

    order = Order(
        recording,
        "",
        runs,
        allow_hosts=hosts,
        rerun_tools=tuple(name.strip() for name in rerun_tools.split(",") if name.strip()),
        inert=inert,
        retries=retries,
        as_http_error=as_http_error,
    )
    try:
        order, run = prepared(order)
        _say_what_ran_unseen(run.unseen, order.rerun_tools)
        report = replay_command(list(cmd), order, Path(out) if out else None, stdout_to_stderr=as_json)
    except AgentRecError as error:
        error.exit_code = CannotReplay.exit_code
        raise
    if as_json:
        print_json(report.to_json())
    else:
        redact = Redactor.from_setting().text
        click.echo("\n".join(f"otel-agentrec: {line}" for line in report.lines(redact)), err=True)
    ctx.exit(INTERRUPTED if report.program_exit == -2 else report.exit_code)


def _say_what_ran_unseen(names: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    unseen = [name for name in names if name not in allowed and "all" not in allowed]
    if unseen:
        click.echo(
            f"otel-agentrec: nobody intercepted these tools when the recording was made: {', '.join(unseen)}\n"
            f"  a model's answer that asks for one stops the replay, unless it is intercepted now; "
            f"or allow it: --rerun-tools {','.join(unseen)}",
            err=True,
        )
