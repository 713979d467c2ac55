"""``otel-agentrec resolve``: settle an effect whose outcome nobody knows."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option, recording_argument

if TYPE_CHECKING:
    from otel_agentrec.journal.reader import Recording
    from otel_agentrec.nodes.effects import Effect

__all__ = ["command", "resolve_command"]


@make_command(
    examples="""
    otel-agentrec resolve agentrec 4da97d88 --done '{"receipt": "r-17"}'
    otel-agentrec resolve agentrec 4da97d88 --not-done --reason 'not in the bank statement'
    otel-agentrec show agentrec
    """
)
@recording_argument
@click.argument("effect", metavar="EFFECT")
@click.option("--done", "output", metavar="OUTPUT", help="It happened, and gave this: JSON, or else text.")
@click.option("--not-done", is_flag=True, help="It did not happen: a resumed run may call it.")
@click.option("--by", metavar="NAME", help="Who says so. Default: the user.")
@click.option("--reason", metavar="TEXT", help="How it was found out; kept as content.")
@json_option
def command(
    recording: str, effect: str, output: str | None, not_done: bool, by: str | None, reason: str | None, as_json: bool
) -> None:
    """Say what became of an effect whose outcome is unknown, so that its run can be resumed.

    EFFECT is an effect's id, as `show` and `runs` print it, or the beginning of one. Nothing that is recorded changes: what
    you say goes into a stream of its own. The first word counts. Look first whether it happened: nobody can do that for you.
    """
    from otel_agentrec.errors import UsageError
    from otel_agentrec.journal.append import append_events
    from otel_agentrec.journal.claims import Claim
    from otel_agentrec.journal.draft import NewEvent
    from otel_agentrec.journal.reader import Recording
    from otel_agentrec.journal.times import not_before
    from otel_agentrec.redaction import Redactor
    from otel_agentrec.settings import Settings

    if (output is None) is not not_done:
        raise UsageError("say whether it happened", "--done OUTPUT, or --not-done")
    opened = Recording(recording)
    if opened.single is not None:
        raise UsageError(f"{recording} is one stream of a recording", f"give the directory: {opened.directory}")
    found = _find(opened, effect)
    claim = Claim(opened.directory, found.root)  # while it is held nobody resumes the run
    try:
        found = _find(Recording(recording), found.id)
        _must_be_open(found, recording)
        not_before(found.latest_ms + 1)  # whatever this machine's clock says, it is settled after it began
        payload: dict[str, Any] = {"effectId": found.id, "outcome": "not_done" if not_done else "done"}
        if output is not None:
            payload["output"] = _value(output)
        payload["by"] = by or _user()
        if reason is not None:
            payload["reason"] = reason
        settings = Settings.load()
        (at,) = append_events(
            opened.directory,
            [NewEvent("EFFECT_RESOLVED", payload, _place_of(found))],
            origin=settings.host,
            by="resolve",
            redactor=Redactor.from_setting(settings.redact),
        )
    finally:
        claim.release()
    if as_json:
        from otel_agentrec.cli.terminal import print_json

        print_json({**payload, "journal": {"stream": at.stream, "seq": at.seq, "hash": at.hash}})
    else:
        from otel_agentrec.cli.terminal import plain

        said = "did not happen" if not_done else "happened"
        click.echo(f"{plain(found.name)} {said} (effect {found.id}); its run can be resumed")


def resolve_command(recording: str, effect: Effect) -> str:
    """The command line that settles an effect, to be completed and copied."""
    return f"otel-agentrec resolve {shlex.quote(recording)} {effect.id} --done OUTPUT | --not-done"


def _find(recording: Recording, ident: str) -> Effect:
    from otel_agentrec.errors import UsageError
    from otel_agentrec.nodes.effects import read_effects
    from otel_agentrec.nodes.read import read_nodes

    effects = list(read_effects(recording, read_nodes(recording)))
    found = [e for e in effects if e.id == ident] or [e for e in effects if e.id.startswith(ident)]
    see = "otel-agentrec show names the effects with an unknown outcome"
    if not found:
        raise UsageError(f"there is no effect {ident!r} in {recording.path}", see)
    if len(found) > 1:
        raise UsageError(f"{len(found)} effects begin with {ident!r}", see)
    return found[0]


def _must_be_open(effect: Effect, recording: str) -> None:
    """Raise unless there is something to settle."""
    from otel_agentrec.errors import RecordingBusy, UsageError
    from otel_agentrec.nodes.effects import DONE, FAILED, NOT_BEGUN, RUNNING

    if effect.state == RUNNING:
        raise RecordingBusy(
            f"{effect.name} (effect {effect.id}) is still running", "wait for its process to end, or stop it"
        )
    if effect.state in (DONE, FAILED) and effect.lost is not None:
        return
    if effect.state in (DONE, FAILED, NOT_BEGUN):
        told = {DONE: "is done", FAILED: "has failed", NOT_BEGUN: "was settled as not done"}[effect.state]
        by = f" by {effect.resolved['by']}" if effect.resolved and effect.resolved.get("by") else ""
        raise UsageError(f"{effect.name} (effect {effect.id}) {told}{by}", "the first word counts")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except Exception:
        return "unknown"


def _place_of(effect: Effect) -> Any:
    """Where the effect belongs, so that what is done with its run is done with this too."""
    from otel_agentrec.journal.draft import Envelope

    trace = {"traceId": effect.span[0], "spanId": effect.span[1]} if effect.span is not None else None
    return Envelope(effect.run, trace=trace)
