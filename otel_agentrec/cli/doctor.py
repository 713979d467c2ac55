"""``otel-agentrec doctor``: would it be recorded, and what stands in the way?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otel_agentrec.capture.doctor import Finding

__all__ = ["command"]

SAY_MORE = ("wire", "tools")
"""Findings that say what is not seen though all is well."""
MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("problem", "bold red")}


@make_command(
    examples="""
    otel-agentrec doctor
    otel-agentrec doctor -- python agent.py
    otel-agentrec doctor --json | jq '.[] | select(.level == "problem")'
    """,
    allow_interspersed_args=False,
)
@json_option
@click.argument("cmd", metavar="[-- CMD...]", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, as_json: bool, cmd: tuple[str, ...]) -> None:
    """Say what would be recorded here and what would not, and how to mend it.

    Looks at versions, instrumentations, switches, limits, the recording directory, and at which model SDKs and tools of
    frameworks are covered; with a command also at its
    interpreter and at how it is started. The command is not run. Exit code: 0 no problem · 1 there is one.
    """
    from otel_agentrec.capture.doctor import examine
    from otel_agentrec.cli.terminal import print_json, reader_may_leave
    from otel_agentrec.intercept.covered import check_covered

    findings = examine(cmd, checks=[check_covered])
    with reader_may_leave():
        if as_json:
            print_json([finding.to_json() for finding in findings])
        else:
            _print(findings)
    ctx.exit(1 if any(finding.level == "problem" for finding in findings) else 0)


def _print(findings: Sequence[Finding]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from otel_agentrec.cli.terminal import console, plain

    out = console()
    for finding in findings:
        mark, style = MARKS[finding.level]
        out.print(Text.assemble((f"{mark:>7}", style), "  ", plain(finding.what)))
        if finding.why and (finding.level != "ok" or finding.id.partition(".")[0] in SAY_MORE):
            out.print(Padding(Text(plain(finding.why), style="dim"), (0, 0, 0, 9), expand=False))
        if finding.mend:
            out.print(Padding(Text(f"→ {plain(finding.mend)}"), (0, 0, 0, 9), expand=False))
    counts = Counter(finding.level for finding in findings)
    told = [
        f"{counts[level]} {level}{'s' if counts[level] != 1 else ''}" for level in ("problem", "note") if counts[level]
    ]
    out.print(Text(", ".join(told) or "nothing to mend", style="bold"))
