"""``otel-agentrec compare``: recorded prompts put to models anew, the answers side by side. Live: real calls, real money."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option, recording_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otel_agentrec.cli.comparison import Asked
    from otel_agentrec.records import NodeIoRecord
    from otel_agentrec.replay.measure import Measure
    from otel_agentrec.replay.models import Chosen, LiveModels
    from otel_agentrec.replay.node import NodeReplayer

__all__ = ["command"]

UNASKED = 5
"""So many calls are made at a terminal without asking."""
INTERRUPTED = 130


@make_command(
    examples="""
    otel-agentrec compare agentrec --model gpt-5 --model gpt-5-mini
    otel-agentrec compare agentrec --node 4bf92f35:00f067aa --model a=gpt-5 --model b=anthropic:claude-haiku-4-5 --repeats 3
    otel-agentrec compare agentrec --run 4bf92f35 --model gpt-5-mini --yes --json | jq .summary
    """
)
@recording_argument
@click.option("--node", "nodes", multiple=True, metavar="ID", help="This model call only; may be given again.")
@click.option("--run", metavar="ID", help="All model calls of this run. Default: the newest run.")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[LABEL=][CLIENT:]MODEL",
    help="A model to ask; may be given again. Default: the recorded one.",
)
@click.option(
    "--client",
    type=click.Choice(["openai", "openai-responses", "anthropic"]),
    help="The SDK and API to ask with. Default: those of the recorded call.",
)
@click.option("--repeats", type=click.IntRange(1), default=1, show_default=True, help="How often each model is asked.")
@click.option("--yes", is_flag=True, help="Make the calls without asking; needed where there is no terminal.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    recording: str,
    nodes: tuple[str, ...],
    run: str | None,
    models: tuple[str, ...],
    client: str | None,
    repeats: int,
    yes: bool,
    as_json: bool,
) -> None:
    """Put recorded prompts to models again and lay the answers beside the recorded ones.

    LIVE: every call is a real one and costs real money. No tool runs. Address and key are those of the SDK's own
    environment (OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY ...).

    Exit code: 0 all calls were answered, whatever they say; 1 some failed; 2 none was made; 130 interrupted, what was
    answered until then is printed.
    """
    from otel_agentrec.cli.comparison import print_comparison, to_json
    from otel_agentrec.cli.terminal import print_json, reader_may_leave
    from otel_agentrec.errors import UsageError
    from otel_agentrec.replay.measure import Measure
    from otel_agentrec.replay.models import Chosen, LiveModels, chosen_models
    from otel_agentrec.replay.node import NodeReplayer

    if nodes and run is not None:
        raise UsageError("--node and --run can't be given together", "--node names the calls one by one")
    replayer, live, measure = NodeReplayer(recording), LiveModels(client), Measure()
    wanted = chosen_models(models)
    todo: list[Asked] = []
    skipped: list[tuple[NodeIoRecord, str]] = []
    for record in _records(replayer, recording, nodes, run):
        chosen = wanted or [Chosen(record.model_id or "recorded", record.model_id or "")]
        try:
            todo.append(_prepared(record, chosen, replayer, live))
        except ValueError as error:
            if nodes:
                raise UsageError(str(error), "only calls whose prompt was recorded whole can be asked again") from None
            skipped.append((record, str(error)))
    if not todo:
        why = f": {skipped[0][1]}" if skipped else ""
        raise UsageError(f"there is no model call to ask again in {recording}{why}", "otel-agentrec nodes lists them")
    calls = sum(len(asked.chosen) for asked in todo) * repeats
    _ask_for_leave(todo, live, measure, calls, repeats, yes)
    interrupted = _ask(todo, replayer, repeats, calls)
    with reader_may_leave():
        if as_json:
            print_json(to_json(todo, skipped, measure, recording, calls))
        else:
            print_comparison(todo, skipped, measure)
    failed = any(trial.error is not None for asked in todo for trial in asked.trials)
    if interrupted or failed:
        ctx.exit(INTERRUPTED if interrupted else 1)


def _records(replayer: NodeReplayer, recording: str, nodes: Sequence[str], run: str | None) -> Sequence[NodeIoRecord]:
    from otel_agentrec.cli.show import choose
    from otel_agentrec.records import NodeType

    if nodes:
        return [replayer.record(node) for node in dict.fromkeys(nodes)]
    view, chosen, _ = choose(recording, run)
    return [record for record in view.records(chosen.id) if record.node_type is NodeType.MODEL]


def _prepared(record: NodeIoRecord, chosen: Sequence[Chosen], replayer: NodeReplayer, live: LiveModels) -> Asked:
    """Raises ValueError where the prompt was not recorded whole, UsageError where there is no client."""
    from otel_agentrec.cli.comparison import Asked

    replayer.prompt(record)
    clients = {one.label: live.of(record, one) for one in chosen}
    providers = {one.label: live.provider(record, one) for one in chosen}
    return Asked(record, {one.label: one.model for one in chosen}, providers, clients)


def _ask_for_leave(
    todo: Sequence[Asked], live: LiveModels, measure: Measure, calls: int, repeats: int, yes: bool
) -> None:
    """Say what is about to be spent; many calls, and any where nobody can be asked, want a word.

    Raises:
        UsageError: leave is not given.
    """
    from otel_agentrec.cli.terminal import plain
    from otel_agentrec.cli.wording import count
    from otel_agentrec.errors import UsageError

    models = {label: model for asked in todo for label, model in asked.chosen.items()}
    named = ", ".join(label if label == model else f"{label}={model}" for label, model in models.items())
    times = f", {repeats} times each" if repeats > 1 else ""
    where = ", ".join(live.addresses())
    click.echo(
        plain(f"LIVE: {count(calls, 'real call')}: {count(len(todo), 'prompt')} to {named}{times}, at {where}"),
        err=True,
    )
    expected = [measure.expected(a.record, m, a.providers[label]) for a in todo for label, m in a.chosen.items()]
    known = [usd for usd in expected if usd is not None]
    if known:
        missing = "" if len(known) == len(expected) else f"; no price is known for {len(expected) - len(known)}"
        click.echo(f"  about ${sum(known) * repeats:.4f}, if as many tokens are used as recorded{missing}", err=True)
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("real calls are made only on a word of yours, and there is no terminal", "give --yes")
    if calls > UNASKED and not click.confirm("Go on?", err=True):
        raise UsageError("nothing was asked", "--node ID asks one call only")


def _ask(todo: Sequence[Asked], replayer: NodeReplayer, repeats: int, calls: int) -> bool:
    """Make all calls. Returns whether the user broke off."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from otel_agentrec.cli.terminal import console
    from otel_agentrec.replay.compare import Trial

    columns = (TextColumn("calls"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("calls", total=calls)

        def take(asked: Asked, trial: Trial) -> None:
            asked.trials.append(trial)
            bar.advance(task)

        try:
            for asked in todo:
                told = partial(take, asked)
                compared = replayer.compare_live(asked.record, asked.clients, repeats=repeats, told=told)
                asked.recorded = compared.recorded
        except KeyboardInterrupt:
            return True
    return False
