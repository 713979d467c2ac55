"""The frame of the benchmarks: goals, rows, and the one function that judges."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.__main__ import GROUPS, main, meets
from benchmarks.samples import event
from otel_agentrec.journal.canonical import canonical

GOALS = json.loads((Path(__file__).parent.parent / "benchmarks" / "goals.json").read_text())


@pytest.mark.parametrize(
    ("goal", "ours", "met"),
    [
        ("<= 2.2", 2.2, True),
        ("<= 2.2", 2.21, False),
        (">= 0.7", 0.7, True),
        (">= 0.7", 0.69, False),
        (">= 0.7", None, False),
        ("<= 2.2", None, False),
    ],
)
def test_a_row_that_was_not_measured_meets_no_goal(goal: str, ours: float | None, met: bool) -> None:
    assert meets(goal, ours) is met


def test_every_row_has_a_goal_and_every_goal_a_row() -> None:
    rows = Counter(row for group in GROUPS for row in group.ROWS)
    assert rows == Counter(GOALS.keys())


def test_goals_can_be_read() -> None:
    for goal in GOALS.values():
        relation, bound = goal["goal"].split()
        assert relation in ("<=", ">=")
        assert float(bound) > 0
        assert goal["unit"]


@pytest.mark.parametrize("size", [1_000, 6_000])
def test_events_have_the_size_that_they_are_named_after(size: int) -> None:
    assert 0.8 * size <= len(canonical(event(size))) <= 1.2 * size


def test_results_are_a_list_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(quick: bool) -> list[tuple[str, float]]:
        assert quick
        return [("canonical 1 KB", 4.5)]

    monkeypatch.setattr("benchmarks.canonical.rows", rows)
    monkeypatch.setattr("benchmarks.__main__.RESULTS", tmp_path / "results.json")
    assert main(["quick", "canonical"]) == 1
    assert json.loads((tmp_path / "results.json").read_text()) == [
        {"row": "canonical 1 KB", "ours": 4.5, "goal": GOALS["canonical 1 KB"]["goal"], "ok": False},
        {"row": "canonical 6 KB", "ours": None, "goal": GOALS["canonical 6 KB"]["goal"], "ok": False},
    ]
    assert "canonical 6 KB" in capsys.readouterr().out
