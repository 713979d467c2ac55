"""``otel-agentrec diff``: two runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option

if TYPE_CHECKING:
    from otel_agentrec.records import NodeIoRecord
    from otel_agentrec.replay.rundiff import Compared, Pair, RunDiff

__all__ = ["command"]

SIGN = {"same": " ", "changed": "≠", "only_a": "<", "only_b": ">"}
STYLE = {"same": "dim", "changed": "yellow", "only_a": "red", "only_b": "green"}
SHOWN = 12
"""Differences of the first call that parts the runs."""


@make_command(
    examples="""
    otel-agentrec diff before/ after/
    otel-agentrec diff agentrec agentrec --run-a 4bf92f35 --run-b 9e0c11aa
    otel-agentrec diff before after --json | jq .calls[.firstDivergence]
    """
)
@click.argument("a", metavar="A", type=click.Path())
@click.argument("b", metavar="B", type=click.Path())
@click.option("--run-a", metavar="ID", help="The run of A, or the beginning of its id. Default: the newest.")
@click.option("--run-b", metavar="ID", help="The run of B. Default: the newest; in the same recording the one before.")
@click.option("--all", "show_all", is_flag=True, help="Also list the calls that are the same.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, a: str, b: str, run_a: str | None, run_b: str | None, show_all: bool, as_json: bool
) -> None:
    """Compare two runs: where they first part, and every call that differs.

    What was asked and what came of it is compared, not ids, times or places. Exit code: 0 the same, 1 they differ.
    """
    from otel_agentrec.cli.terminal import print_json, reader_may_leave
    from otel_agentrec.replay.rundiff import diff_runs

    left, right = _chosen(a, run_a, b, run_b)
    result = diff_runs(left[1], right[1])
    with reader_may_leave():
        if as_json:
            print_json({"a": {"run": left[0]}, "b": {"run": right[0]}, **result.to_json()})
        else:
            _print(result, left[0], right[0], show_all)
    if not result.same:
        ctx.exit(1)


def _chosen(
    a: str, run_a: str | None, b: str, run_b: str | None
) -> tuple[tuple[str, list[Compared]], tuple[str, list[Compared]]]:
    from pathlib import Path

    from otel_agentrec.cli.runs import newest_first
    from otel_agentrec.cli.show import choose
    from otel_agentrec.errors import UsageError
    from otel_agentrec.replay.rundiff import Compared

    view_a, chosen_a, _ = choose(a, run_a)
    view_b, chosen_b, _ = choose(b, run_b)
    if chosen_a.id == chosen_b.id and run_b is None and run_a is None and Path(a).resolve() == Path(b).resolve():
        runs = newest_first(view_b.runs)
        if len(runs) < 2:
            raise UsageError(f"{b} holds one run only", "give another recording, or --run-a and --run-b")
        chosen_a = runs[1]

    def calls(view: Any, run: str) -> list[Compared]:
        return [Compared(record, view.lane(s).text) for s, record in view.calls(run)]

    return (chosen_a.id, calls(view_a, chosen_a.id)), (chosen_b.id, calls(view_b, chosen_b.id))


def _print(result: RunDiff, run_a: str, run_b: str, show_all: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from otel_agentrec.cli.terminal import console, plain

    out = console()
    counts = result.counts
    if result.same:
        out.print(f"the same: {counts['same']} calls", style="green")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("", "step", f"A {plain(run_a, 12)}", f"B {plain(run_b, 12)}", "first difference"):
        table.add_column(title, overflow="ellipsis", no_wrap=title in ("", "step"))
    first = result.first
    for pair in result.pairs:
        if pair.status == "same" and not show_all:
            continue
        mark = "first" if pair is first else ""
        record = pair.a or pair.b
        assert record is not None
        table.add_row(
            Text(f"{SIGN[pair.status]} {mark}".rstrip(), style=STYLE[pair.status]),
            Text(str(record.step or "-")),
            Text(_called(pair.a)),
            Text(_called(pair.b)),
            Text(_where(pair), style="dim"),
        )
    out.print(table)
    assert first is not None
    if first.differences:
        out.print()
        record = first.a or first.b
        assert record is not None
        out.print(f"They part at step {record.step or '-'}, {_called(first.a)}:", style="bold")
        for difference in first.differences[:SHOWN]:
            for line in _lines(difference):
                out.print(line)
        if len(first.differences) > SHOWN:
            out.print(f"  and {len(first.differences) - SHOWN} more; --json lists all", style="dim")
    parts = [f"{counts[key]} {said}" for key, said in _COUNTED if counts[key]]
    out.print(", ".join(parts), style="dim")


_COUNTED = (("same", "the same"), ("changed", "changed"), ("only_a", "only in A"), ("only_b", "only in B"))


def _called(record: NodeIoRecord | None) -> str:
    from otel_agentrec.cli.terminal import plain
    from otel_agentrec.cli.wording import asked

    if record is None:
        return "-"
    if record.node_type.value == "TOOL":
        return plain(f"{record.tool_name or '?'}({asked(record, 60)})", 60)
    return plain(f"{record.model_id or 'model'}: {record.output_text or asked(record, 60)}", 60)


def _where(pair: Pair) -> str:
    if pair.status in ("only_a", "only_b"):
        return "not called in " + ("B" if pair.status == "only_a" else "A")
    return pair.differences[0].where if pair.differences else ""


def _lines(difference: Any) -> list[Any]:
    import json

    from rich.text import Text

    from otel_agentrec.cli.terminal import plain

    told = difference.to_json()
    lines = [Text(f"  {plain(difference.where)}: {difference.kind}", style="bold")]
    for sign, key, style in (("<", "recorded", "red"), (">", "asked", "green")):
        value = told.get(key, "(absent)") if key in told else "(absent)"
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        lines.append(Text(f"    {sign} {plain(text, 300)}", style=style))
    return lines
