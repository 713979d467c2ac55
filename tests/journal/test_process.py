"""Which processes belong together is told by a path that each hands down to those that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec.journal import process
from otel_agentrec.journal.process import command_of, depth_of, is_below, of_command, own_path

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
