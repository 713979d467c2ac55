"""A process that is killed anywhere goes on without repeating an effect, and stops where nobody knows of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec import read_nodes
from otel_agentrec.journal.reader import Recording, read_events
from otel_agentrec.nodes.effects import read_effects

from .killing import AGENT, CALLS, EACH_ONCE, Shop

BOUNDARIES = [f"before:s{n}" for n in range(1, 7)] + [f"done:{call}" for call in CALLS]
WINDOW = [f"{moment}:{call}" for call in CALLS for moment in ("inside", "after")]


def settle(shop: Shop) -> None:
    """Do what an operator does: look whether each unknown effect happened, and say so."""
    for effect in shop.unknown():
        name = effect.arguments["order"]
        if shop.effects().get(name):
            say = ["--done", json.dumps({"receipt": f"r-{name}"})]
        else:
            say = ["--not-done"]
        argv = [sys.executable, "-m", "otel_agentrec", "resolve", str(shop.recording), effect.id, *say]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def finish(shop: Shop) -> None:
    """Resume, settling what is unknown, until the program comes to its end."""
    for _ in range(3):
        done = shop.start(resume=True)
        if done.returncode == 0:
            assert done.stdout == "finished\n"
            return
        assert "UnknownOutcomeError" in done.stderr, done.stderr
        settle(shop)
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize(("kill_at", "mode"), [("done:s2a", "threads"), ("done:s4b", "executor")])
def test_between_steps_it_just_goes_on(tmp_path: Path, kill_at: str, mode: str) -> None:
    shop = Shop(tmp_path, mode)
    shop.start(kill_at)
    assert shop.unknown() == []
    done = shop.start(resume=True)
    assert (done.returncode, done.stdout) == (0, "finished\n"), done.stderr
    assert shop.effects() == EACH_ONCE


@pytest.mark.parametrize(
    ("kill_at", "happened", "mode"),
    [
        ("after:s3", True, "threads"),
        pytest.param("inside:s3", False, "threads", marks=pytest.mark.slow),
        pytest.param("after:s3", True, "executor-async", marks=pytest.mark.slow),
    ],
)
def test_in_the_window_it_stops_and_says_which_effect(tmp_path: Path, kill_at: str, happened: bool, mode: str) -> None:
    shop = Shop(tmp_path, mode)
    shop.start(kill_at)
    (unknown,) = shop.unknown()
    assert (unknown.name, unknown.arguments) == ("charge", {"order": "s3", "cents": 5})
    before = shop.effects()
    assert ("s3" in before) is happened
    stopped = shop.start(resume=True)
    assert stopped.returncode != 0
    assert f"effect {unknown.id}" in stopped.stderr
    assert shop.effects() == before, "nothing else is run for real"
    finish(shop)
    assert shop.effects() == EACH_ONCE


def test_every_answer_is_journalled_and_says_where_it_comes_from(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.start("before:s3")
    shop.start(resume=True)
    first, second = {e.run or e.trace["traceId"]: 0 for e in read_events(shop.recording) if e.type == "RUN_STARTED"}
    (resumed,) = [e for e in read_events(shop.recording) if e.type == "RUN_RESUMED"]
    assert (resumed.run, resumed.payload) == (second, {"root": first, "from": {"run": first}})
    tools = {r.inputs["arguments"]["order"]: r for r in read_nodes(shop.recording, run=second) if r.tool_name}
    assert sorted(tools) == CALLS
    answered = {name: r.answered_from for name, r in tools.items() if r.answered_from}
    assert sorted(answered) == ["s1", "s2a", "s2b"]
    assert {told["run"] for told in answered.values()} == {first}
    assert tools["s1"].outputs == tools["s6"].outputs | {"receipt": "r-s1"}


def test_a_finished_run_is_not_resumed(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    assert shop.start().returncode == 0
    again = shop.start(resume=True)
    assert again.returncode != 0
    assert "no run that did not come to its end" in again.stderr
    assert shop.effects() == EACH_ONCE


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["threads", "async", "executor", "executor-async"])
@pytest.mark.parametrize("kill_at", [*BOUNDARIES, *WINDOW])
def test_killed_anywhere(tmp_path: Path, kill_at: str, mode: str) -> None:
    shop = Shop(tmp_path, mode)
    shop.start(kill_at)
    unknown = {effect.arguments["order"] for effect in shop.unknown()}
    moment, call = kill_at.split(":")
    beside = {one for one in CALLS if one != call and one[:2] == call[:2]}  # it may have been in its own window
    assert unknown - beside == ({call} if moment in ("inside", "after") else set())
    finish(shop)
    assert shop.effects() == EACH_ONCE


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("again", [*BOUNDARIES[6:], *WINDOW])
def test_killed_again_while_it_is_resumed(tmp_path: Path, again: str) -> None:
    shop = Shop(tmp_path)
    shop.start("before:s2")
    call = again.split(":")[1]
    if call == "s1" and not again.startswith("done"):
        pytest.skip("s1 is answered, so nothing of it runs")
    shop.start(again, resume=True)
    finish(shop)
    assert shop.effects() == EACH_ONCE


def test_a_disk_that_is_full_stops_before_the_effect(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    full = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)); "
    code = full + limit + f"import runpy; runpy.run_path({str(AGENT)!r}, run_name='__main__')"
    argv = [sys.executable, "-c", code, str(shop.recording), str(tmp_path / "effects"), "never", "threads"]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    assert done.returncode != 0
    assert "LedgerUnavailable" in done.stderr
    known = {e.arguments["order"]: e.state for e in read_effects(Recording(shop.recording))}
    happened = set(shop.effects())
    assert happened, "it was not full from the beginning"
    assert happened <= set(known), "no effect without its intent"
    assert shop.effects() == dict.fromkeys(happened, 1)
