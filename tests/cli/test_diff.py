"""``otel-agentrec diff``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_agentrec.capture.ingest import ingest
from otel_agentrec.cli.app import run
from tests.cli.conftest import BEGIN, message, model, text

Out = pytest.CaptureFixture[str]


def record(where: Path, *answers: str) -> str:
    """A run of bare model calls in one trace."""
    spans = [
        model("ab" * 16, 10.0 * n, 1.0, n + 1, 0, message("user", text(f"q{n}")), message("assistant", text(a)), "m")
        for n, a in enumerate(answers)
    ]
    where.mkdir()
    body = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "s"}, "spans": spans}]}]}
    (where / "t.jsonl").write_text(json.dumps(body))
    ingest([where / "t.jsonl"], where / "rec")
    assert BEGIN
    return str(where / "rec")


def test_the_same_is_said_with_code_0(tmp_path: Path, capsys: Out) -> None:
    a, b = record(tmp_path / "a", "x", "y"), record(tmp_path / "b", "x", "y")
    assert run(["diff", a, b]) == 0
    assert capsys.readouterr().out == "the same: 2 calls\n"


def test_where_they_part_is_said_with_code_1(tmp_path: Path, capsys: Out) -> None:
    a, b = record(tmp_path / "a", "x", "y\x1b[31m"), record(tmp_path / "b", "x", "z")
    assert run(["diff", a, b]) == 1
    out = capsys.readouterr().out
    assert "They part at step" in out and "$.outputText: value" in out and "< y\\x1b[31m" in out and "> z" in out
    assert out.rstrip().endswith("1 the same, 1 changed") and "\x1b" not in out
    assert run(["diff", a, b, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["same"], told["firstDivergence"], told["calls"][1]["status"]) == (False, 1, "changed")


def test_what_can_not_be_compared_is_refused(tmp_path: Path, capsys: Out) -> None:
    a = record(tmp_path / "a", "x")
    for words in ([a, a], [a, str(tmp_path / "nowhere")], [a, a, "--run-a", "zz"]):
        assert run(["diff", *words]) == 2
        assert capsys.readouterr().out == ""
