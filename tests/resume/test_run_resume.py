"""``otel-agentrec run --resume``: a program that was not changed goes on after a crash, and repeats nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from otel_agentrec.cli.app import app
from otel_agentrec.demo.script import Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import UsageError
from otel_agentrec.journal.reader import Recording, read_events
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.read import read_nodes

from .running import ANSWER, CALLS, EACH_ONCE, MODEL_CALLS, Shop, script, shop

BOUNDARIES = [f"before:s{n}" for n in range(1, 8)] + [f"done:{call}" for call in CALLS]
WINDOW = [f"{moment}:{call}" for call in CALLS for moment in ("inside", "after")]


def test_a_killed_program_goes_on_where_it_was(tmp_path: Path) -> None:
    with shop(tmp_path) as it:
        it.start("done:s2b")
        it.resume(kill_at="before:s5")
        done = it.resume()
        assert (done.returncode, done.stdout) == (0, f"{ANSWER}\n"), done.stderr
        assert it.effects() == EACH_ONCE
        assert len(it.model.requests) == MODEL_CALLS, "no model call is paid twice"
        again = it.resume()
        assert (again.returncode, again.stdout) == (2, "")
        assert "no run that did not come to its end" in again.stderr

    first, second, third = fold(Recording(it.recording)).runs
    assert [run.agent for run in (first, second, third)] == ["unchanged.py"] * 3
    assert [(run.status, run.root, run.attempt) for run in (first, second, third)] == [
        ("interrupted", first.id, 1),
        ("interrupted", first.id, 2),
        ("ok", first.id, 3),
    ]
    records = list(read_nodes(it.recording, run=third.id))
    assert [r.step for r in records if r.model_id] == list(range(1, MODEL_CALLS + 1))
    answered = [r.answered_from["run"] for r in records if r.answered_from]
    assert answered == [first.id] * 5 + [second.id] * 5
    assert third.tokens["input"] == sum(r.input_tokens or 0 for r in records if not r.answered_from)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["stream"], ["async", "agent"], ["span"], ["span", "agent"]], ids=" ".join)
def test_streams_and_tasks_and_agents_are_resumed_too(tmp_path: Path, words: list[str]) -> None:
    with shop(tmp_path, *words) as it:
        it.start("done:s2a")
        done = it.resume()
        assert done.returncode == 0, done.stderr
        if "stream" in words:
            undisturbed = Shop(tmp_path / "whole", it.model, words)
            undisturbed.where.mkdir()
            assert done.stdout == undisturbed.start().stdout
            it.model.requests[MODEL_CALLS:] = []
        assert done.stdout.endswith(f"{ANSWER}\n")
        assert it.effects() == EACH_ONCE
        assert len(it.model.requests) == MODEL_CALLS


def test_in_the_window_it_stops_with_75_however_it_ends(tmp_path: Path) -> None:
    with shop(tmp_path) as it:
        it.start("after:s1")
        (unknown,) = it.unknown()
        before, asked = it.effects(), len(it.model.requests)
        it.words = ["hard"]
        stopped = it.resume()
        assert stopped.returncode == 75, stopped.stderr
        assert f"effect {unknown.id}" in stopped.stderr
        assert "otel-agentrec resolve" in stopped.stderr
        assert "Traceback" not in stopped.stderr
        assert (it.effects(), len(it.model.requests)) == (before, asked), "nothing happened for real"
        it.words = []
        it.settle()
        assert it.resume().returncode == 0
        assert it.effects() == EACH_ONCE
        assert len(it.model.requests) == MODEL_CALLS


@pytest.mark.slow
def test_a_clock_in_the_prompt_is_a_divergence_and_says_where(tmp_path: Path) -> None:
    with shop(tmp_path, "clock") as it:
        it.start("before:s3")
        before = it.effects()
        stopped = it.resume()
        assert stopped.returncode == 76, stopped.stderr
        assert "$.messages[0].content" in stopped.stderr
        assert "It is " in stopped.stderr
        assert (it.effects(), len(it.model.requests)) == (before, 2)
        live = it.resume("--on-divergence", "live")
        assert live.returncode == 75, "a charge may be one that was made"
        assert it.effects() == before
        assert "for real" in live.stderr
        declared = it.resume("--inert", "$.messages[0].content")
        assert declared.returncode == 0, declared.stderr
        assert it.effects() == EACH_ONCE


@pytest.mark.slow
def test_a_tool_that_nobody_intercepts_is_not_asked_for_again(tmp_path: Path) -> None:
    done = dict.fromkeys(CALLS[:6], 1)
    with shop(tmp_path, "bare") as it:
        it.start(f"done:{CALLS[5]}")
        stopped = it.resume()
        assert stopped.returncode == 2
        assert "charge" in stopped.stderr
        assert "--rerun-tools charge" in stopped.stderr
        assert it.effects() == done
        allowed = it.resume("--rerun-tools", "charge")
        assert (allowed.returncode, allowed.stdout) == (0, f"{ANSWER}\n"), allowed.stderr
        assert it.effects() == EACH_ONCE | dict.fromkeys(done, 2), "as it was allowed"


def test_tools_that_an_executor_calls_are_intercepted_whatever_their_names(tmp_path: Path) -> None:
    with shop(tmp_path, "executor") as it:
        it.start("after:s3")
        stopped = it.resume()
        assert stopped.returncode == 75, stopped.stderr
        it.settle()
        it.finish()
        assert it.effects() == EACH_ONCE
        assert len(it.model.requests) == MODEL_CALLS


@pytest.mark.slow
def test_a_framework_that_only_an_instrumentation_has_imported_runs_no_tool_of_the_program(tmp_path: Path) -> None:
    there = tmp_path / "site"
    (there / "mcp" / "client").mkdir(parents=True)
    for package in ("mcp", "mcp/client"):
        (there / package / "__init__.py").touch()
    session = "class ClientSession:\n    async def call_tool(self, name, arguments=None): ...\n"
    (there / "mcp" / "client" / "session.py").write_text(session)
    (there / "sitecustomize.py").write_text("import mcp.client.session\n")  # as instrumentations do, before the program
    with shop(tmp_path, "bare") as it:
        it.beside = [str(there)]
        it.start(f"done:{CALLS[5]}")
        hooked = [row for e in read_events(it.recording) if e.type == "COVERAGE" for row in e.payload["points"]]
        assert [row["covered"] for row in hooked if row["library"] == "mcp"] == [True]
        stopped = it.resume()
        assert (stopped.returncode, it.effects()) == (2, dict.fromkeys(CALLS[:6], 1)), stopped.stderr
        replay = [sys.executable, "-m", "otel_agentrec", "replay", str(it.recording), "--", *it.program]
        environ = {**os.environ, "OPENAI_BASE_URL": it.model.base_url, "OPENAI_API_KEY": "none"}
        environ["PYTHONPATH"] = os.pathsep.join([*sys.path, str(there)])
        argv = [*replay, str(tmp_path / "effects"), "never", "bare"]
        done = subprocess.run(argv, env=environ, capture_output=True, timeout=120)
        assert (done.returncode, it.effects()) == (125, dict.fromkeys(CALLS[:6], 1)), done.stderr


@pytest.mark.slow
def test_nor_is_one_that_only_telemetry_tells_of(tmp_path: Path) -> None:
    with shop(tmp_path, "bare") as it:
        it.variables["OTEL_AGENTREC_WIRE"] = "false"
        it.start("done:s1")
        it.variables.clear()
        stopped = it.resume()
        assert stopped.returncode == 2
        assert "charge" in stopped.stderr
        assert "an answer that is not kept as it came" in stopped.stderr
        assert (it.effects(), len(it.model.requests)) == ({"s1": 1}, 1)
        done = it.resume("--rerun-tools", "charge")
        assert (done.returncode, done.stdout) == (0, f"{ANSWER}\n"), done.stderr
        assert it.effects() == EACH_ONCE | {"s1": 2}, "as it was allowed"


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("bare",), ("stream",), ("async",), ("agent",)], ids="-".join)
@pytest.mark.parametrize("spans", ["spans", "no spans"])
def test_an_answer_that_the_program_had_is_not_paid_again(tmp_path: Path, words: tuple[str, ...], spans: str) -> None:
    with shop(tmp_path, *words) as it:
        if spans == "no spans":
            it.variables["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"] = "*"
        it.start("answered:s1")
        it.resume(*(["--rerun-tools", "charge"] if "bare" in words else []), kill_at="answered:s3")
        it.variables.clear()
        finished = it.resume(*(["--rerun-tools", "charge"] if "bare" in words else []))
        assert finished.returncode == 0, finished.stderr
        assert len(it.model.requests) == MODEL_CALLS
        assert "bare" in words or it.effects() == EACH_ONCE


@pytest.mark.slow
@pytest.mark.parametrize("word", ["swallow", "exception"])
def test_the_exit_code_stands_however_it_ends(tmp_path: Path, word: str) -> None:
    with shop(tmp_path, word) as it:
        it.start("after:s1")
        stopped = it.resume()
        assert stopped.returncode == 75, stopped.stderr
        assert "Traceback" not in stopped.stderr


def test_what_can_not_be_resumed_is_refused_before_the_program_starts(tmp_path: Path) -> None:
    with shop(tmp_path) as it:
        for options, why in [
            (["--resume", str(tmp_path / "none")], "none"),
            (["--run", "abc"], "--resume"),
            (["--out", "x", "--resume", "y"], "can't be used together"),
        ]:
            refused = it._run(options, "never")
            assert (refused.returncode, refused.stdout) == (2, "")
            assert why in refused.stderr
        assert it.effects() == {}


def test_nothing_is_resumed_where_recording_is_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would answer, and all that was done would be done once more."""
    monkeypatch.setenv("OTEL_AGENTREC_ENABLED", "false")
    refused = CliRunner().invoke(app, ["run", "--resume", str(tmp_path), "--", "python", "-c", "pass"])
    assert isinstance(refused.exception, UsageError)
    assert "OTEL_AGENTREC_ENABLED=false" in str(refused.exception)


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("words", ["", "stream", "async agent"])
@pytest.mark.parametrize("kill_at", [*BOUNDARIES, *WINDOW])
def test_killed_anywhere(tmp_path: Path, kill_at: str, words: str) -> None:
    with shop(tmp_path, *words.split()) as it:
        it.start(kill_at)
        it.finish()
        assert it.effects() == EACH_ONCE
        assert len(it.model.requests) == MODEL_CALLS


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("again", [*BOUNDARIES[3:], *WINDOW[4:]])
def test_killed_again_while_it_is_resumed(tmp_path: Path, again: str) -> None:
    with shop(tmp_path) as it:
        it.start("before:s2")
        it.resume(kill_at=again)
        it.finish()
        assert it.effects() == EACH_ONCE
        assert len(it.model.requests) == MODEL_CALLS


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [*BOUNDARIES[1:], *WINDOW])
def test_a_clock_never_makes_two_effects_of_one(tmp_path: Path, kill_at: str) -> None:
    with shop(tmp_path, "clock") as it:
        it.start(kill_at)
        for options in ([], ["--on-divergence", "live"]):
            stopped = it.resume(*options)
            assert stopped.returncode in (75, 76), stopped.stderr
        assert set(it.effects().values()) <= {1}


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [*BOUNDARIES[1:], *WINDOW])
def test_a_model_that_words_its_answer_differently_never_makes_two_effects_of_one(tmp_path: Path, kill_at: str) -> None:
    """What is asked for again from the frontier on gets other words, and other ids of calls."""
    with shop(tmp_path) as it:
        it.start(kill_at)
        with ScriptedServer(script("Let me see."), seed="another") as it.model:
            it.finish()
        assert it.effects() == EACH_ONCE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "waits"), [([], True), (["--retries", "collapse"], False)], ids=["as it was", "collapsed"]
)
def test_what_was_asked_again_is_answered_as_it_was_or_once(tmp_path: Path, option: list[str], waits: bool) -> None:
    busy = Turn("busy", status=429, headers={"retry-after": "2"}, when=When(step=2))
    with shop(tmp_path, turns=[busy, *script()]) as it:
        it.start("done:s2b")
        asked, began = len(it.model.requests), time.monotonic()
        done = it.resume(*option, kill_at="before:s3")
        took = time.monotonic() - began
        assert len(it.model.requests) == asked, done.stderr
        answered = [w for w in fold(Recording(it.recording)).wires if w.answered_from is not None]
        assert len(answered) == (3 if waits else 2)
        assert not waits or took > 2.0
        assert it.resume(*option).returncode == 0
        assert it.effects() == EACH_ONCE
        assert len(it.model.requests) == MODEL_CALLS + 1
