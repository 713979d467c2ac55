"""fsync mode: on disk before the append returns, one sync for many threads, nobody waits on an event loop."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.journal.journal import Journal

from . import lines


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what was fsynced, in order."""
    names: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        names.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        real(fd)

    monkeypatch.setattr("otel_agentrec.journal.sync.os.fsync", fsync)
    return names


def note(journal: Journal, text: str) -> Any:
    return journal.append("NODE_RECORDED", {"type": "TOOL", "name": "t", "facts": {"result": text}})


def test_content_is_on_disk_before_the_event_and_the_event_before_the_return(tmp_path: Path, synced: list[str]) -> None:
    journal = Journal(tmp_path, origin="me", durability="fsync")
    done = note(journal, "x")
    files = [f"{done.stream}.content.jsonl", f"{done.stream}.jsonl"]
    assert synced == [*files, tmp_path.name, tmp_path.parent.name]
    note(journal, "y")
    assert synced[4:] == files, "their names are on disk already"


def test_written_mode_never_syncs(tmp_path: Path, synced: list[str]) -> None:
    journal = Journal(tmp_path, origin="me")
    note(journal, "x")
    journal.seal()
    assert synced == []


def test_threads_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def slow(fd: int) -> None:
        time.sleep(0.005)
        real(fd)

    monkeypatch.setattr("otel_agentrec.journal.sync.os.fsync", slow)
    journal = Journal(tmp_path, origin="me", durability="fsync")
    note(journal, "first")
    commit = journal._commit
    assert commit
    before = commit.syncs
    threads = [threading.Thread(target=lambda: [note(journal, "x") for _ in range(5)]) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert commit.synced >= 82
    assert commit.syncs - before <= 60, "80 records must not cost 80 syncs"
    assert len(lines.events(lines.streams(tmp_path)[0])) == 82


def test_on_an_event_loop_a_thread_of_ours_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    callers: list[str] = []
    real = os.fsync
    monkeypatch.setattr(
        "otel_agentrec.journal.sync.os.fsync", lambda fd: (callers.append(threading.current_thread().name), real(fd))
    )
    journal = Journal(tmp_path, origin="me", durability="fsync")
    note(journal, "opened outside the loop")
    callers.clear()

    async def agent() -> int:
        done = note(journal, "x")
        return int(done.seq)

    seq = asyncio.run(agent())
    deadline = time.monotonic() + 5
    assert journal._commit
    while journal._commit.synced <= seq and time.monotonic() < deadline:
        time.sleep(0.005)
    assert journal._commit.synced > seq
    assert set(callers) == {"agentrec-sync"}


def test_a_failed_sync_is_told_and_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    journal = Journal(tmp_path, origin="me", durability="fsync")
    monkeypatch.setattr("otel_agentrec.journal.sync.os.fsync", fails)
    assert note(journal, "x")
    journal.seal()
    assert "Input/output error" in capsys.readouterr().err
