"""``otel-agentrec demo``: see it work, without a key and without a network."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.terminal import UNSAFE, plain
from otel_agentrec.errors import AgentRecError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]


@make_command(
    examples="""
    otel-agentrec demo
    otel-agentrec demo --out /tmp/my-first-recording
    otel-agentrec demo --answer "Stay at home." --flip 200
    """
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(),
    help="Where to record; must be new or empty. Default: agentrec-demo in the current directory, or the first free one "
    "of agentrec-demo-2, agentrec-demo-3 ...",
)
@click.option("--ask", metavar="TEXT", help="What the agent is asked.")
@click.option("--answer", metavar="TEXT", help="What the scripted model answers in the end.")
@click.option(
    "--flip",
    type=click.IntRange(min=0),
    metavar="N",
    help="Which byte of the recorded words to change, counted from 0. Default: one in the answer.",
)
def command(out: str | None, ask: str | None, answer: str | None, flip: int | None) -> None:
    """See it work: a real agent is recorded, looked at, verified, and caught when one byte is changed.

    The agent uses the openai SDK with OpenTelemetry's instrumentation; the model is a script on this machine. No key is
    needed and nothing leaves the machine.
    """
    from otel_agentrec.cli.terminal import console
    from otel_agentrec.demo import stage

    stage.require_extra()
    recording = stage.fresh_directory(out)
    say = console()
    say.print("A flight recorder for AI agents. The agent is real, the model is a script: no key, no network.")
    _record(say, recording, ask or stage.QUESTION, answer or stage.ANSWER)
    _look(say, recording)
    before = _verify(say, recording)
    after = _tamper(say, recording, answer or stage.ANSWER, flip)
    _what_next(say, recording)
    if (before, after) != (0, 1):
        raise AgentRecError(
            f"the demo did not go as it should: verify gave {before}, then {after}, and not 0, then 1",
            "please report it, with the output above",
        )


def _heading(say: Console, number: int, words: str, *command: str) -> None:
    from rich.text import Text

    say.print()
    say.print(Text(f"{number}  {words}", style="bold"))
    if command:
        say.print(Text(f"   $ {shlex.join(('otel-agentrec', *command))}", style="cyan"), soft_wrap=True)
        say.print()


def _record(say: Console, recording: Path, question: str, answer: str) -> None:
    from otel_agentrec.demo import stage

    _heading(
        say, 1, "An agent works, and is recorded", "run", "--out", str(recording), "--", *stage.agent_command(question)
    )
    say.print(f"   you    {plain(question)}", soft_wrap=True)
    say.print("   agent  ", end="")

    ended = False

    def hear(piece: str) -> None:
        nonlocal ended
        for at, line in enumerate(piece.split("\n")):
            ended = ended or at > 0
            if line:
                # a line end is printed once something follows
                say.file.write(("\n          " if ended else "") + UNSAFE.sub("", line))
                ended = False
        say.file.flush()

    stage.record(recording, answer, question, hear)
    say.print()


def _look(say: Console, recording: Path) -> None:
    from otel_agentrec.cli.show import choose, print_run

    _heading(say, 2, "What was recorded", "show", str(recording))
    view, run, _ = choose(recording, None)
    print_run(say, view, run)


def _verify(say: Console, recording: Path) -> int:
    _heading(say, 3, "Is it still what was recorded?", "verify", str(recording))
    return _print_verdict(say, recording)


def _tamper(say: Console, recording: Path, answer: str, flip: int | None) -> int:
    from rich.text import Text

    from otel_agentrec.demo import stage

    with stage.changed_copy(recording, answer, flip) as (copy, changed):
        _heading(say, 4, "And when someone changes one byte?")
        say.print(Text(f"   In a copy, byte {changed.at} of {changed.file}:"), soft_wrap=True)
        say.print(Text.assemble("   before  ", (plain(changed.before), "green")))
        say.print(Text.assemble("   after   ", (plain(changed.after), "red")))
        say.print()
        return _print_verdict(say, copy)


def _print_verdict(say: Console, recording: Path) -> int:
    from otel_agentrec.audit.verify import verify
    from otel_agentrec.cli.verdict import verdict

    report = verify(recording)
    for part in verdict(report):
        say.print(part)
    return report.exit_code


def _what_next(say: Console, recording: Path) -> None:
    from rich.text import Text

    here = shlex.quote(str(recording))
    say.print()
    say.print(Text("Next", style="bold"))
    for command, words in (
        (f"otel-agentrec nodes {here} --json", "each call as it was: messages, arguments, results, tokens"),
        (f"otel-agentrec nodes {here} --type tool", "only the tool calls; more filters: otel-agentrec nodes --help"),
        (f"cat {here}/*.jsonl", "the recording: JSON lines, readable without this program"),
        ("otel-agentrec run -- python your_agent.py", "record your own agent; into ./agentrec"),
    ):
        say.print(Text.assemble("   ", (command, "cyan")), soft_wrap=True)
        say.print(Text(f"      {words}", style="dim"), soft_wrap=True)
