"""Agent spans that repeat the sums of their calls are not counted; one without any call below it is."""

from __future__ import annotations

from pathlib import Path

from tests.cases.case import expected, ingested


def test_sums_of_agents_are_not_counted_again(tmp_path: Path) -> None:
    want = expected("012")
    case = ingested("012", tmp_path)
    assert len(case.records) == want["records"]["model"] + want["records"]["tool"]
    (run,) = case.runs
    assert run.tokens == {"input": want["totals"]["input_total"], "output": want["totals"]["output"]}
