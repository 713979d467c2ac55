"""A program whose one process held several runs is resumed as a whole: nothing of any of them happens, or is paid, twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from otel_agentrec.audit.verify import verify
from otel_agentrec.demo.script import Call, Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.journal.reader import Recording, read_events
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.wire import record_of_wire
from otel_agentrec.resume.choosing import resumables

from .running import Shop

PROGRAM = [sys.executable, str(Path(__file__).with_name("jobs_app.py"))]
MOMENTS = [
    "before:{}1",
    "inside:{}1",
    "after:{}1",
    "done:{}1",
    "before:{}2",
    "inside:{}2",
    "after:{}2",
    "done:{}2",
    "end:{}",
]


def script(jobs: str) -> list[Turn]:
    turns = []
    for job in jobs:
        about = rf"job {job}\."
        for n in (1, 2):
            call = Call("charge", {"order": f"{job}{n}"}, f"call_{job}{n}")
            turns.append(Turn("", tool_calls=[call], when=When(any=about, step=n), times=0))
        turns.append(Turn(f"Job {job} is done.", when=When(any=about, step=3), times=0))
    return turns


@contextmanager
def jobs(where: Path, how: str, *named: str, words: tuple[str, ...] = ()) -> Iterator[Shop]:
    with ScriptedServer(script("abc"), seed="same") as model:
        yield Shop(where, model, [how, ",".join(named), *words], PROGRAM)


def unfinished(it: Shop) -> list[str]:
    recording = Recording(it.recording)
    return [one.root for one in resumables(recording, fold(recording)) if not one.is_finished]


def finish(it: Shop, *, twins: bool = False) -> subprocess.CompletedProcess[str]:
    """Resume, settling what is unknown, until the program comes to its end.

    Args:
        twins: runs of one name begin side by side. One that had recorded nothing may be taken for the other if it asks first
            now: then it stops before anything happens, and is tried again.
    """
    for _ in range(12 if twins else 4):
        left = unfinished(it)
        done = it.resume(*(["--run", left[-1]] if len(left) > 1 else []))
        if done.returncode == 0:
            assert done.stdout.endswith("all jobs are done\n")
            return done
        if twins and done.returncode == 76:
            continue
        assert done.returncode == 75, done.stderr
        it.settle()
    raise AssertionError(f"it never came to its end: {done.stderr}")


def is_whole(it: Shop, names: str, cut_off: int = 0, *, twins: bool = False) -> None:
    """Every effect happened once, every model call was paid once, and the recording tells so.

    Args:
        twins: runs of one name begin side by side: one that was stopped before it asked for anything stays a run of its own.
        cut_off: how many model calls may have been under way in other threads when the process was killed: nobody has got
            their answers, so they are made again.
    """
    assert it.effects() == {f"{job}{n}": 1 for job in names for n in (1, 2)}
    asked = Counter(str(request.body["messages"][1:]) for request in it.model.requests)
    assert len(asked) == 3 * len(names)
    assert 0 <= asked.total() - len(asked) <= cut_off
    recording = Recording(it.recording)
    view = fold(recording)
    real = [record_of_wire(view, wire) for wire in view.wires if wire.answered_from is None and wire.complete]
    answered = Counter(str(told.body["messages"][1:]) for told in real)
    assert set(answered.values()) == {1}, "no answer that was had is paid again"
    left = set(unfinished(it))
    view = fold(recording)
    assert not left or (twins and not any(view.run_of_wire(wire) in left for wire in view.wires))
    assert verify(recording).is_valid


def test_a_run_that_was_finished_is_answered_and_the_other_goes_on(tmp_path: Path) -> None:
    with jobs(tmp_path, "loop", "first/a", "second/b") as it:
        it.start("after:b1")
        before = it.effects(), len(it.model.requests)
        stopped = it.resume()
        assert stopped.returncode == 75, stopped.stderr
        assert (it.effects(), len(it.model.requests)) == before, "nothing happened for real"
        it.settle()
        done = finish(it)
        assert done.stdout == "Job a is done.\nJob b is done.\nall jobs are done\n"
        is_whole(it, "ab")
        runs = fold(Recording(it.recording)).runs
        roots = {run.agent: run.id for run in runs if run.attempt == 1}
        assert [(run.agent, run.status, run.root == roots[run.agent or ""], run.attempt) for run in runs] == [
            ("first", "ok", True, 1),
            ("second", "interrupted", True, 1),
            ("first", "ok", True, 2),
            ("second", "error", True, 2),
            ("first", "ok", True, 3),
            ("second", "ok", True, 3),
        ]
        assert [run.tokens["input"] for run in runs if run.agent == "first"][1:] == [None, None]
        refused = it.resume()
        assert refused.returncode == 2
        assert "no run that did not come to its end" in refused.stderr


def test_two_runs_side_by_side_both_go_on(tmp_path: Path) -> None:
    with jobs(tmp_path, "threads", "shop/a", "shop/b") as it:
        it.start("done:b1")
        left = unfinished(it)
        if len(left) > 1:
            refused = it.resume()
            assert refused.returncode == 2
            assert "answered and gone on with too" in refused.stderr
        finish(it, twins=True)
        is_whole(it, "ab", cut_off=1, twins=True)
        assert {event.payload["root"] for event in read_events(it.recording) if event.type == "RUN_RESUMED"} >= set(
            left
        )


def test_a_run_that_was_stopped_at_its_very_first_call_goes_on_later(tmp_path: Path) -> None:
    with jobs(tmp_path, "tasks", "first/a", "second/b") as it:
        it.model.script.answer_next(Turn("too late", end="hang", when=When(any=r"job a\.", step=1)))
        it.start("after:b1")
        stopped = it.resume("--run", unfinished(it)[-1])
        assert stopped.returncode == 75, "what second did is unknown, so nothing new happens in first either"
        it.settle()
        assert it.resume("--run", unfinished(it)[-1]).returncode == 0
        is_whole(it, "ab", cut_off=1)
        runs = fold(Recording(it.recording)).runs
        assert [(run.agent, run.attempt, run.status) for run in runs[-2:]] == [("first", 3, "ok"), ("second", 3, "ok")]


@pytest.mark.slow
def test_a_loop_over_jobs_of_one_agent_goes_on_in_the_third(tmp_path: Path) -> None:
    with jobs(tmp_path, "loop", "shop/a", "shop/b", "shop/c") as it:
        it.start("done:c1")
        it.resume(kill_at="done:a1")
        it.resume(kill_at="before:c2")
        finish(it)
        is_whole(it, "abc")


@pytest.mark.slow
def test_a_program_that_was_killed_between_its_runs_goes_on_with_the_next(tmp_path: Path) -> None:
    with jobs(tmp_path, "loop", "shop/a", "shop/b", "shop/c") as it:
        it.start("ended:b")
        it.resume(kill_at="ended:a")
        it.resume(kill_at="after:c1")
        finish(it)
        is_whole(it, "abc")
        assert it.resume().returncode == 2, "it has come to its end"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["loop", "tasks"])
def test_equal_jobs_are_told_apart_by_their_order(tmp_path: Path, how: str) -> None:
    with jobs(tmp_path, how, "shop/a", "shop/a") as it:
        it.start("ended:a")
        finish(it)
        assert it.effects() == {"a1": 2, "a2": 2}
        assert len(it.model.requests) in ((6,) if how == "loop" else (6, 7))


@pytest.mark.slow
def test_a_program_that_leaves_out_what_it_has_done_goes_on_too(tmp_path: Path) -> None:
    with jobs(tmp_path, "loop", "shop/a", "shop/b", "shop/c", words=("skip",)) as it:
        (tmp_path / "effects.skip").write_text("")
        it.start("done:c1")
        (tmp_path / "effects.skip").write_text("a b")
        finish(it)
        is_whole(it, "abc")


@pytest.mark.slow
@pytest.mark.parametrize("agents", ["shop/a,shop/b", "first/a,second/b"])
def test_a_finished_run_that_asks_for_something_else_stops(tmp_path: Path, agents: str) -> None:
    with jobs(tmp_path, "loop", agents, words=("clock",)) as it:
        it.start("done:b1")
        before = it.effects(), len(it.model.requests)
        stopped = it.resume()
        assert stopped.returncode == 76, stopped.stderr
        assert (it.effects(), len(it.model.requests)) == before
        live = it.resume("--on-divergence", "live")
        assert live.returncode == 75, live.stderr
        assert it.effects() == before[0]
        it.words += ["swallow"]
        for options in ([], ["--on-divergence", "live"]):
            assert it.resume(*options).returncode in (75, 76)
            assert set(it.effects().values()) == {1}
        it.words.remove("swallow")
        declared = it.resume("--inert", "$.messages[0].content")
        assert declared.returncode == 0, declared.stderr
        assert it.effects() == {"a1": 1, "a2": 1, "b1": 1, "b2": 1}


@pytest.mark.slow
def test_a_run_that_is_new_does_not_do_what_was_done(tmp_path: Path) -> None:
    with jobs(tmp_path, "loop", "first/a", "second/b") as it:
        it.start("done:b1")
        before = it.effects()
        it.words += ["new"]
        stopped = it.resume()
        assert stopped.returncode == 76, stopped.stderr
        assert "charge is called for real in a run of other" in stopped.stderr
        assert it.effects() == before


@pytest.mark.slow
def test_calls_without_an_agent_are_a_run_among_them(tmp_path: Path) -> None:
    with jobs(tmp_path, "loop", "none/a", "shop/b", "none/c") as it:
        it.start("done:c1")
        finish(it)
        is_whole(it, "abc")


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("named", ["first/a,second/b", "shop/a,shop/b"])
@pytest.mark.parametrize("how", ["loop", "threads", "tasks"])
@pytest.mark.parametrize("moment", [*MOMENTS, "ended:{}"])
@pytest.mark.parametrize("job", ["a", "b"])
def test_killed_anywhere(tmp_path: Path, named: str, how: str, moment: str, job: str) -> None:
    with jobs(tmp_path, how, named) as it:
        it.start(moment.format(job))
        twins = how != "loop" and named.startswith("shop")
        finish(it, twins=twins)
        is_whole(it, "ab", cut_off=0 if how == "loop" else 1, twins=twins)


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("moment", [*MOMENTS, "ended:{}"])
def test_a_loop_killed_in_the_third_job(tmp_path: Path, moment: str) -> None:
    with jobs(tmp_path, "loop", "shop/a", "shop/b", "shop/c") as it:
        it.start(moment.format("c"))
        finish(it)
        is_whole(it, "abc")


@pytest.mark.parametrize("named", ["first/a,second/b", pytest.param("shop/a,shop/b,shop/c", marks=pytest.mark.slow)])
def test_a_program_that_resumes_itself_does_so_with_all_its_runs(tmp_path: Path, named: str) -> None:
    def start(kill_at: str, *, resume: bool) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        more = {"OTEL_AGENTREC_RESUME": str(tmp_path / "rec")} if resume else {}
        argv = [sys.executable, str(Path(__file__).with_name("self_resuming_app.py"))]
        argv += [str(tmp_path / "rec"), str(tmp_path / "effects"), kill_at, named]
        environ = {**kept, **more, "PYTHONPATH": str(Path(__file__).parents[2])}
        return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60)

    last = named[-1]
    assert start(f"done:{last}", resume=False).returncode < 0
    done = start("never", resume=True)
    assert (done.returncode, done.stdout) == (0, "finished\n"), done.stderr
    happened = (tmp_path / "effects").read_text().split()
    jobs_done = [one.split("/")[1] for one in named.split(",")]
    assert sorted(happened) == sorted(what for job in jobs_done for what in (job, f"{job}-first?", f"{job}-last?"))
    statuses = [(run.agent, run.status, run.attempt) for run in fold(Recording(tmp_path / "rec")).runs]
    names = [one.split("/")[0] for one in named.split(",")]
    before = [(name, "ok", 1) for name in names[:-1]] + [(names[-1], "interrupted", 1)]
    assert statuses == [*before, *((name, "ok", 2) for name in names)]
