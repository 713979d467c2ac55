"""The readers in other languages list the calls of a recording and find a changed byte."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from otel_agentrec.demo import stage

pytest.importorskip("openai")
pytestmark = pytest.mark.languages

READERS = Path(__file__).parents[2] / "examples" / "other-languages"
STARTS = {
    "node": ("node", "read.mjs"),
    "go": ("go", "run", "read.go"),
}


@pytest.fixture(params=STARTS)
def start(request: pytest.FixtureRequest) -> tuple[str, ...]:
    program, *words = STARTS[request.param]
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    return (program, *words)


def read(start: tuple[str, ...], recording: Path) -> subprocess.CompletedProcess[str]:
    words = [*start, str(recording)]
    # the first start of `go run` compiles what it uses of the standard library
    return subprocess.run(words, cwd=READERS, capture_output=True, text=True, timeout=280)


@pytest.mark.timeout(600)
def test_a_reader_lists_the_calls_and_finds_a_changed_byte(tmp_path: Path, start: tuple[str, ...]) -> None:
    stage.record(tmp_path / "rec", "Yes.", "Will it rain?", lambda _: None)
    fresh = read(start, tmp_path / "rec")
    assert fresh.returncode == 0, fresh.stderr
    calls = [line.split(" ", 1)[1] for line in fresh.stdout.splitlines() if line[0].isdigit() and ": " not in line]
    assert sorted(calls) == ["MODEL chat gpt-5-mini"] * 2 + [
        "TOOL execute_tool last_train",
        "TOOL execute_tool weather",
    ]

    (stream,) = (p for p in (tmp_path / "rec").glob("2*.jsonl") if not p.name.endswith(".content.jsonl"))
    lines = stream.read_bytes().splitlines(keepends=True)
    middle = len(lines[4]) // 2
    lines[4] = lines[4][:middle] + bytes([lines[4][middle] ^ 1]) + lines[4][middle + 1 :]
    stream.write_bytes(b"".join(lines))
    changed = read(start, tmp_path / "rec")
    assert changed.returncode == 1
    assert f"CHANGED {stream.name} line 5" in changed.stdout


def test_a_reader_is_short() -> None:
    for path in READERS.iterdir():
        assert len(path.read_text().splitlines()) <= 40, path.name
