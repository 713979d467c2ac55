"""``stats``: what a person reads and what a program reads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from otel_agentrec.cli.app import run
from otel_agentrec.journal.journal import Journal
from tests.cli.conftest import NEW, OLD
from tests.cli.test_commands import Out, jsons, lines


def test_stats_in_words(recording: Path, capsys: Out) -> None:
    said = lines(capsys, "stats", recording)
    assert said[0].startswith("2 runs, 3 model calls, 2 tool calls  ")
    assert said[0].endswith("4 ok  1 error")
    assert said[1] == "300 tokens in, 21 out"
    table = [line.split() for line in said if line]
    assert ["model", "calls", "mean", "p50", "p95", "max", "in", "out"] in table
    assert ["gpt-5", "2", "3.0", "s", "2.0", "s", "4.0", "s", "4.0", "s", "200", "14"] in table
    assert ["refund", "1", "1", "2.0", "s", "2.0", "s", "2.0", "s", "2.0", "s"] in table
    assert ["clerk", "2", "200", "14"] in table
    assert ["Timeout", "1"] in table


def test_stats_json_is_one_object(recording: Path, capsys: Out) -> None:
    (found,) = jsons(capsys, "stats", recording)
    assert (found["runs"], found["records"], found["tokens"]["input"]) == (2, 5, 300)
    assert found["status"] == {"ok": 4, "error": 1, "interrupted": 0, "partial": 0}
    assert [(m["model"], m["latencyMs"]["p95"]) for m in found["byModel"]] == [("gpt-5", 4000), ("gpt-5-mini", 1000)]
    assert (found["cost"], found["dropped"]) == (None, 0)


@pytest.mark.parametrize(
    ("flags", "runs", "records"),
    [
        (["--run", NEW], 1, 1),
        (["--run", OLD[:6]], 1, 4),
        (["--session", "chat-*"], 1, 4),
        (["--session", "chat"], 0, 0),
        (["--since", "2023-11-14T23:00:00Z"], 1, 1),
        (["--since", "1s"], 0, 0),
    ],
)
def test_stats_of_a_part(recording: Path, capsys: Out, flags: list[str], runs: int, records: int) -> None:
    (found,) = jsons(capsys, "stats", recording, *flags)
    assert (found["runs"], found["records"]) == (runs, records)


def test_stats_and_runs_print_the_same_numbers(recording: Path, capsys: Out) -> None:
    runs = jsons(capsys, "runs", recording)
    for wanted in runs:
        (found,) = jsons(capsys, "stats", recording, "--run", wanted["id"])
        assert (found["records"], found["tokens"]["input"]) == (wanted["records"], wanted["tokens"]["input"])


def test_the_keys_are_always_there(recording: Path, capsys: Out) -> None:
    (full,), (empty,) = jsons(capsys, "stats", recording), jsons(capsys, "stats", recording, "--since", "1s")
    assert full.keys() == empty.keys()
    assert full["models"].keys() == empty["models"].keys()
    assert full["tokens"].keys() == empty["tokens"].keys()


def test_what_must_be_known_before_the_numbers_are_trusted(tmp_path: Path, capsys: Out) -> None:
    journal = Journal(tmp_path / "rec", origin="here", counted=lambda: {"swallowed": 2, "evicted": 1})
    journal.drop(3, "ENOSPC")
    journal.append("NODE_RECORDED", {"type": "MODEL", "name": "chat", "facts": {"model": "m \x1b[31m"}})
    journal.seal()
    said = "\n".join(lines(capsys, "stats", tmp_path / "rec"))
    assert "ENOSPC" in said and said.split("ENOSPC")[1].split()[0] == "3"
    assert "1 model call came without messages" in said
    assert "2 exceptions swallowed while recording" in said
    assert "1 spans given up because too many were open" in said
    assert "\x1b" not in said


def test_cost_is_said_where_it_is_known(tmp_path: Path, capsys: Out) -> None:
    pytest.importorskip("genai_prices")
    journal = Journal(tmp_path / "rec", origin="here")
    for model in ("gpt-4o-mini", "home-made"):
        facts = {"model": model, "provider": "openai", "inputTokens": 1_000_000, "outputTokens": 0}
        journal.append("NODE_RECORDED", {"type": "MODEL", "name": "chat", "facts": facts})
    journal.seal()
    said = lines(capsys, "stats", tmp_path / "rec", "--cost")
    assert said[1].endswith("$0.150000")
    assert said[-1] == "no price known for 1 model call: home-made"
    (found,) = jsons(capsys, "stats", tmp_path / "rec", "--cost")
    assert found["cost"] == {"usd": 0.15, "priced": 1, "unpriced": 1}


def test_without_the_extra_only_cost_is_refused(recording: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert run(["stats", str(recording), "--cost"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[1].strip()) == ("", "pip install 'otel-agentrec[prices]'")
    assert lines(capsys, "stats", recording)
