"""The recording directory, before anything is recorded."""

from __future__ import annotations

import errno
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from otel_agentrec.capture.doctor import place
from otel_agentrec.capture.doctor.place import check_place


def levels(path: Path) -> dict[str, str]:
    return {f.id: f.level for f in check_place(str(path))}


def test_a_directory_that_is_there_or_will_be_made(tmp_path: Path) -> None:
    assert levels(tmp_path) == {"path": "ok"}
    (found,) = check_place(str(tmp_path / "a" / "b"))
    assert "will be made" in found.what
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_file_in_its_place_or_above_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        (found,) = check_place(str(path))
        assert (found.id, found.level) == ("path", "problem")
        assert "OTEL_AGENTREC_PATH" in found.mend


def test_one_that_can_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    (found,) = check_place(str(tmp_path))
    assert (found.level, "Permission denied" in found.what) == ("problem", True)


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def no_locks(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert levels(tmp_path) == {"path": "ok", "path.locks": "note"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("free", "level"), [(place.LITTLE - 1, "note"), (place.TOO_LITTLE - 1, "problem")])
def test_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
    class Usage(NamedTuple):
        total: int
        used: int
        free: int

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, free))
    assert levels(tmp_path)["path.space"] == level
