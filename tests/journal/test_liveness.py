"""A stream is alive as long as its writer holds the lock, wherever one looks from."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec.journal import liveness
from otel_agentrec.journal.journal import Journal
from otel_agentrec.journal.liveness import is_locked
from otel_agentrec.journal.reader import Recording

fcntl = pytest.importorskip("fcntl")


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    path = tmp_path / "s.jsonl"
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield path
    os.close(fd)


def test_a_held_lock_is_seen_and_a_free_one_is_not(locked: Path, tmp_path: Path) -> None:
    (tmp_path / "free").touch()
    assert is_locked(locked)
    assert not is_locked(tmp_path / "free")


def test_without_proc_locks_the_probe_sees_it(locked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "_listed", set)
    (tmp_path / "free").touch()
    assert is_locked(locked)
    assert not is_locked(locked, probe=False)
    assert not is_locked(tmp_path / "free")


def test_the_probe_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "_listed", set)
    path = tmp_path / "s"
    path.touch()
    assert not is_locked(path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_another_reader_that_probes_is_not_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.touch()
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert not is_locked(path)


@pytest.mark.parametrize("path", ["none", "", "bad\0name", "x" * 5000])
def test_it_never_raises(tmp_path: Path, path: str) -> None:
    assert not is_locked(tmp_path / path) or path == ""


def test_it_never_opens_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not is_locked(tmp_path / "pipe")


def test_a_stream_is_live_until_its_writer_seals_it_or_dies(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a", origin="me")
    journal.append("DROPPED", {"count": 1, "reason": "r"})
    (stream,) = Recording(tmp_path / "a").streams()
    assert stream.is_live() and not stream.sealed
    journal.seal()
    assert not stream.is_live() and stream.sealed

    code = (
        "import sys, time; from otel_agentrec.journal.journal import Journal; j = Journal(sys.argv[1], origin='me');"
        "j.append('DROPPED', {'count': 1, 'reason': 'r'}); print('ready', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "b")], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        (stream,) = Recording(tmp_path / "b").streams()
        assert stream.is_live()
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert not stream.is_live() and not stream.sealed
