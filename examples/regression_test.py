"""A regression test of an agent: it passes offline, and fails when a word of the prompt is another one.

The recording in ``regression_test/recordings`` is committed; ``python regression_test.py record`` makes it anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path

import scene

FOLDER = Path(__file__).parent / "regression_test"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider"]
if (
    "agentrec" not in entry_points(group="pytest11").names
):  # where otel-agentrec is installed, pytest finds it by itself
    PYTEST += ["-p", "otel_agentrec.pytest_plugin"]


def pytest(folder: Path, *words: str) -> int:
    """Run the tests in a folder -> pytest's exit code."""
    command = [*PYTEST, f"--rootdir={folder}", *words]
    print("$ pytest", *words, flush=True)
    return subprocess.run(command, cwd=folder, check=False).returncode


if sys.argv[1:] == ["record"]:
    with scene.model():
        sys.exit(pytest(FOLDER, "--agentrec=record"))

os.environ.setdefault("OPENAI_API_KEY", "nobody-is-asked")
with tempfile.TemporaryDirectory() as scratch:
    copy = Path(scratch) / "project"
    shutil.copytree(FOLDER, copy)
    assert pytest(copy) == 0, "the recording answers"
    agent = copy / "agent.py"
    agent.write_text(agent.read_text().replace("keep it short", "keep it brief"))
    assert pytest(copy) == 1, "another prompt is another run"
