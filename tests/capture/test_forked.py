"""A child that ``multiprocessing`` forks leaves without ``atexit``: its recording is closed all the same, and says how it ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec import verify
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.fold import fold

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")

PROGRAM = """
import multiprocessing, sys
from otel_agentrec.resume.tools import resumable_tool

@resumable_tool
def pay(order):
    return order

def work(order):
    pay(order)
    if order == "dear":
        raise ValueError("too dear")

if __name__ == "__main__":
    pay("first")
    for order in ("cheap", "dear"):
        child = multiprocessing.get_context("fork").Process(target=work, args=(order,))
        child.start()
        child.join()
"""


def test_the_run_of_a_forked_child_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    argv = [sys.executable, "-m", "otel_agentrec", "run", "--out", str(tmp_path / "rec"), "--", sys.executable]
    done = subprocess.run(
        [*argv, str(tmp_path / "shop.py")],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    recording = Recording(tmp_path / "rec")
    assert [stream.sealed for stream in recording.streams()] == [True] * 3
    assert sorted(run.status for run in fold(recording).runs) == ["error", "ok", "ok"]
    assert verify(recording, level="chained").exit_code == 0
