"""Which processes belong together is told by a path that each hands down to those that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec.journal import process
from otel_agentrec.journal.process import VARIABLE, command_of, depth_of, is_below, of_command, own_path

ROOT = str(Path(__file__).parents[2])
ASK = "from otel_agentrec.journal.process import own_path; print(own_path())"


def test_processes_of_one_command_share_its_part_and_a_command_inside_one_is_another() -> None:
    assert command_of("ra/p1") == command_of("ra/p1/p2/p3") == "ra"
    assert command_of("ra/p1/rb/p2") == "ra/p1/rb"
    assert command_of("p1/p2") == "p1/p2", "no command started it"
    assert [depth_of(path) for path in ("ra/p1", "ra/p1/p2", "ra/p1/rb/p2", "p1/p2")] == [1, 2, 1, 0]
    assert is_below("ra/p1/p2", "ra/p1")
    assert not is_below("ra/p11", "ra/p1")


def test_a_child_stands_below_its_parent() -> None:
    ours = own_path()
    assert own_path() == ours
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True, cwd=Path.cwd())
    above, _, last = done.stdout.strip().rpartition("/")
    assert above == ours
    assert last.startswith("p")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_a_forked_child_too() -> None:
    ours = own_path()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, f"{own_path()} {os.environ[process.VARIABLE]}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs, handed_down = os.read(read, 4096).decode().split()
    os.close(read)
    os.close(write)
    assert theirs == handed_down
    assert is_below(theirs, ours)


def test_a_path_does_not_grow_for_ever() -> None:
    path = ""
    for _ in range(100):
        path = of_command({process.VARIABLE: path})
    assert len(path) < 512


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system does not show environments")
@pytest.mark.parametrize("emptied", ["the child", "both"])
def test_a_process_whose_environment_was_emptied_stands_below_who_started_it(emptied: str) -> None:
    start = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], env={'PYTHONPATH': sys.argv[2]})"
    )
    argv = [sys.executable, "-c", start, ASK, ROOT]
    if emptied == "both":  # as a shell between them
        between = "import subprocess, sys; subprocess.run(sys.argv[1:], env={})"
        argv = [sys.executable, "-c", between, *argv]
    done = subprocess.run(argv, env={VARIABLE: "r1/p2"}, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("r1/p2/p")
