"""A log that was cut in the middle of a line, and one to which the next process appended right behind the cut.

Seen by agents with JSONL logs after kill, sleep or a full disk: one physical line holds a stub and a whole record, and the
session can't be resumed, or both records are lost. The files are in a chained format of their own; here they are told in
ours, cut at the same places.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.audit.verify import verify
from otel_agentrec.journal.index import Index
from otel_agentrec.journal.journal import Journal
from otel_agentrec.journal.reader import StreamFile, read_events

from ..journal import build
from .case import DATA

EXPECTED = json.loads((DATA / "017" / "expected.json").read_text())


def told(tmp_path: Path, name: str) -> Path:
    """The file in our frame. A stub stays a stub of the same share of its line; a chain that goes on goes on."""
    out, prev = b"", build.GENESIS
    for line in (DATA / "017" / name).read_bytes().splitlines(keepends=True):
        at = line.rfind(b'{"seq"')
        stub, whole = line[:at], line[at:]
        record: Any = _parsed(whole)
        if stub:  # the record that was cut is lost: what follows names its hash
            prev = json.loads(whole)["prev_hash"]
            out += b'{"event":{"id":"torn","payl'
        if record is None:
            sealed, _ = build.seal(prev, build.canon({"seq": 4, "text": "answer 4 é 你好", "type": "MODEL_RESPONSE"}))
            end = (
                sealed.index("好".encode()) + 1 if name == "input-torn-utf8.jsonl" else len(whole) * len(sealed) // 240
            )
            out += sealed[:end]
        else:
            sealed, prev = build.seal(prev, build.canon(record["event"] | {"seq": record["seq"]}))
            out += sealed
    path = tmp_path / name
    path.write_bytes(out)
    return path


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


@pytest.mark.parametrize("name", ["input-torn.jsonl", "input-torn-utf8.jsonl"])
def test_a_torn_tail_is_a_valid_prefix_told_apart_from_tampering(tmp_path: Path, name: str) -> None:
    path = told(tmp_path, name)
    valid = EXPECTED[name]["valid_records"]
    assert [e.seq for e in read_events(path)] == list(range(1, valid + 1))
    for level in ("chained", "structured"):
        report = verify(path, level=level)
        assert (report.exit_code, report.kind, report.is_valid) == (3, "torn_tail", True)
        assert (report.index, report.file, report.events) == (valid, name, valid)
        assert report.byte_offset == path.read_bytes().rindex(b"\n") + 1
        assert "torn" in str(report.hint)


def test_a_record_behind_a_stub_is_reported_as_salvageable(tmp_path: Path) -> None:
    path = told(tmp_path, "input-fused.jsonl")
    expected = EXPECTED["input-fused.jsonl"]
    report = verify(path, level="chained")
    assert (report.exit_code, report.kind, report.first_broken_index) == (1, "frame", expected["valid_prefix"])
    assert report.salvageable == len(expected["salvageable"] + expected["after"])
    assert "a torn line and a whole one" in str(report.hint)
    stream = StreamFile("input-fused", path)
    assert [e.seq for e in stream.events()] == [1, 2, 3] and stream.damaged_at == 3
    assert [e.seq for e in stream.events(skip_broken=True)] == [1, 2, 3, 6]


def test_after_reopening_a_torn_file_every_line_parses(tmp_path: Path) -> None:
    """Only the index and sessions are reopened; every process writes a stream of its own."""
    first = Journal(tmp_path, origin="me")
    first.append("DROPPED", {"count": 1, "reason": "r"})
    (tmp_path / "index.jsonl").write_bytes((tmp_path / "index.jsonl").read_bytes()[:-40])
    Index(tmp_path, "me").list_later("OPENED", {"stream": "x", "hash": "0" * 64}, wait=1)
    lines = (tmp_path / "index.jsonl").read_bytes().splitlines(keepends=True)
    assert all(line.endswith(b"\n") and json.loads(line) for line in lines)
    assert [json.loads(line)["event"]["type"] for line in lines] == ["STREAM_OPENED", "RECOVERED", "OPENED"]
    first.seal()
