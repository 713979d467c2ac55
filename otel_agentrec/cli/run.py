"""``otel-agentrec run``: a program with recording on, or one that goes on where a recording of it stops."""

from __future__ import annotations

import click

from otel_agentrec.cli.command import command as make_command

__all__ = ["command"]


@make_command(
    examples="""
    otel-agentrec run -- python agent.py
    otel-agentrec run --out recordings/today -- python -m my_agent --verbose
    otel-agentrec run --resume agentrec -- python agent.py
    """,
    ignore_unknown_options=True,
    allow_interspersed_args=False,
)
@click.option("--out", metavar="DIR", type=click.Path(), help="The recording to write into.  [default: agentrec]")
@click.option(
    "--resume",
    "recording",
    metavar="REC",
    type=click.Path(),
    help="Go on with the run of this recording that did not come to its end; it is recorded there too.",
)
@click.option("--run", "run_id", metavar="ID", help="With --resume: the run that is meant, where there are several.")
@click.option(
    "--on-divergence",
    type=click.Choice(["stop", "live"]),
    help="With --resume: when the program asks for something else than it did, stop it, or go on for real from there."
    "  [default: stop]",
)
@click.option(
    "--rerun-tools",
    metavar="NAME,...|all",
    help="With --resume: tools that may run again though nobody intercepts them.",
)
@click.option(
    "--rerun-processes",
    is_flag=True,
    help="With --resume: other processes of the program may do again what they did; only one is answered from the recording.",
)
@click.option(
    "--inert",
    metavar="PATH",
    multiple=True,
    help="With --resume: a path of the model's requests that can't change the answer ($.metadata.id). May be repeated.",
)
@click.option(
    "--retries",
    type=click.Choice(["replay", "collapse"]),
    help="With --resume: answer failed attempts as they were, or leave them and their waiting out.  [default: replay]",
)
@click.argument("cmd", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def command(
    ctx: click.Context,
    out: str | None,
    recording: str | None,
    run_id: str | None,
    on_divergence: str | None,
    rerun_tools: str | None,
    rerun_processes: bool,
    inert: tuple[str, ...],
    retries: str | None,
    cmd: tuple[str, ...],
) -> None:
    """Run a Python program with recording on; its code need not change.

    The installed OpenTelemetry instrumentations are started, and every span that describes a step of an agent is written
    to the recording. With --resume the program gets the recorded answers of its models and tools again, up to where the
    recording stops, and goes on from there: nothing that was done is done a second time.

    The exit code is the program's own; 75: an effect was begun and nobody knows whether it happened; 76: the resumed
    program asks for something else than it did; 2: refused.
    """
    from pathlib import Path

    from otel_agentrec.capture.launch import run_command
    from otel_agentrec.errors import UsageError

    if recording is None:
        given = {
            "--run": run_id,
            "--on-divergence": on_divergence,
            "--rerun-tools": rerun_tools,
            "--rerun-processes": rerun_processes,
            "--inert": inert,
            "--retries": retries,
        }
        for name, value in given.items():
            if value:
                raise UsageError(f"{name} is for resuming", "give --resume RECORDING too")
        ctx.exit(run_command(list(cmd), Path(out or "agentrec")))
    if out is not None:
        raise UsageError(
            "--out and --resume can't be used together", "a run that is resumed is recorded where it began"
        )
    from otel_agentrec.nodes.inert import inert_of
    from otel_agentrec.resume.attempt import Attempt
    from otel_agentrec.settings import Settings

    inert_of(inert)
    settings = Settings.load()
    if not settings.enabled:
        raise UsageError(
            "OTEL_AGENTREC_ENABLED=false: nothing would be answered from the recording, and all be done once more",
            "unset it to resume; without --resume the program runs unrecorded",
        )
    allowed = rerun_processes or settings.rerun_processes
    attempt = Attempt(recording, run_id or settings.resume_run, rerun_processes=allowed)
    attempt.take_over()  # what can't be resumed is refused before the program starts
    told = {
        "OTEL_AGENTREC_RESUME": str(Path(recording).absolute()),
        "OTEL_AGENTREC_RESUME_RUN": attempt.root,  # the processes that it starts need to know which is meant
        "OTEL_AGENTREC_ON_DIVERGENCE": on_divergence,
        "OTEL_AGENTREC_RERUN_TOOLS": rerun_tools,
        "OTEL_AGENTREC_RERUN_PROCESSES": "true" if allowed else None,
        "OTEL_AGENTREC_INERT": ",".join(inert),
        "OTEL_AGENTREC_RETRIES": retries,
    }
    ctx.exit(run_command(list(cmd), Path(recording), more={key: value for key, value in told.items() if value}))
