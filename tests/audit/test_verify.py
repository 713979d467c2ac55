"""What verify says: of a whole recording, of one that is not closed, of lost files, of bad input."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.audit.report import KINDS, VerifyReport
from otel_agentrec.audit.verify import verify
from otel_agentrec.errors import RecordingNotFound, RecordingUnreadable, UsageError
from otel_agentrec.journal.journal import Journal

from ..journal import build

ONE, TWO = "20260101T000000Z-1-aa", "20260101T000001Z-2-bb"


def brief(report: VerifyReport) -> tuple[Any, ...]:
    return report.exit_code, report.kind, report.file, report.index


def kinds(report: VerifyReport) -> list[str]:
    return [w["kind"] for w in report.warnings]


# --- whole ---


def test_a_closed_recording_is_proven_to_its_end(tmp_path: Path) -> None:
    build.small(tmp_path)
    report = verify(tmp_path)
    assert (report.is_valid, report.exit_code, report.kind, report.first_broken_index) == (True, 0, None, -1)
    assert (report.level, report.content, report.end, report.events) == ("structured", "verified", "proven_close", 10)
    assert report.covers == {"anchored": [], "signed": [], "chainedOnly": [[0, 5]]}
    assert [(g["kind"], g["count"], g["reason"]) for g in report.gaps] == [("dropped", 2, "ENOSPC")] * 2
    assert report.warnings == ()


def test_what_the_journal_writes_verifies(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me")
    for k in range(5):
        journal.append("NODE_RECORDED", {"type": "TOOL", "name": "t", "facts": {"result": "x" * k, "arguments": "{}"}})
    journal.seal()
    report = verify(tmp_path)
    assert brief(report) == (0, None, None, None) and report.end == "proven_close" and not report.warnings


@pytest.mark.parametrize(("mode", "content"), [("detached", "verified"), ("inline", "inline"), ("off", "none")])
def test_where_the_words_stand_is_told(tmp_path: Path, mode: Any, content: str) -> None:
    journal = Journal(tmp_path, origin="me", content=mode)
    words = [{"role": "user", "parts": [{"type": "text", "content": 'a text that says {"$v": 1}'}]}]
    journal.append("NODE_RECORDED", {"type": "MODEL", "name": "chat", "facts": {"messages": words}})
    journal.seal()
    report = verify(tmp_path)
    assert report.streams is not None
    assert (report.exit_code, report.content, report.streams[0].content) == (0, content, content)


def test_the_json_of_a_directory_has_the_worst_stream_and_all_of_them(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    recording.streams[1].lines[2] = recording.streams[1].lines[2].replace(b'"chat"', b'"CHAT"')
    recording.write()
    data = json.loads(json.dumps(verify(tmp_path).to_json()))
    assert (data["isValid"], data["file"], data["firstBrokenIndex"], data["kind"]) == (
        False,
        f"{TWO}.jsonl",
        2,
        "hash_mismatch",
    )
    assert [s["isValid"] for s in data["streams"]] == [True, False]
    assert data["streams"][1]["index"] == 2 and data["streams"][1]["seq"] == 2
    assert data["index"]["isValid"] and data["index"]["file"] == "index.jsonl"
    assert {"byteOffset", "expected", "actual", "hint", "level", "covers", "content", "end", "gaps", "warnings"} <= set(
        data
    )


def test_one_stream_without_content_does_not_speak_for_the_others(tmp_path: Path) -> None:
    build.Stream(tmp_path, "20250101T000000Z-1-aa").write()
    build.small(tmp_path)
    report = verify(tmp_path)
    assert [r.content for r in report.streams or ()] == ["none", "verified", "verified"]
    assert (report.exit_code, report.content) == (3, "verified")


def test_a_single_stream_uses_the_index_beside_it(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    report = verify(recording.streams[0].path)
    assert brief(report) == (0, None, f"{ONE}.jsonl", None) and report.end == "proven_close" and report.streams is None
    del recording.streams[0].lines[3:]
    recording.write()
    assert brief(verify(recording.streams[0].path)) == (1, "truncated", f"{ONE}.jsonl", 3)


def test_a_single_stream_that_was_copied_away_stands_alone(tmp_path: Path) -> None:
    recording = build.small(tmp_path / "rec")
    for path in (recording.streams[0].path, recording.streams[0].content_path):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    report = verify(tmp_path / f"{ONE}.jsonl")
    assert report.exit_code == 0 and report.end == "proven_close"
    assert kinds(report) == ["index_missing"]


def test_the_index_can_be_verified_alone(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    report = verify(recording.index.path)
    assert (report.exit_code, report.events, report.end) == (0, 5, "unproven")


def test_sessions_are_verified_too(tmp_path: Path) -> None:
    build.small(tmp_path)
    session = build.Stream(tmp_path, "sessions/a%2Fb")
    session.event("SESSION_STARTED", {"x": build.Cell("y")})
    session.event("STREAM_SEALED", {"count": 2})
    session.event("RECOVERED", {"bytes": 1, "cells": 0}, mono="5")
    session.event("STREAM_SEALED", {"count": 4})
    session.write()
    report = verify(tmp_path)
    assert report.exit_code == 0 and "time_backwards" not in kinds(report)
    session.cells[0] = session.cells[0].replace(b'"y"', b'"z"')
    session.write()
    assert brief(verify(tmp_path)) == (1, "payload_mismatch", "sessions/a%2Fb.content.jsonl", 0)


# --- levels ---


def test_levels_that_need_a_checkpoint_are_not_proven(tmp_path: Path) -> None:
    build.small(tmp_path)
    for how in ({"level": "signed"}, {"level": "anchored"}, {"keys": ["k"]}, {"policy": "p"}):
        report = verify(tmp_path, **how)  # type: ignore[arg-type]
        assert (report.exit_code, report.kind, report.is_valid, report.level) == (
            3,
            "checkpoint_missing",
            True,
            "structured",
        )
        assert report.hint is not None and "checkpoint" in report.hint
    with pytest.raises(UsageError, match="unknown level") as caught:
        verify(tmp_path, level="best")
    assert "structured" in caught.value.hint


def test_chained_asks_less_than_structured(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, ONE)
    stream.raw(build.canon({"v": "agentrec/1", "stream": ONE, "seq": 7, "type": "X", "payload": {}, "id": "", "ts": 1}))
    stream.close()
    stream.write()
    assert verify(stream.path, level="chained").level == "chained"
    assert verify(stream.path, level="chained").is_valid
    assert brief(verify(stream.path)) == (1, "seq_gap", f"{ONE}.jsonl", 1)


def test_the_seeds_own_chain_verifies_as_far_as_it_goes(tmp_path: Path) -> None:
    golden = json.loads((Path(__file__).parent.parent / "data" / "golden_chain.json").read_text())["links"]
    lines = [build.seal(link["prevHash"], bytes.fromhex(link["canonical_hex"]))[0] for link in golden]
    path = tmp_path / "golden.jsonl"
    path.write_bytes(b"".join(lines))
    report = verify(path, level="chained")
    assert (report.exit_code, report.level, report.end, report.events) == (0, "chained", "unproven", len(lines))
    report = verify(path)
    assert (report.exit_code, report.kind, report.is_valid, report.level) == (3, "unsealed_tail", True, "chained")
    lines[2] = lines[2].replace(b'"seq":3', b'"seq":4')
    path.write_bytes(b"".join(lines))
    assert brief(verify(path, level="chained")) == (1, "hash_mismatch", "golden.jsonl", 2)


# --- ends ---


def test_a_stream_that_was_not_closed_is_valid_but_not_proven(tmp_path: Path) -> None:
    recording = build.Recording(tmp_path)
    stream = recording.open(ONE)
    stream.event("NODE_STARTED", {"type": "TOOL", "name": "pay"}, trace={"traceId": "t", "spanId": "s"}, run="r")
    recording.write()
    report = verify(tmp_path)
    assert brief(report) == (3, "unsealed_tail", f"{ONE}.jsonl", 2)
    assert (report.is_valid, report.first_broken_index, report.end) == (True, -1, "unproven")
    (gap,) = report.gaps
    assert (gap["kind"], gap["type"], gap["name"], gap["spanId"], gap["index"], gap["run"]) == (
        "unended",
        "NODE_STARTED",
        "pay",
        "s",
        1,
        "r",
    )


@pytest.mark.parametrize("end", ["NODE_RECORDED", "NODE_INTERRUPTED", "RUN_ENDED", "HANDOFF_ENDED", "STEP_ENDED"])
def test_a_start_that_has_an_end_is_no_gap(tmp_path: Path, end: str) -> None:
    stream = build.Stream(tmp_path, ONE)
    for span in ("a", "b"):
        stream.event("NODE_STARTED", {"type": "TOOL", "name": "t"}, trace={"traceId": "t", "spanId": span})
    stream.event(end, {"type": "TOOL", "name": "t"}, trace={"traceId": "t", "spanId": "a", "path": ["x", "y"]})
    stream.event(end, {"name": "t", "reason": "é"}, trace={"traceId": "u", "spanId": "b"}, session='q"\\{}')
    stream.close()
    stream.write()
    assert [gap["spanId"] for gap in verify(stream.path).gaps] == ["b"]


def test_a_span_may_end_in_the_next_segment(tmp_path: Path) -> None:
    recording = build.Recording(tmp_path)
    one = recording.open(ONE)
    for span in ("a", "b"):
        one.event("NODE_STARTED", {"type": "TOOL", "name": span}, trace={"traceId": "t", "spanId": span})
    recording.close(one)
    two = recording.open(TWO, prevStream={"id": ONE, **one.tip})
    two.event("NODE_RECORDED", {"type": "TOOL", "name": "a"}, trace={"traceId": "t", "spanId": "a"})
    recording.close(two)
    recording.write()
    report = verify(tmp_path)
    assert report.exit_code == 0
    assert [(gap["spanId"], gap["stream"]) for gap in report.gaps] == [("b", ONE)]


def test_a_torn_tail_is_told_apart_from_a_lost_newline(tmp_path: Path) -> None:
    recording = build.Recording(tmp_path)
    stream = recording.open(ONE)
    stream.event("DROPPED", {"count": 1, "reason": "r"})
    for cut, says in ((1, "whole but for its newline"), (30, "torn")):
        recording.write()
        stream.path.write_bytes(b"".join(stream.lines)[:-cut])
        report = verify(tmp_path)
        assert brief(report) == (3, "torn_tail", f"{ONE}.jsonl", 1)
        assert report.byte_offset == len(stream.lines[0]) and says in str(report.hint) and report.is_valid


def test_an_empty_stream_of_a_killed_writer_is_no_fault(tmp_path: Path) -> None:
    build.small(tmp_path)
    (tmp_path / "20270101T000000Z-9-zz.jsonl").touch()
    report = verify(tmp_path)
    assert brief(report) == (3, "unsealed_tail", "20270101T000000Z-9-zz.jsonl", 0)
    assert "unindexed" in kinds(report)


def test_a_stream_whose_writer_lives_is_still_being_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me")
    journal.append("NODE_STARTED", {"type": "TOOL", "name": "t"})
    report = verify(tmp_path)
    assert (report.exit_code, report.kind, report.live, report.gaps) == (3, "unsealed_tail", True, ())
    assert "still being written" in str(report.hint)
    (path,) = (p for p in tmp_path.glob("2*.jsonl"))
    with path.open("ab") as file:
        file.write(b'{"event":{"torn')
    with path.with_name(f"{path.stem}.content.jsonl").open("ab") as file:
        file.write(b'{"i":0,"salt":"')
    report = verify(tmp_path)
    assert (report.exit_code, report.kind, report.live, report.warnings) == (3, "unsealed_tail", True, ())
    journal.seal()


def test_a_close_with_the_wrong_count_and_events_after_it(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, ONE)
    stream.event("STREAM_SEALED", {"count": 5})
    stream.write()
    assert brief(verify(stream.path)) == (1, "close_count_mismatch", f"{ONE}.jsonl", 1)
    stream = build.Stream(tmp_path, TWO)
    stream.close()
    stream.event("DROPPED", {"count": 1, "reason": "late"})
    stream.write()
    assert brief(verify(stream.path)) == (1, "close_count_mismatch", f"{TWO}.jsonl", 2)
    assert verify(stream.path, level="chained").end == "unproven"


def test_time_that_runs_backwards_is_a_warning(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, ONE)
    for mono in ("5", "9", "3"):
        stream.event("COVERAGE", {"points": []}, mono=mono)
    stream.close()
    stream.write()
    report = verify(stream.path)
    (warning,) = [w for w in report.warnings if w["kind"] == "time_backwards"]
    assert report.exit_code == 0 and warning["index"] == 1 and "2 events" in warning["hint"]


# --- content ---


def content(tmp_path: Path, *, close: bool = True) -> build.Stream:
    recording = build.Recording(tmp_path)
    stream = recording.open(ONE)
    stream.event("FINAL_OUTPUT", {"output": build.Cell("first")})
    stream.event("ERROR", {"errorType": "E", "message": build.Cell("second")})
    stream.event("NODE_RECORDED", {"facts": {"arguments": build.Cell("b"), "result": build.Cell("c")}})
    if close:
        recording.close(stream)
    recording.write()
    return stream


@pytest.mark.parametrize(
    ("damage", "kind", "index"),
    [
        (lambda cells: cells.__setitem__(1, cells[1].replace(b"second", b"SECOND")), "payload_mismatch", 1),
        (lambda cells: cells.__setitem__(1, b"junk\n"), "payload_mismatch", 1),
        (lambda cells: cells.pop(1), "payload_missing", 1),
        (lambda cells: cells.pop(), "payload_missing", 3),
        (lambda cells: cells.insert(1, cells[0]), "payload_mismatch", 1),
        (lambda cells: cells.append(cells[3]), "payload_mismatch", 4),
        (lambda cells: cells.append(b'{"i":0,"salt":"' + b"0" * 32 + b'","seq":9,"value":1}\n'), "payload_mismatch", 4),
        (lambda cells: cells.append(b'{"i":'), "payload_mismatch", 4),
        (lambda cells: cells.append(b"\n"), "payload_mismatch", 4),
        (lambda cells: cells.reverse(), "payload_missing", 0),
        (lambda cells: cells.__setitem__(slice(2, 4), [cells[3], cells[2]]), "payload_missing", 2),
        (lambda cells: cells.__setitem__(3, cells[3][:-1]), "payload_missing", 3),
        (lambda cells: cells.__setitem__(0, cells[0].replace(b'"i":0', b'"i":00')), "payload_mismatch", 0),
        (lambda cells: cells.__setitem__(0, cells[0].upper()), "payload_mismatch", 0),
        (lambda cells: cells.__setitem__(0, cells[0].replace(b"}\n", b"} \n")), "payload_mismatch", 0),
    ],
    ids=[
        *("changed", "junk", "removed", "last removed", "doubled", "last doubled", "future", "torn", "blank"),
        *("reversed", "swapped", "newline", "spelling", "case", "blank added"),
    ],
)
def test_content_that_is_not_what_the_events_name(tmp_path: Path, damage: Any, kind: str, index: int) -> None:
    stream = content(tmp_path)
    damage(stream.cells)
    stream.write()
    report = verify(tmp_path)
    assert brief(report) == (1, kind, f"{ONE}.content.jsonl", index)
    assert report.content == "failed" and report.first_broken_index == index
    assert verify(tmp_path, level="chained").kind == kind
    alone = verify(tmp_path, content=False)
    assert (alone.exit_code, alone.content) == (0, "unchecked")


def test_a_lost_content_file_is_payload_missing(tmp_path: Path) -> None:
    content(tmp_path).content_path.unlink()
    report = verify(tmp_path)
    assert brief(report) == (1, "payload_missing", f"{ONE}.content.jsonl", 0)
    assert report.content == "absent"
    assert verify(tmp_path, content=False).exit_code == 0


@pytest.mark.parametrize("tail", [b'{"i":0,"salt":"' + b"0" * 32 + b'","seq":4,"value":1}\n', b'{"i":', b""])
def test_cells_ahead_of_the_events_are_leftovers_of_a_crash(tmp_path: Path, tail: bytes) -> None:
    stream = content(tmp_path, close=False)
    stream.cells.append(tail)
    stream.write()
    report = verify(tmp_path)
    assert brief(report) == (3, "unsealed_tail", f"{ONE}.jsonl", 4)
    assert kinds(report) == (["leftover_cells"] if tail else [])


def test_an_erased_cell_is_fine_only_if_the_index_names_it(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    stream = recording.streams[0]
    stub = b'{"i":1,"salt":null,"seq":1}'
    stream.cells[1] = stub + b" " * (len(stream.cells[1]) - 1 - len(stub)) + b"\n"
    recording.write()
    report = verify(tmp_path)
    assert brief(report) == (1, "payload_erased", f"{ONE}.content.jsonl", 1)
    recording.index.event("ERASED", {"stream": ONE, "cells": [[1, 1], [9, 9]], "reason": "asked"})
    recording.write()
    report = verify(tmp_path)
    assert (report.exit_code, report.content) == (0, "erased 1")
    assert [r.content for r in report.streams or ()] == ["erased 1", "verified"]
    stream.cells[1] = stub + b"\n"
    recording.write()
    assert brief(verify(tmp_path)) == (1, "payload_mismatch", f"{ONE}.content.jsonl", 1)


# --- the index ---


def test_a_recording_without_streams_is_fine_with_a_warning(tmp_path: Path) -> None:
    build.Stream(tmp_path, "index").write()
    report = verify(tmp_path)
    assert report.exit_code == 0 and kinds(report) == ["empty"]


def test_a_stream_that_nobody_listed_is_a_warning(tmp_path: Path) -> None:
    build.small(tmp_path)
    extra = build.Stream(tmp_path, "20270101T000000Z-9-zz")
    extra.close()
    extra.write()
    report = verify(tmp_path)
    assert report.exit_code == 0
    assert [(w["kind"], w["file"]) for w in report.warnings] == [("unindexed", "20270101T000000Z-9-zz.jsonl")]


def test_a_lost_index_a_lost_stream_and_a_pruned_one(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    recording.index.path.unlink()
    assert brief(verify(tmp_path)) == (1, "index_missing", "index.jsonl", None)
    recording.write()
    recording.streams[0].path.unlink()
    report = verify(tmp_path)
    assert brief(report) == (1, "stream_missing", f"{ONE}.jsonl", None)
    assert [(w["kind"], w["file"]) for w in report.warnings] == [("leftover_cells", f"{ONE}.content.jsonl")]
    recording.streams[0].content_path.unlink()
    recording.index.event("PRUNED", {"stream": ONE, "size": 6, "hash": "0" * 64})
    recording.index.write()
    assert verify(tmp_path).exit_code == 0


def test_an_older_or_another_index_is_contradicted_by_the_streams(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    recording.index.path.write_bytes(recording.index.lines[0])
    report = verify(tmp_path)
    assert brief(report)[:3] == (4, "rolled_back", "index.jsonl") and report.first_broken_index == 1
    other = build.Stream(tmp_path, "index", host="elsewhere")
    for line in recording.index.lines[1:]:
        other.raw(line[9:-154])
    other.write()
    assert brief(verify(tmp_path))[:3] == (4, "history_rewritten", "index.jsonl")
    assert verify(tmp_path, level="chained").exit_code == 4
    assert verify(recording.streams[1].path).exit_code == 4


def test_an_index_that_lists_a_stream_twice_differently_is_equivocation(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    recording.index.event("OPENED", {"stream": ONE, "hash": recording.streams[0].hashes[0]})
    recording.write()
    assert verify(tmp_path).exit_code == 0
    recording.index.event("OPENED", {"stream": ONE, "hash": "f" * 64})
    recording.write()
    assert brief(verify(tmp_path))[:3] == (4, "equivocation", f"{ONE}.jsonl")


def test_a_torn_index_is_mended_by_the_next_writer(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    with recording.index.path.open("ab") as file:
        file.write(b'{"event":{')
    assert brief(verify(tmp_path)) == (3, "torn_tail", "index.jsonl", 5)
    journal = Journal(tmp_path, origin="me")
    journal.append("DROPPED", {"count": 1, "reason": "r"})
    journal.seal()
    assert verify(tmp_path).exit_code == 0


def test_the_next_segment_knows_the_end_of_the_one_before(tmp_path: Path) -> None:
    one = build.Stream(tmp_path, ONE)
    one.event("DROPPED", {"count": 1, "reason": "r"})
    one.close()
    two = build.Stream(tmp_path, TWO, prevStream={"id": ONE, **one.tip})
    two.close()
    one.write()
    two.write()
    assert verify(tmp_path).exit_code == 0
    one.path.write_bytes(b"".join(one.lines[:2]))
    assert brief(verify(tmp_path)) == (1, "truncated", f"{ONE}.jsonl", 2)
    one.lines[1] = one.lines[1].replace(b'"count":1', b'"count":2')
    one.reseal(1)
    one.write()
    assert brief(verify(tmp_path)) == (4, "history_rewritten", f"{ONE}.jsonl", 2)
    one.path.unlink()
    assert brief(verify(tmp_path))[:3] == (1, "stream_missing", f"{ONE}.jsonl")


# --- bad input ---


def test_bad_paths_are_errors_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(RecordingNotFound):
        verify(tmp_path / "none")
    with pytest.raises(RecordingNotFound):
        verify(tmp_path)
    (tmp_path / "x.jsonl").write_bytes(b"\x00\xff" * 1000)
    with pytest.raises(RecordingUnreadable):
        verify(tmp_path / "x.jsonl")


@pytest.mark.parametrize(
    "make",
    [
        lambda p: p.mkdir(),
        lambda p: p.write_bytes(bytes(range(256)) * 20),
        lambda p: p.write_text('{"a": 1}\n'),
        lambda p: os.mkfifo(p),
        lambda p: p.symlink_to("nowhere"),
    ],
    ids=["directory", "binary", "other json", "pipe", "dangling link"],
)
def test_a_file_that_is_no_stream_is_named_and_the_others_are_verified(tmp_path: Path, make: Any) -> None:
    build.small(tmp_path)
    make(tmp_path / "other.jsonl")
    report = verify(tmp_path)
    assert brief(report)[:3] == (2, "unreadable", "other.jsonl") and not report.is_valid and report.hint
    assert report.streams is not None
    assert [r.exit_code for r in report.streams] == [0, 0, 2]


def test_an_unreadable_index_or_content_file_is_named(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    recording.streams[0].content_path.unlink()
    recording.streams[0].content_path.mkdir()
    assert brief(verify(tmp_path))[:2] == (2, "unreadable")
    recording.streams[0].content_path.rmdir()
    recording.write()
    recording.index.path.unlink()
    recording.index.path.mkdir()
    assert brief(verify(tmp_path))[:3] == (1, "index_missing", "index.jsonl")


def test_a_stream_of_junk_that_the_index_lists_is_tampering(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    recording.streams[0].path.write_bytes(b"\x00" * 5000 + b"\n")
    assert brief(verify(tmp_path)) == (1, "frame", f"{ONE}.jsonl", 0)


@pytest.mark.parametrize(
    "e",
    [
        b"{}",
        b'{"v":"agentrec/1"}',
        b"[" * 900 + b"]" * 900,
        b'{"v":"agentrec/1","seq":1e400}',
        b'{"v":["agentrec/1"],"seq":{}}',
        b'{"v":"agentrec/1","seq":true,"stream":null}',
        b"\xff",
        b"not json",
        b"$",
        b"$" * 4000,
        b'{"$c":"' + b"0" * 64 + b'","bytes":' + b"9" * 5000 + b"}",
        b'{"$c":"' + b"Z" * 64 + b'","bytes":1}',
        build.canon({"v": "agentrec/1", "seq": 1, "stream": ONE, "id": "", "ts": 1, "type": "X", "payload": None}),
        build.canon({"v": "agentrec/1", "seq": 1, "stream": ONE, "id": "", "ts": "1", "type": "X", "payload": {}}),
    ],
    ids=lambda e: e[:20].decode("latin1"),
)
def test_sealed_nonsense_is_a_fault_and_never_a_crash(tmp_path: Path, e: bytes) -> None:
    stream = build.Stream(tmp_path, ONE)
    stream.raw(e)
    stream.close()
    stream.write()
    report = verify(stream.path)
    assert report.exit_code == 1 and report.index == 1 and report.kind in ("frame", "wrong_origin")
    assert verify(stream.path, level="chained").kind in (None, "unsealed_tail", "payload_missing")
    first = build.Stream(tmp_path, TWO)
    first.lines, first.hashes = [], []
    first.raw(e)
    first.write()
    assert verify(first.path).exit_code in (1, 3)


def test_names_out_of_a_file_reach_no_terminal_raw(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, "\x1b[31mred")
    path = stream.write()
    path.rename(tmp_path / "a.jsonl")
    report = verify(tmp_path / "a.jsonl")
    assert report.kind == "wrong_origin"
    assert "\x1b" not in f"{report.hint}{report.actual}"


def test_hostile_gaps_are_plain(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, ONE)
    stream.event("DROPPED", {"count": {"a": 1}, "reason": "\x1b[0m"})
    stream.event("NODE_STARTED", {"type": ["x"], "name": 5}, trace={"traceId": [1], "spanId": "\x07"}, run={})
    stream.close()
    stream.write()
    dropped, unended = verify(stream.path).gaps
    assert (dropped["count"], dropped["reason"]) == (None, "\N{REPLACEMENT CHARACTER}[0m")
    assert all(isinstance(unended[key], str) for key in ("nodeType", "name", "run"))


def test_every_kind_has_an_exit_code() -> None:
    assert set(KINDS.values()) == {0, 1, 2, 3, 4}
