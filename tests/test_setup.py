"""What ``make`` says on a machine where it can't set itself up. The script runs in a copy: the real .venv stays alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = (".ci/venv", "pyproject.toml", "constraints.txt", "otel_agentrec/_version.py")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the Makefile needs a POSIX shell")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    where = tmp_path / "a clone"
    for name in FILES:
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, where / name)
    return where


def set_up(clone: Path, python: str) -> tuple[int, str]:
    result = subprocess.run(
        ["sh", ".ci/venv", "demo"],
        cwd=clone,
        env={"PATH": "/usr/bin:/bin", "PYTHON": python},
        capture_output=True,
        text=True,
        timeout=30,
    )
    return result.returncode, result.stderr


def program(where: Path, text: str) -> str:
    where.write_text(f"#!/bin/sh\n{text}\n")
    where.chmod(0o755)
    return str(where)


def test_no_python(clone: Path) -> None:
    code, said = set_up(clone, "/nowhere/python3")
    assert code == 2
    assert said == (
        "error: /nowhere/python3 does not run; install Python 3.10 or newer, or name one: "
        "make demo PYTHON=/path/to/python3.12\n"
    )


def test_a_python_that_is_too_old(clone: Path, tmp_path: Path) -> None:
    old = program(tmp_path / "old", 'case "$2" in *print*) echo 3.9 ;; *) exit 1 ;; esac')
    code, said = set_up(clone, old)
    assert code == 2
    assert f"Python 3.10 or newer is needed, {old} is 3.9" in said


def test_a_python_without_venv(clone: Path, tmp_path: Path) -> None:
    bare = program(tmp_path / "bare", f'case "$2" in *ensurepip*) exit 1 ;; esac; exec "{sys.executable}" "$@"')
    code, said = set_up(clone, bare)
    assert code == 2
    assert "has no venv module; on Debian or Ubuntu: apt-get install python3-venv" in said


def test_nothing_to_do_when_the_same_was_set_up_before(clone: Path) -> None:
    python = clone / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    sums = "cat pyproject.toml constraints.txt otel_agentrec/_version.py | cksum"
    key = subprocess.run(
        ["sh", "-c", f'echo "$(pwd) $({sums})"'], cwd=clone, capture_output=True, text=True, check=True
    )
    (clone / ".venv/.ready-demo").write_text(key.stdout)
    assert set_up(clone, sys.executable) == (0, "")
