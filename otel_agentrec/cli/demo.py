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
    from collections.abc import Callable

    from rich.console import Console

    from otel_agentrec.demo.crash import Crash

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
    """See it work: a real agent is recorded, looked at and verified; one byte is changed, and that shows; it is killed in
    the worst moment, goes on without doing anything twice, and is replayed.

    The agent uses the openai SDK with OpenTelemetry's instrumentation; the model is a script on this machine. No key is
    needed and nothing leaves the machine. Exit code: 0, all went as told; 2, something did not.
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
    _must("verify gave", (before, after), (0, 1))
    _crash(say, recording)
    _what_next(say, recording)


def _must(what: str, got: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if got != wanted:
        told, instead = (", then ".join(map(str, numbers)) for numbers in (got, wanted))
        raise AgentRecError(
            f"the demo did not go as it should: {what} {told}, and not {instead}",
            "please report it, with the output above",
        )


def _heading(say: Console, number: int, words: str, *command: str) -> None:
    from rich.text import Text

    say.print()
    say.print(Text(f"{number}  {words}", style="bold"))
    if command:
        _command(say, *command)


def _command(say: Console, *words: str) -> None:
    from rich.text import Text

    say.print(Text(f"   $ {shlex.join(('otel-agentrec', *words))}", style="cyan"), soft_wrap=True)
    say.print()


def _record(say: Console, recording: Path, question: str, answer: str) -> None:
    from otel_agentrec.demo import stage
    from otel_agentrec.demo.child import agent_command

    command = ("run", "--out", str(recording), "--", *agent_command(question))
    _heading(say, 1, "An agent works, and is recorded", *command)
    hear = _talk(say, question)
    stage.record(recording, answer, question, hear)
    say.print()


def _talk(say: Console, question: str) -> Callable[[str], None]:
    """Print what the user asks; what the agent says is printed as the result is given it."""
    say.print(f"   you    {plain(question)}", soft_wrap=True)
    begun = ended = False

    def hear(piece: str) -> None:
        nonlocal begun, ended
        if not begun:
            say.file.write("   agent  ")
            begun = True
        for at, line in enumerate(piece.split("\n")):
            ended = ended or at > 0
            if line:
                # a line end is printed once something follows
                say.file.write(("\n          " if ended else "") + UNSAFE.sub("", line))
                ended = False
        say.file.flush()

    return hear


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


def _crash(say: Console, recording: Path) -> None:
    from otel_agentrec.demo.crash import Crash

    with Crash(recording) as crash:
        _kill(say, crash)
        _stop(say, crash)
        _finish(say, crash)
        _replay(say, crash)


def _kill(say: Console, crash: Crash) -> None:
    from otel_agentrec.demo.child import agent_command
    from otel_agentrec.demo.crash import ORDER

    command = ("run", "--out", str(crash.recording), "--", *agent_command(ORDER))
    _heading(say, 5, "And when it is killed in the worst moment?", *command)
    crash.kill(_talk(say, ORDER))
    say.print("   (killed: the ticket is bought, and nobody was told)")
    _sold(say, crash)


def _stop(say: Console, crash: Crash) -> None:
    from rich.text import Text

    from otel_agentrec.demo.child import agent_command
    from otel_agentrec.demo.crash import ORDER
    from otel_agentrec.errors import UnknownOutcomeError

    command = ("run", "--resume", str(crash.recording), "--", *agent_command(ORDER))
    _heading(say, 6, "Started again, it goes on, and does not guess", *command)
    ended = crash.resume(_talk(say, ORDER))
    for line in ended.ours[:2]:
        say.print(Text(f"   {plain(line)}", style="yellow"), soft_wrap=True)
    say.print(f"   exit code {ended.code}: it stopped before it would have bought a second one")
    _sold(say, crash)
    _must("the resumed run ended with", (ended.code,), (UnknownOutcomeError.exit_code,))


def _finish(say: Console, crash: Crash) -> None:
    from otel_agentrec.cli.resolve import command as resolve
    from otel_agentrec.demo.child import agent_command
    from otel_agentrec.demo.crash import ORDER, TICKET

    words = (str(crash.recording), crash.unknown().id, "--done", TICKET)
    _heading(say, 7, "You look, say what happened, and it comes to its end", "resolve", *words)
    say.file.write("   ")
    resolve.main(list(words), standalone_mode=False)
    say.print()
    _command(say, "run", "--resume", str(crash.recording), "--", *agent_command(ORDER))
    ended = crash.resume(_talk(say, ORDER))
    say.print()
    _sold(say, crash)
    say.print(
        f"   the model was asked {crash.asked} times in all three starts: its first answer came from the recording"
    )
    _must("the resumed run ended with", (ended.code,), (0,))
    _must("tickets and questions to the model were", (len(crash.tickets), crash.asked), (1, 2))


def _replay(say: Console, crash: Crash) -> None:
    from rich.text import Text

    from otel_agentrec.demo.child import agent_command
    from otel_agentrec.demo.crash import ORDER

    command = ("replay", str(crash.recording), "--run", crash.run, "--", *agent_command(ORDER))
    _heading(say, 8, "And now without model, tools and network: all of it again, from the recording", *command)
    ended = crash.replay(_talk(say, ORDER))
    say.print()
    for line in ended.ours:
        say.print(Text(f"   {plain(line)}", style="green"), soft_wrap=True)
    _sold(say, crash)
    _must("the replay ended with", (ended.code,), (0,))
    _must("tickets were", (len(crash.tickets),), (1,))


def _sold(say: Console, crash: Crash) -> None:
    say.print(f"   tickets sold: {len(crash.tickets)}")


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
        (f"otel-agentrec runs {here}", "the runs; the one that was killed is there with its three attempts"),
        (f"otel-agentrec nodes {here} --type tool", "only the tool calls; more filters: otel-agentrec nodes --help"),
        (f"cat {here}/*.jsonl", "the recording: JSON lines, readable without this program"),
        ("otel-agentrec run -- python your_agent.py", "record your own agent; into ./agentrec"),
        ("otel-agentrec run --resume agentrec -- python your_agent.py", "go on with it after a crash"),
    ):
        say.print(Text.assemble("   ", (command, "cyan")), soft_wrap=True)
        say.print(Text(f"      {words}", style="dim"), soft_wrap=True)
