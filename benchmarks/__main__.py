"""``python -m benchmarks [quick] [WORD ...]``: measure, print a table, write ``benchmarks/results.json``.

``quick`` takes less than three minutes; a WORD keeps only the rows whose name holds it. Exit code: 0 when every row meets
its goal, else 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import canonical, forwarding, histories, intercepting, recording, replaying, verifying, wire

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
GROUPS = [canonical, recording, forwarding, intercepting, replaying, verifying, histories, wire]
"""Modules with ``ROWS`` (their names) and ``rows(quick)`` (names and figures, as they are measured)."""


def meets(goal: str, ours: float | None) -> bool:
    """Whether a figure meets a goal such as ``<= 2.2`` or ``>= 0.7``; a row that could not be measured does not."""
    relation, bound = goal.split()
    if ours is None:
        return False
    return ours <= float(bound) if relation == "<=" else ours >= float(bound)


def main(words: list[str]) -> int:
    quick = "quick" in words
    wanted = [word for word in words if word != "quick"]
    goals: dict[str, dict[str, str]] = json.loads((HERE / "goals.json").read_text())
    chosen = {row for row in goals if not wanted or any(word in row for word in wanted)}
    if not chosen:
        print(f"no row is named like {' or '.join(wanted)}; rows: {', '.join(goals)}", file=sys.stderr)
        return 2
    measured: dict[str, float] = {}
    for group in GROUPS:
        if chosen.intersection(group.ROWS):
            try:
                measured.update(group.rows(quick))
            except Exception as error:  # one broken row must not hide the others
                print(f"{group.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
    results: list[dict[str, Any]] = []
    for row, goal in goals.items():
        if row in chosen:
            ours = measured.get(row)
            results.append({"row": row, "ours": ours, "goal": goal["goal"], "ok": meets(goal["goal"], ours)})
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    width = max(len(result["row"]) for result in results)
    for result in results:
        figure = "-" if result["ours"] is None else f"{result['ours']:,.2f}"
        unit = goals[result["row"]]["unit"]
        print(
            f"{result['row']:{width}}  {figure:>10}  {result['goal']:>10}  {'ok' if result['ok'] else 'NO':2}  {unit}"
        )
    return 0 if all(result["ok"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
