"""A program of several processes: one of them is answered from the recording; what the others did is not done again unseen."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from otel_agentrec.errors import RecordingBusy
from otel_agentrec.journal.canonical import canonical
from otel_agentrec.journal.chain import GENESIS
from otel_agentrec.resume.processes import Kin, Process, refuse_kin

PROGRAM = Path(__file__).with_name("family_app.py")
ROOT = str(Path(__file__).parents[2])
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
SLOW = pytest.mark.slow


@dataclass
class Family:
    """One recording and its file of effects."""

    where: Path

    def run(self, orders: str, how: str = "none", *options: str, kill_at: str = "never") -> tuple[int, str]:
        """(exit code, what it said) of the program, recorded."""
        chosen = options or ("--out", str(self.where / "rec"))
        argv = [sys.executable, "-m", "otel_agentrec", "run", *chosen, "--", sys.executable, str(PROGRAM)]
        argv += [str(self.where / "effects"), kill_at, how, orders]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        done = subprocess.run(argv, env={**kept, "PYTHONPATH": ROOT}, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def killed(self, orders: str, how: str = "none", *, at: str = "end") -> None:
        code, told = self.run(orders, how, kill_at=at)
        assert code == -signal.SIGKILL, told

    def resume(self, orders: str, how: str = "none", *options: str, kill_at: str = "never") -> tuple[int, str]:
        return self.run(orders, how, "--resume", str(self.where / "rec"), *options, kill_at=kill_at)

    @property
    def effects(self) -> dict[str, int]:
        return dict(Counter((self.where / "effects").read_text().split()))


@pytest.fixture
def family(tmp_path: Path) -> Family:
    return Family(tmp_path)


@pytest.mark.parametrize(
    "how", ["subprocess", pytest.param("spawn", marks=SLOW), pytest.param("fork", marks=[FORKS, SLOW])]
)
def test_what_a_child_did_is_not_done_again(family: Family, how: str) -> None:
    family.killed("p1,c1", how)
    code, told = family.resume("p1,c1,p2", how)
    assert code == 2, told
    assert "did charge" in told
    assert "--rerun-processes" in told
    assert family.effects == {"p1": 1, "c1": 1}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["subprocess", pytest.param("fork", marks=FORKS)])
def test_a_child_that_was_killed_in_the_window_is_told_of_too(family: Family, how: str) -> None:
    family.killed("p1,c1,end", how, at="after:c1")
    code, told = family.resume("p1,c1", how)
    assert code == 2, told
    assert "did charge" in told
    assert family.effects == {"p1": 1, "c1": 1}


@pytest.mark.slow
def test_it_is_done_again_where_that_is_allowed(family: Family) -> None:
    family.killed("p1,c1", "subprocess")
    code, told = family.resume("p1,c1,p2", "subprocess", "--rerun-processes")
    assert (code, family.effects) == (0, {"p1": 1, "c1": 2, "p2": 1}), told


@pytest.mark.slow
@FORKS
def test_what_was_done_inside_a_tool_is_answered_with_it(family: Family) -> None:
    family.killed("p1,c1", "inside")
    code, told = family.resume("p1,c1,p2", "inside")
    assert (code, family.effects) == (0, {"p1": 1, "c1": 1, "p2": 1}), told
    code, told = family.resume("p1,c1,p2", "inside")
    assert code == 2, "it has come to its end, whatever its children tell of theirs"
    assert family.effects == {"p1": 1, "c1": 1, "p2": 1}


@pytest.mark.parametrize(
    "how",
    [pytest.param("subprocess", marks=SLOW), pytest.param("spawn", marks=SLOW), pytest.param("fork", marks=FORKS)],
)
def test_a_child_that_is_new_does_not_do_what_was_done(family: Family, how: str) -> None:
    family.killed("p1,pc1")
    _, told = family.resume("p1,c1,c3,p2", how)
    assert "charge is called in a process that is not answered from the recording" in told
    assert family.effects == {"p1": 1, "c1": 1, "c3": 1, "p2": 1}


@pytest.mark.slow
def test_children_of_an_attempt_count_for_the_next_one(family: Family) -> None:
    family.killed("p1")
    code, told = family.resume("p1,c1,p2", "subprocess", kill_at="p2")
    assert code == -signal.SIGKILL, told
    assert family.resume("p1,c1,p2", "subprocess")[0] == 2
    assert family.effects == {"p1": 1, "c1": 1}


@pytest.mark.slow
def test_a_process_that_was_left_over_begins_nothing_once_another_command_goes_on(family: Family) -> None:
    family.killed("p1,c1", "late")
    code, told = family.resume("p1,p2")
    assert (code, family.effects) == (0, {"p1": 1, "p2": 1}), told
    (family.where / "effects.go").touch()
    said = family.where / "effects.late"
    until = time.monotonic() + 60
    while "gone on with by another command" not in said.read_text() and time.monotonic() < until:
        time.sleep(0.1)
    assert "gone on with by another command" in said.read_text()
    assert family.effects == {"p1": 1, "p2": 1}


def test_another_program_in_the_same_directory_is_not_meant(family: Family) -> None:
    family.killed("p1")
    assert family.run("p7,p8")[0] == 0
    code, told = family.resume("p1,p2")
    assert (code, family.effects) == (0, {"p1": 1, "p2": 1, "p7": 1, "p8": 1}), told


def test_a_process_that_still_runs_is_waited_for() -> None:
    alive = Kin(Process("s-2", "ra/p1/p2", pid=7), is_alive=True)
    with pytest.raises(RecordingBusy, match="process 7 "):
        refuse_kin([alive], "root", rerun=True)


@pytest.mark.slow
def test_recordings_that_do_not_tell_commands_go_by_time(family: Family) -> None:
    family.killed("p1,c1,p2", "subprocess", at="p2")
    as_of_old(family.where / "rec")
    code, told = family.resume("p1,c1,p2", "subprocess")
    assert (code, family.effects) == (2, {"p1": 1, "c1": 1}), told
    assert family.run("p7")[0] == 0, "a new stream tells its command, so it is no child of an old one"
    code, told = family.resume("p1,c1,p2", "subprocess", "--rerun-processes")
    assert (code, family.effects) == (0, {"p1": 1, "c1": 2, "p2": 1, "p7": 1}), told


def as_of_old(recording: Path) -> None:
    """Take out of STREAM_OPENED what earlier versions did not write."""
    for path in recording.glob("index*"):
        path.unlink()
    for path in recording.glob("2*.jsonl"):
        if path.name.endswith(".content.jsonl"):
            continue
        previous, lines = GENESIS, []
        for line in path.read_bytes().splitlines():
            event = json.loads(line)["event"]
            if event["type"] == "STREAM_OPENED":
                del event["payload"]["process"]
                event["payload"].pop("indexTip", None)
            sealed = canonical(event)
            digest = hashlib.sha256(previous.encode() + b"|" + sealed).hexdigest()
            lines.append(b'{"event":%s,"hash":"%s","prevHash":"%s"}\n' % (sealed, digest.encode(), previous.encode()))
            previous = digest
        path.write_bytes(b"".join(lines))
