"""Streaming agents end before what they started: the model span when it is drained, a background tool later still."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from .case import Case, expected, ingested


def told(case: Case) -> Any:
    records = [{**r.to_json(), "journal": None} for r in case.records]
    return records, [run.to_json() for run in case.runs]


def test_late_members_belong_to_the_run_and_end_it(tmp_path: Path) -> None:
    case, right = ingested("014", tmp_path), expected("014")
    (run,) = case.runs
    (want,) = right["runs"]
    assert run.members == want["members"]
    assert run.started_ms is not None
    assert run.ended_ms is not None
    assert run.ended_ms - run.started_ms == want["end_ms"] - want["start_ms"]
    (tool,) = right["tool"]
    record = case.record(tool["span_id"])
    assert (record.tool_call_id, record.outputs, record.duration_ms) == (
        tool["call_id"],
        tool["result"],
        tool["duration_ms"],
    )
    assert case.report.agents == right["records"]["agent"]
    assert case.report.foreign == right["records"]["other"]


def test_any_order_of_lines_gives_the_same(tmp_path: Path) -> None:
    first = told(ingested("014", tmp_path))
    for n, order in enumerate(itertools.permutations(range(4))):
        where = tmp_path / str(n)
        where.mkdir()
        assert told(ingested("014", where, order)) == first
