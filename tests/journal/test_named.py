"""Named streams: several writers, one chain; a torn tail is cut and said, damage before it is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec.errors import RecordingBusy, RecordingTampered
from otel_agentrec.journal.content import cell_line
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.named import NamedStream, lines_backward

from . import lines


def user(text: str) -> NewEvent:
    return NewEvent("FINAL_OUTPUT", {"output": text})


def append(path: Path, *texts: str) -> None:
    with NamedStream(path, "n", content=True, wait=1) as stream:
        stream.append([user(t) for t in texts])


def test_each_open_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    append(path, "a", "b")
    append(path, "c")
    assert [e["type"] for e in lines.events(path)] == ["FINAL_OUTPUT"] * 3
    assert list(lines.cells(path).values()) == ["a", "b", "c"]


@pytest.mark.parametrize("torn", [b"{", b'{"event":{"id":"x","seq":1', b"\xff\xfe\x00", b"x" * 200_000])
def test_a_torn_tail_is_cut_off_and_said(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "n.jsonl"
    append(path, "a")
    with path.open("ab") as f:
        f.write(torn)
    append(path, "b")
    events = lines.events(path)
    assert [e["type"] for e in events] == ["FINAL_OUTPUT", "RECOVERED", "FINAL_OUTPUT"]
    assert events[1]["payload"] == {"bytes": len(torn), "cells": 0}


def test_cells_that_no_event_owns_are_cut_off_and_said(tmp_path: Path) -> None:
    path, content = tmp_path / "n.jsonl", tmp_path / "n.content.jsonl"
    append(path, "a")
    orphans = cell_line(0, b"s" * 16, 1, b'"lost"') + b'{"i":1,"salt":"'
    with content.open("ab") as f:
        f.write(orphans)
    append(path, "b")
    events = lines.events(path)
    assert events[1]["payload"] == {"bytes": len(orphans), "cells": 1}
    assert lines.cells(path) == {(0, 0): "a", (2, 0): "b"}


def test_a_file_that_holds_only_a_torn_first_line_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    path.write_bytes(b'{"event":{"id')
    append(path, "a")
    assert [e["seq"] for e in lines.events(path)] == [0]


def test_damage_before_the_tail_is_not_built_upon(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    append(path, "a", "b")
    damaged = path.read_bytes().replace(b'"prevHash"', b'"PREVHASH"')
    path.write_bytes(damaged)
    with pytest.raises(RecordingTampered):
        append(path, "c")
    assert path.read_bytes() == damaged


def test_a_lock_that_somebody_holds_is_reported_and_free_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    with NamedStream(path, "n", content=False, wait=0), pytest.raises(RecordingBusy):
        NamedStream(path, "n", content=False, wait=0.01)
    NamedStream(path, "n", content=False, wait=0).close()


def test_a_failed_write_changes_neither_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, content = tmp_path / "n.jsonl", tmp_path / "n.content.jsonl"
    append(path, "a")
    before = path.read_bytes(), content.read_bytes()
    real = os.write
    monkeypatch.setattr(
        "otel_agentrec.journal.named.os.write", lambda fd, d: real(fd, d[:9] if d.startswith(b'{"event"') else d)
    )
    with pytest.raises(OSError, match="short write"):
        append(path, "b")
    assert (path.read_bytes(), content.read_bytes()) == before


@pytest.mark.parametrize("size", [0, 1, 10, 1 << 16, (1 << 16) + 1, 200_000])
def test_lines_are_read_backwards_across_blocks(tmp_path: Path, size: int) -> None:
    path = tmp_path / "f"
    whole = [b"a" * size + b"\n", b"\n", b"b" * 70_000 + b"\n", b"torn"]
    path.write_bytes(b"".join(whole))
    with path.open("rb") as f:
        found = list(lines_backward(f.fileno()))
    assert [line for _, line in found] == whole[::-1]
    assert found[-1][0] == 0


WRITER = """
import sys
from pathlib import Path
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.named import NamedStream
for n in range(int(sys.argv[2])):
    with NamedStream(Path(sys.argv[1]), "n", content=True, wait=20) as stream:
        stream.append([NewEvent("FINAL_OUTPUT", {"output": f"{sys.argv[3]}-{n}"})])
"""


def test_processes_share_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    children = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), "50", str(k)], cwd=Path(__file__).parents[2])
        for k in range(4)
    ]
    assert [c.wait(60) for c in children] == [0] * 4
    assert len(lines.events(path)) == 200
    assert sorted(lines.cells(path).values()) == sorted(f"{k}-{n}" for k in range(4) for n in range(50))
