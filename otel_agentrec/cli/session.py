"""``otel-agentrec session``: chat sessions as event logs: list them, read them, travel in time, fork, save."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from otel_agentrec.cli.command import HELP_NAMES, json_option, recording_argument
from otel_agentrec.cli.command import command as make_command

if TYPE_CHECKING:
    from otel_agentrec.journal.events import Event
    from otel_agentrec.session.log import SessionLog
    from otel_agentrec.session.policy import Message

__all__ = ["command"]

ROLE_STYLE = {"user": "cyan", "assistant": "green", "tool": "magenta", "system": "yellow"}


class Subcommands(click.Group):
    """Without a subcommand the help is shown, as everywhere."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from otel_agentrec.cli.command import write_examples

        write_examples("Examples", self.epilog or "", formatter)


@click.group(
    name="session",
    cls=Subcommands,
    invoke_without_command=True,
    context_settings=HELP_NAMES,
    epilog="""
    otel-agentrec session list agentrec
    otel-agentrec session show agentrec user-42
    otel-agentrec session at agentrec user-42 17
    """,
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Chat sessions as event logs: what was said, what the model was given at any moment, forks."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


policy_option = click.option(
    "--policy",
    "policy_name",
    type=click.Choice(["agent", "conversation"]),
    default="agent",
    show_default=True,
    help="What enters the context: agent = with tools and summaries, conversation = what was said.",
)
id_argument = click.argument("session_id", metavar="ID")


@make_command(
    examples="""
    otel-agentrec session list agentrec
    otel-agentrec session list agentrec --json | jq -r .id
    """
)
@recording_argument
@json_option
def list_(recording: str, as_json: bool) -> None:
    """List the sessions of a recording, the one that was last spoken in first."""
    from otel_agentrec.session.overview import overview

    rows = overview(recording)
    if as_json:
        from otel_agentrec.cli.terminal import print_json

        for row in rows:
            print_json(row.to_json())
        return
    from rich.table import Table
    from rich.text import Text

    from otel_agentrec.cli.terminal import console, plain
    from otel_agentrec.cli.wording import moment

    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("session", "last event", "events", "messages", "first words", ""):
        table.add_column(title, justify="right" if title in ("events", "messages") else "left", no_wrap=True)
    for row in rows:
        notes = f"fork of {plain(row.fork_of, 40)} at {row.fork_at}" if row.fork_of else ""
        table.add_row(
            Text(plain(row.id, 60), style="bold"),
            Text(moment(row.last_ms)),
            Text(str(row.events)),
            Text(str(row.messages)),
            Text(plain(row.first_words, 50)),
            Text(notes, style="dim"),
        )
    console().print(table)


@make_command(
    examples="""
    otel-agentrec session show agentrec user-42
    otel-agentrec session show agentrec user-42 --json | jq -r .type
    """
)
@recording_argument
@id_argument
@click.option("--from", "from_seq", type=click.IntRange(min=0), default=0, metavar="SEQ", help="Begin at this event.")
@json_option
def show(recording: str, session_id: str, from_seq: int, as_json: bool) -> None:
    """Print the events of a session, in order."""
    from otel_agentrec.cli.terminal import console, print_json
    from otel_agentrec.session.overview import open_session

    for event in open_session(recording, session_id).events(from_seq):
        if as_json:
            print_json(_event_json(event))
        else:
            console().print(_line(event))


@make_command(
    examples="""
    otel-agentrec session at agentrec user-42
    otel-agentrec session at agentrec user-42 17 --json
    """
)
@recording_argument
@id_argument
@click.argument("seq", type=click.IntRange(min=0), required=False)
@policy_option
@click.option("--budget", type=click.IntRange(min=1), metavar="TOKENS", help="Leave out the oldest turns beyond this.")
@click.option("--lane", metavar="LANE", help="Of another agent of the session than the one that began it.")
@json_option
def at(
    recording: str,
    session_id: str,
    seq: int | None,
    policy_name: str,
    budget: int | None,
    lane: str | None,
    as_json: bool,
) -> None:
    """Show what the model was given when the log ended at event SEQ. Default: now."""
    log = _opened(recording, session_id, policy_name)
    from otel_agentrec.cli.terminal import console, plain, print_json
    from otel_agentrec.session.policy import of_lane

    policy = log.policy if lane is None else of_lane(log.policy, lane)
    state = log.state(policy, seq).state
    header, messages = state.get("header", {}), policy.render(state, budget)

    if as_json:
        print_json({"session": session_id, "seq": seq, "header": header, "messages": messages})
        return
    from rich.text import Text

    out = console()
    for part in header.get("instructions") or []:
        out.print(Text("instructions: ", style="yellow") + Text(plain(str(part.get("content", part))), style="dim"))
    for message in messages:
        for line in _spoken(message):
            out.print(line)


@make_command(
    examples="""
    otel-agentrec session fork agentrec user-42 5
    otel-agentrec session fork agentrec user-42 5 --as branch-b
    """
)
@recording_argument
@id_argument
@click.argument("seq", type=click.IntRange(min=0))
@click.option("--as", "new_id", metavar="ID", help="The fork's id. Default: made from the parent's.")
@json_option
def fork(recording: str, session_id: str, seq: int, new_id: str | None, as_json: bool) -> None:
    """Begin a new session with a copy of the events up to SEQ. The old one stays as it is."""
    from otel_agentrec.cli.terminal import plain, print_json
    from otel_agentrec.session.overview import open_session

    child = open_session(recording, session_id).fork(seq, new_id)
    if as_json:
        print_json({"session": child.session_id, "stream": child.stream, "forkOf": session_id, "at": seq})
    else:
        click.echo(plain(child.session_id))


@make_command(
    examples="""
    otel-agentrec session save agentrec user-42
    """
)
@recording_argument
@id_argument
@policy_option
@json_option
def save(recording: str, session_id: str, policy_name: str, as_json: bool) -> None:
    """Save the projection, so that the next opening of a long session reads only what came later."""
    from otel_agentrec.cli.terminal import print_json

    log = _opened(recording, session_id, policy_name)
    was_closed = [event.type for event in log.events(log.head() - 1)] == ["STREAM_SEALED"]
    saved = log.save_projection()
    if was_closed:
        log.close()
    if as_json:
        print_json({"session": session_id, "policy": log.policy.name, "upto": saved.seq, "hash": saved.hash})
    else:
        click.echo(f"saved up to event {saved.seq}")


for name, sub in (("list", list_), ("show", show), ("at", at), ("fork", fork), ("save", save)):
    command.add_command(sub, name)


def _opened(recording: str, session_id: str, policy_name: str) -> SessionLog:
    from otel_agentrec.session.agent import AGENT
    from otel_agentrec.session.overview import open_session
    from otel_agentrec.session.policy import CONVERSATION

    return open_session(recording, session_id, AGENT if policy_name == "agent" else CONVERSATION)


def _event_json(event: Event) -> dict[str, Any]:
    fields = {"run": event.run, "turn": event.turn, "step": event.step, "copyOf": event.copy_of}
    return {
        "seq": event.seq,
        "ts": event.ts,
        "type": event.type,
        "payload": event.payload,
        **{key: value for key, value in fields.items() if value is not None},
        "hash": event.hash,
    }


def _line(event: Event) -> Any:
    """One event on one line: number, time, type, and what it says."""
    import json

    from rich.text import Text

    from otel_agentrec.cli.terminal import plain
    from otel_agentrec.cli.wording import moment

    said = event.payload.get("content", event.payload)
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)
    line = Text(f"{event.seq:>5}  ", style="dim") + Text(moment(event.ts), style="dim")
    return line + Text(f"  {event.type:<22} ", style="bold") + Text(plain(text, 300))


def _spoken(message: Message) -> list[Any]:
    """A message as lines: who, and what in each part."""
    import json

    from rich.text import Text

    from otel_agentrec.cli.terminal import plain

    role = str(message.get("role"))
    lines = []
    for part in message.get("parts") or []:
        if part.get("type") == "tool_call":
            text = f"{part.get('name')}({json.dumps(part.get('arguments'), ensure_ascii=False, default=str)})"
        else:
            said = part.get("content", part.get("response", part))
            text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)
        lines.append(Text(f"{plain(role, 12)}: ", style=ROLE_STYLE.get(role, "")) + Text(plain(text)))
    return lines
