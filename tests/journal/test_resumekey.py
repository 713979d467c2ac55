"""resume.key: one secret per recording, whoever asks first."""

from __future__ import annotations

import multiprocessing
import stat
import threading
from pathlib import Path

import pytest

from otel_agentrec.errors import RecordingUnreadable
from otel_agentrec.journal.resumekey import NAME, key_id, read_resume_key, replace_resume_key, resume_key


def test_a_key_is_32_random_bytes_that_only_the_owner_reads(tmp_path: Path) -> None:
    where = tmp_path / "rec"
    assert read_resume_key(where) is None
    key = resume_key(where)
    assert len(key) == 32
    assert key != resume_key(tmp_path / "other")
    assert resume_key(where) == read_resume_key(where) == key
    assert stat.S_IMODE((where / NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE(where.stat().st_mode) == 0o700
    assert sorted(p.name for p in where.iterdir()) == [".gitignore", NAME]


def test_its_id_names_it_and_does_not_hold_any_of_it(tmp_path: Path) -> None:
    key = resume_key(tmp_path)
    assert len(key_id(key)) == 8
    assert key_id(key) not in key.hex()
    assert key_id(key) == key_id(bytes(key)) != key_id(key[:-1] + bytes([key[-1] ^ 1]))


def _ask(where: str, out: object) -> None:
    out.put(resume_key(where))  # type: ignore[attr-defined]


def test_processes_that_race_get_the_same_key(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("fork")
    out = spawn.Queue()
    racers = [spawn.Process(target=_ask, args=(str(tmp_path / "rec"), out)) for _ in range(6)]
    for racer in racers:
        racer.start()
    keys = {out.get(timeout=20) for _ in racers}
    for racer in racers:
        racer.join(20)
    assert keys == {(tmp_path / "rec" / NAME).read_bytes()}


def test_threads_that_race_get_the_same_key_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError("not supported")

    monkeypatch.setattr("os.link", no_links)
    keys: list[bytes] = []
    racers = [threading.Thread(target=lambda: keys.append(resume_key(tmp_path))) for _ in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert keys == [(tmp_path / NAME).read_bytes()] * 8


def test_a_file_that_is_no_key_is_refused_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_agentrec.journal.resumekey._PATIENCE", 0.05)
    (tmp_path / NAME).write_bytes(b"half of one")
    with pytest.raises(RecordingUnreadable, match="no key: 11 bytes"):
        resume_key(tmp_path)
    assert (tmp_path / NAME).read_bytes() == b"half of one"


def test_a_replaced_key_is_another(tmp_path: Path) -> None:
    before = resume_key(tmp_path)
    after = replace_resume_key(tmp_path)
    assert resume_key(tmp_path) == after != before
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != ".gitignore") == [NAME]
