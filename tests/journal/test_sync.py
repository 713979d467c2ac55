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


# --- what must not be lost, whatever the durability -----------------------------------------------------------------------


def begin(journal: Journal) -> Any:
    return journal.append_durably("EFFECT_STARTED", {"effectId": "e", "name": "pay", "arguments": {"x": 1}})


@pytest.mark.parametrize("durability", ["written", "fsync"])
def test_a_durable_event_is_on_disk_with_all_before_it(tmp_path: Path, synced: list[str], durability: Any) -> None:
    journal = Journal(tmp_path, origin="me", durability=durability)
    note(journal, "before")
    synced.clear()
    done = begin(journal)
    assert synced[:2] == [f"{done.stream}.content.jsonl", f"{done.stream}.jsonl"]
    assert journal._commit is not None
    assert journal._commit.synced == done.seq + 1
    synced.clear()
    note(journal, "after")
    assert bool(synced) is (durability == "fsync")


def test_a_durable_event_is_waited_for_on_an_event_loop(tmp_path: Path, synced: list[str]) -> None:
    journal = Journal(tmp_path, origin="me")

    async def agent() -> None:
        begin(journal)
        assert synced

    asyncio.run(agent())


def test_durable_events_of_threads_share_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync
    monkeypatch.setattr("otel_agentrec.journal.sync.os.fsync", lambda fd: (time.sleep(0.005), real(fd)))
    journal = Journal(tmp_path, origin="me")
    begin(journal)
    threads = [threading.Thread(target=lambda: [begin(journal) for _ in range(5)]) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert journal._commit is not None
    assert journal._commit.synced >= 82
    assert journal._commit.syncs <= 60


def test_a_stream_whose_sync_failed_is_never_trusted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, origin="me")
    begin(journal)
    with monkeypatch.context() as patch:
        patch.setattr("otel_agentrec.journal.sync.os.fsync", lambda fd: fail(errno.EIO))
        with pytest.raises(OSError, match="Input/output"):
            begin(journal)
    with pytest.raises(OSError, match="Input/output"):
        begin(journal)
    assert note(journal, "goes on")


def fail(code: int) -> None:
    raise OSError(code, os.strerror(code))


def test_a_durable_event_that_can_not_be_written_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, origin="me")
    begin(journal)
    with monkeypatch.context() as patch:
        patch.setattr("otel_agentrec.journal.named.os.write", lambda fd, data: fail(errno.ENOSPC))
        with pytest.raises(OSError, match="No space"):
            begin(journal)
    assert begin(journal), "there is room again"


def test_a_lock_that_another_process_has_taken(tmp_path: Path) -> None:
    import fcntl

    journal = Journal(tmp_path, origin="me")
    done = begin(journal)
    assert journal._writer is not None
    with (tmp_path / f"{done.stream}.jsonl").open("rb") as other:
        os.close(journal._writer._events.fd)  # as a program does that closes every descriptor
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="holds the lock"):
            begin(journal)


def test_a_segment_that_ends_is_synced_when_somebody_waits(tmp_path: Path, synced: list[str]) -> None:
    journal = Journal(tmp_path, origin="me", segment_bytes=2000)
    for _ in range(6):
        done = begin(journal)
        assert f"{done.stream}.jsonl" in synced
    assert len(lines.streams(tmp_path)) > 1
