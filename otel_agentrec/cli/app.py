"""The command ``otel-agentrec``: its commands by name, and what every one of them does with errors and signals.

A command's module is imported when the command is asked for, so that ``--help`` stays quick. Exit codes where a command
gives none: 0 done · 1 the answer is no · 2 usage, unreadable, refused · 130 interrupted · 141 nobody reads the output.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from otel_agentrec.cli.command import HELP_NAMES, debug_option, write_examples
from otel_agentrec.cli.terminal import close_quietly, make_streams_safe, print_error
from otel_agentrec.errors import AgentRecError, RunStopped

__all__ = ["COMMANDS", "app", "run"]

INTERRUPTED = 130
NO_READER = 141
"""128 + SIGPIPE, what a shell reports of a program that wrote into a closed pipe."""

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("otel_agentrec.cli.demo", "See it work: a recorded agent, offline, in seconds."),
    "run": ("otel_agentrec.cli.run", "Run a program with recording on."),
    "doctor": ("otel_agentrec.cli.doctor", "Say what would be recorded here, and what stands in the way."),
    "ingest": ("otel_agentrec.cli.ingest", "Turn OTLP files into a recording."),
    "serve": ("otel_agentrec.cli.serve", "Receive OTLP from programs in any language and record it."),
    "runs": ("otel_agentrec.cli.runs", "List the runs of a recording, newest first."),
    "show": ("otel_agentrec.cli.show", "Show a run as a timeline."),
    "nodes": ("otel_agentrec.cli.nodes", "Print the model and tool calls of a recording."),
    "stats": ("otel_agentrec.cli.stats", "Count calls, tokens, times, errors and losses."),
    "score": ("otel_agentrec.cli.score", "Attach an evaluation to a call."),
    "session": ("otel_agentrec.cli.session", "Chat sessions: list, show, time travel, fork, save."),
    "export": ("otel_agentrec.cli.export", "Send a recording to an OTLP backend (Jaeger, Langfuse, a Collector)."),
    "resolve": ("otel_agentrec.cli.resolve", "Say what became of an effect whose outcome is unknown."),
    "why-miss": ("otel_agentrec.cli.why_miss", "Say why a request is not answered from a recording."),
    "replay": ("otel_agentrec.cli.replay", "Run a program again, answered from a recording of it."),
    "diff": ("otel_agentrec.cli.diff", "Compare two runs: where they part, and every call that differs."),
    "compare": ("otel_agentrec.cli.compare", "Put recorded prompts to other models (live) and compare the answers."),
    "verify": ("otel_agentrec.cli.verify", "Check that nothing in a recording was changed."),
}
"""Command -> (module that holds it under the name ``command``, one line of help)."""


class Commands(click.Group):
    """A group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples("Start here", self.epilog or "", formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            tip = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"There is no command {args[0]!r}.{tip}")
        return super().resolve_command(ctx, args)


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from otel_agentrec._version import __version__

        click.echo(f"otel-agentrec {__version__}")
        ctx.exit()


@click.command(
    cls=Commands,
    context_settings=HELP_NAMES,
    epilog="""
    otel-agentrec demo
    otel-agentrec run -- python agent.py
    otel-agentrec show agentrec
    """,
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Print the version."
)
@debug_option
def app() -> None:
    """A flight recorder for AI agents: record every model and tool call, then look at it, and prove it was not changed."""


UNTESTED = 125
"""What ``git bisect run`` takes for a revision that can't be tested."""


def run(argv: Sequence[str]) -> int:
    """Run a command line and return its exit code. Nothing is raised."""
    code = _code(argv)
    command = next((word for word in argv if not word.startswith("-")), None)
    return UNTESTED if command == "replay" and code == 2 else code


def _code(argv: Sequence[str]) -> int:
    make_streams_safe()
    state: dict[str, Any] = {"debug": False}
    try:
        code = _run(argv, state)
        sys.stdout.flush()
    except BrokenPipeError:
        code = NO_READER
    except (KeyboardInterrupt, click.Abort):
        code = INTERRUPTED
    except (Exception, RunStopped) as error:
        if state["debug"]:
            traceback.print_exc()
        code = _tell(error)
    close_quietly()
    return code


def _run(argv: Sequence[str], state: dict[str, Any]) -> int:
    # not app.main(): that one answers a closed pipe with code 1
    try:
        with app.make_context("otel-agentrec", list(argv) or ["--help"], obj=state) as ctx:
            app.invoke(ctx)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            print_error(error.format_message(), f"see {error.ctx.command_path} --help")
        else:
            print_error(error.format_message())
        return error.exit_code
    return 0


def _tell(error: Exception | RunStopped) -> int:
    """Say what happened and how to mend it; return the exit code."""
    if isinstance(error, (AgentRecError, RunStopped)):
        print_error(str(error), error.hint)
        return error.exit_code
    if isinstance(error, OSError):
        where = f" {error.filename}" if error.filename else ""
        print_error(f"{error.strerror or error}:{where}" if where else str(error.strerror or error))
        return 2
    print_error(
        f"something went wrong inside otel-agentrec: {type(error).__name__}: {error}",
        "run it again with --debug for the details, and please report them",
    )
    return 2
