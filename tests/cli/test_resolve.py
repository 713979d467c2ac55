"""resolve settles an effect that nobody knows the outcome of; runs and show say which there are."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from otel_agentrec import agent_run, configure, verify
from otel_agentrec.cli.app import app
from otel_agentrec.cli.app import run as run_app
from otel_agentrec.intercept import declared, stopped
from otel_agentrec.journal import times
from otel_agentrec.journal.claims import Claim
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import Effect, read_effects
from otel_agentrec.resume.attempt import forget_attempts
from otel_agentrec.resume.tools import resumable_tool


def lost(tmp_path: Path) -> Path:
    """A recording of a payment that was cut off."""

    @resumable_tool
    def pay(order: str, cents: int) -> None:
        raise TimeoutError

    where = tmp_path / "rec"
    with pytest.raises(TimeoutError), configure(where), agent_run("shop"):
        pay("o-1", 5)
    declared.forget()
    stopped.STOPPED.clear()
    return where


def the_effect(where: Path) -> Effect:
    (effect,) = read_effects(Recording(where))
    return effect


def call(*argv: Any) -> Result:
    return CliRunner().invoke(app, [str(word) for word in argv], catch_exceptions=True)


def test_runs_and_show_tell_of_it_with_the_command_to_copy(tmp_path: Path) -> None:
    where = lost(tmp_path)
    effect = the_effect(where)
    for command in ("runs", "show"):
        out = call(command, where).output
        assert "UNKNOWN pay(cents=5, order=o-1) begun" in out.replace('"', "")
        assert f"otel-agentrec resolve {where} {effect.id} --done OUTPUT" in out
        told = json.loads(call(command, where, "--json").output)
        (unknown,) = told["unknownEffects"]
        assert (unknown["effectId"], unknown["arguments"]) == (effect.id, {"order": "o-1", "cents": 5})


@pytest.mark.parametrize(("text", "output"), [('{"n": 1}', {"n": 1}), ("paid", "paid"), ("null", None)])
def test_it_happened_and_gave_this(tmp_path: Path, text: str, output: Any) -> None:
    where = lost(tmp_path)
    done = call("resolve", where, the_effect(where).id[:8], "--done", text, "--by", "ann", "--reason", "seen", "--json")
    assert (done.exit_code, json.loads(done.output)["outcome"]) == (0, "done")
    effect = the_effect(where)
    assert (effect.state, effect.output) == ("done", output)
    assert effect.resolved is not None
    assert (effect.resolved["by"], effect.resolved["reason"]) == ("ann", "seen")
    assert "UNKNOWN" not in call("show", where).output
    assert verify(where).is_valid


def test_a_clock_that_was_set_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun at three, settled and begun once more when the clock said one: it is unknown again, and can be settled again."""
    monkeypatch.setattr(times, "_floor", 0)
    real = time.time_ns
    monkeypatch.setattr(times.time, "time_ns", lambda: real() + 2 * 3600 * 10**9)
    where = lost(tmp_path)
    monkeypatch.setattr(times.time, "time_ns", real)
    monkeypatch.setattr(times, "_floor", 0)
    first = the_effect(where)
    assert call("resolve", where, first.id, "--not-done").exit_code == 0
    assert the_effect(where).state == "not_begun"

    monkeypatch.setattr(times, "_floor", 0)  # another process
    monkeypatch.setenv("OTEL_AGENTREC_RESUME", str(where))
    lost(tmp_path)
    forget_attempts()
    again = the_effect(where)
    assert (again.id, again.state) == (first.id, "unknown")
    assert call("resolve", where, again.id, "--done", "paid").exit_code == 0
    assert the_effect(where).state == "done"


def test_it_did_not_happen(tmp_path: Path) -> None:
    where = lost(tmp_path)
    done = call("resolve", where, the_effect(where).id, "--not-done")
    assert done.output.startswith("pay did not happen")
    assert the_effect(where).state == "not_begun"


def refusal(capsys: pytest.CaptureFixture[str], *argv: Any) -> str:
    assert run_app([str(word) for word in argv]) == 2
    return capsys.readouterr().err


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = lost(tmp_path)
    effect = the_effect(where)
    assert "say whether it happened" in refusal(capsys, "resolve", where, effect.id)
    assert "say whether it happened" in refusal(capsys, "resolve", where, effect.id, "--done", "1", "--not-done")
    assert "there is no effect 'nope'" in refusal(capsys, "resolve", where, "nope", "--not-done")
    claim = Claim(where, effect.root)
    assert "is being resumed or settled by process" in refusal(capsys, "resolve", where, effect.id, "--not-done")
    claim.release()
    assert call("resolve", where, effect.id, "--not-done", "--by", "ann").exit_code == 0
    assert "was settled as not done by ann" in refusal(capsys, "resolve", where, effect.id, "--done", "1")


def test_not_while_it_still_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @resumable_tool
    def slow() -> str:
        effect = the_effect(tmp_path / "rec")
        assert effect.state == "running"
        return refusal(capsys, "resolve", tmp_path / "rec", effect.id, "--not-done")

    with configure(tmp_path / "rec"), agent_run("shop"):
        assert "slow" in (said := slow()) and "is still running" in said
