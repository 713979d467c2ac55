"""Attacks on a hash-chained log, on a closed recording of two streams whose index was left as it was.

What the levels ``chained`` and ``structured`` can see is refused with kind and line; what they can't see is at least never
called whole with a proven end. What only a head kept elsewhere can show is written down at the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.audit.verify import verify

from ..journal import build

NAME, OTHER = "20260101T000000Z-1-aa", "20260101T000001Z-2-bb"
FILE = f"{NAME}.jsonl"


@pytest.fixture
def recording(tmp_path: Path) -> build.Recording:
    """Twelve records between opening and close, a second stream beside them."""
    recording = build.Recording(tmp_path)
    stream, other = recording.open(NAME), recording.open(OTHER)
    for k in range(1, 13):
        stream.event("NODE_RECORDED", {"facts": {"outputTokens": k, "result": build.Cell(f"r{k}")}, "name": "x"})
        other.event("NODE_RECORDED", {"facts": {"outputTokens": -k}, "name": "y"})
    recording.close(stream)
    recording.close(other)
    recording.write()
    return recording


def edit(stream: build.Stream, at: int = 3) -> None:
    stream.lines[at] = stream.lines[at].replace(b'"outputTokens":%d' % at, b'"outputTokens":99')


def delete(stream: build.Stream, at: int = 3, count: int = 1) -> None:
    del stream.lines[at : at + count]


def swap(stream: build.Stream, at: int = 3, other: int = 4) -> None:
    stream.lines[at], stream.lines[other] = stream.lines[other], stream.lines[at]


def renumber(stream: build.Stream) -> None:
    for n, line in enumerate(stream.lines):
        event = json.loads(line)["event"]
        event["seq"] = n
        if event["type"] == "STREAM_SEALED":
            event["payload"]["count"] = n
        stream.lines[n] = build.seal(build.GENESIS, build.canon(event))[0]
    stream.reseal()


def reworded(change: Callable[[bytes], bytes], at: int = 3) -> Callable[[build.Stream], None]:
    def attack(stream: build.Stream) -> None:
        before = stream.lines[at]
        stream.lines[at] = change(before)
        assert stream.lines[at] != before

    return attack


def other(digits: bytes) -> bytes:
    """Two hex digits that are not these."""
    return b"11" if digits == b"00" else b"00"


def jq(line: bytes) -> bytes:
    """The line as ``jq -c`` prints it: parsed, and written again (here with its keys in another order)."""
    value = json.loads(line)
    ordered = {key: value[key] for key in ("hash", "prevHash", "event")}
    return json.dumps(ordered, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def insert_forged(stream: build.Stream) -> None:
    line, _ = build.seal(stream.hashes[2], stream.lines[3][9:-154].replace(b'"x"', b'"forged"'))
    stream.lines.insert(3, line)


SEEN: list[tuple[str, Callable[[build.Stream], object], str, int, str]] = [
    ("edited", edit, "hash_mismatch", 3, "changed after it was sealed"),
    ("deleted", delete, "prev_hash_mismatch", 3, "1 record missing"),
    ("three deleted", lambda s: delete(s, 3, 3), "prev_hash_mismatch", 3, "3 records missing"),
    ("swapped", swap, "prev_hash_mismatch", 3, "swapped with 4"),
    ("swapped afar", lambda s: swap(s, 3, 9), "prev_hash_mismatch", 3, "swapped with 9"),
    ("doubled", lambda s: s.lines.insert(4, s.lines[3]), "prev_hash_mismatch", 4, "duplicate of 3"),
    ("repeated later", lambda s: s.lines.insert(9, s.lines[2]), "prev_hash_mismatch", 9, "duplicate of 2"),
    ("forged between", insert_forged, "prev_hash_mismatch", 4, "put in or sealed anew"),
    ("of another stream", lambda s: s.lines.insert(3, FOREIGN), "prev_hash_mismatch", 3, "1 line inserted"),
    (
        "beginning cut",
        lambda s: delete(s, 0, 2),
        "genesis_missing",
        0,
        "the beginning of the stream is gone (2 records",
    ),
    (
        "hash changed",
        reworded(lambda x: x[:-142] + other(x[-142:-140]) + x[-140:]),
        "hash_mismatch",
        3,
        "only the hash field",
    ),
    (
        "prevHash changed",
        reworded(lambda x: x[:-6] + other(x[-6:-4]) + x[-4:]),
        "prev_hash_mismatch",
        3,
        "only the prevHash",
    ),
    ("doubled key", reworded(lambda x: x.replace(b'"seq":3', b'"seq":3,"seq":3')), "noncanonical_bytes", 3, "intact"),
    ("respelled number", reworded(lambda x: x.replace(b'"seq":3', b'"seq":3.0')), "noncanonical_bytes", 3, "intact"),
    ("whitespace", reworded(lambda x: x.replace(b'"seq":3', b'"seq": 3')), "noncanonical_bytes", 3, "intact"),
    (
        "unhashed field",
        reworded(lambda x: x.replace(b',"hash"', b',"note":"ok","hash"')),
        "noncanonical_bytes",
        3,
        "fields that no hash covers were added: 'note'",
    ),
    ("jq -c", lambda s: s.lines.__setitem__(slice(None), map(jq, s.lines)), "noncanonical_bytes", 0, "13 of the lines"),
    ("not a line", lambda s: s.lines.insert(3, b"hello\n"), "frame", 3, "not framed"),
    ("blank line", lambda s: s.lines.insert(3, b"\n"), "frame", 3, "not framed"),
    (
        "carriage returns",
        lambda s: s.lines.__setitem__(3, s.lines[3][:-1] + b"\r\n"),
        "noncanonical_bytes",
        3,
        "re-formatted",
    ),
    ("byte order mark", lambda s: s.lines.__setitem__(0, b"\xef\xbb\xbf" + s.lines[0]), "frame", 0, ""),
    ("newline lost", lambda s: s.lines.__setitem__(3, s.lines[3][:-1]), "frame", 3, "the newline between them"),
    ("upper case", reworded(lambda x: x[:-144] + x[-144:-80].upper() + x[-80:]), "frame", 3, ""),
    ("tail cut", lambda s: delete(s, 11, 3), "truncated", 11, "3 records missing at the end"),
    ("close cut", lambda s: delete(s, 13), "truncated", 13, "1 record missing at the end"),
    ("last line torn", lambda s: s.lines.__setitem__(13, s.lines[13][:-20]), "truncated", 13, "1 record missing"),
    ("last newline", lambda s: s.lines.__setitem__(13, s.lines[13][:-1]), "truncated", 13, "1 record missing"),
    ("emptied", lambda s: s.lines.clear(), "truncated", 0, "14 records missing"),
    ("appended after the close", lambda s: s.event("COVERAGE", {"points": []}), "close_count_mismatch", 14, "added"),
]
FOREIGN = build.seal("1" * 64, build.canon({"seq": 7}))[0]


@pytest.mark.parametrize(("attack", "kind", "index", "hint"), [row[1:] for row in SEEN], ids=[row[0] for row in SEEN])
def test_it_is_refused_with_kind_and_line(
    recording: build.Recording, attack: Callable[[build.Stream], object], kind: str, index: int, hint: str
) -> None:
    attack(recording.streams[0])
    recording.write()
    report = verify(recording.directory)
    assert (report.kind, report.file, report.first_broken_index) == (kind, FILE, index)
    assert hint in (report.hint or "") and report.exit_code == 1 and not report.is_valid and report.end == "unproven"
    assert not verify(recording.directory, level="chained").is_valid
    if recording.streams[0].lines:
        assert not verify(recording.streams[0].path).is_valid, "also when only that stream is asked for"


def edit_and_reseal(stream: build.Stream) -> None:
    edit(stream)
    stream.reseal(3)


def delete_and_renumber(stream: build.Stream) -> None:
    delete(stream)
    renumber(stream)


def cut_and_forge(stream: build.Stream) -> None:
    delete(stream, 11, 3)
    stream.hashes = [json.loads(line)["hash"] for line in stream.lines]
    for k in (11, 12):
        stream.event("NODE_RECORDED", {"facts": {"outputTokens": k}, "name": "forged"})
    stream.close()


def new_nonce(stream: build.Stream) -> None:
    stream.lines[0] = stream.lines[0].replace(b'"nonce":"00', b'"nonce":"ff')
    stream.reseal()


REWRITTEN: list[tuple[str, Callable[[build.Stream], object], str, int]] = [
    ("edited, sealed anew", edit_and_reseal, "history_rewritten", 4),
    ("deleted, renumbered, sealed anew", delete_and_renumber, "truncated", 1),
    ("tail replaced", cut_and_forge, "history_rewritten", 4),
    ("all sealed anew", new_nonce, "history_rewritten", 4),
]


@pytest.mark.parametrize(("attack", "kind", "code"), [row[1:] for row in REWRITTEN], ids=[row[0] for row in REWRITTEN])
def test_a_history_that_was_sealed_anew_contradicts_the_index(
    recording: build.Recording, attack: Callable[[build.Stream], object], kind: str, code: int
) -> None:
    stream = recording.streams[0]
    attack(stream)
    stream.cells = []  # whoever rewrites events can leave out what they said
    stream.write()
    stream.content_path.unlink()
    for level in ("chained", "structured"):
        report = verify(recording.directory, level=level, content=False)
        assert (report.kind, report.file, report.exit_code, report.is_valid) == (kind, FILE, code, False)
        assert report.end == "unproven"


def test_numbers_that_were_left_behind_by_a_deletion_are_a_gap(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    for k in range(6):
        stream.event("DROPPED", {"count": k, "reason": "r"})
    delete(stream, 2, 3)
    stream.reseal()
    stream.write()
    report = verify(stream.path)
    assert (report.kind, report.index, report.exit_code) == ("seq_gap", 2, 1)
    assert "3 records missing" in str(report.hint)
    stream.lines.insert(2, stream.lines[1])
    stream.reseal()
    stream.write()
    report = verify(stream.path)
    assert (report.kind, report.index) == ("seq_repeat", 2) and "duplicate of 1" in str(report.hint)


def test_the_valid_log_of_another_stream_in_its_place(recording: build.Recording) -> None:
    one, other = recording.streams
    one.path.write_bytes(other.path.read_bytes())
    one.content_path.unlink()
    report = verify(recording.directory)
    assert (report.kind, report.file, report.index, report.exit_code) == ("wrong_origin", FILE, 0, 1)
    report = verify(recording.directory, level="chained")
    assert (report.kind, report.exit_code) == ("history_rewritten", 4)


def test_an_opening_that_is_none_is_no_genesis(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    stream.event("DROPPED", {"count": 1, "reason": "r"})
    delete(stream, 0)
    renumber(stream)
    stream.write()
    assert verify(stream.path).kind == "genesis_missing"


@pytest.mark.parametrize("gone", ["stream", "index", "both files of a stream"])
def test_a_file_that_was_deleted_is_missed(recording: build.Recording, gone: str) -> None:
    if gone == "index":
        recording.index.path.unlink()
    else:
        recording.streams[0].path.unlink()
    if gone.startswith("both"):
        recording.streams[0].content_path.unlink()
    report = verify(recording.directory)
    assert report.exit_code == 1 and report.kind == ("index_missing" if gone == "index" else "stream_missing")


def test_an_older_copy_of_one_file_is_contradicted_by_the_others(recording: build.Recording) -> None:
    old = b"".join(recording.streams[0].lines[:5])
    recording.streams[0].path.write_bytes(old)
    assert verify(recording.directory).kind == "truncated"
    recording.write()
    # each stream names the index as it was when the stream began
    recording.index.path.write_bytes(b"".join(recording.index.lines[:1]))
    report = verify(recording.directory)
    assert (report.kind, report.exit_code) == ("rolled_back", 4)


def test_cutting_a_stream_that_is_still_open_is_never_called_proven(tmp_path: Path) -> None:
    recording = build.Recording(tmp_path)
    stream = recording.open(NAME)
    for k in range(12):
        stream.event("DROPPED", {"count": k, "reason": "r"})
    recording.write()
    for keep in range(1, 12):
        stream.path.write_bytes(b"".join(stream.lines[:keep]))
        report = verify(tmp_path)
        assert (report.exit_code, report.end) == (3, "unproven")


def test_what_only_a_head_kept_elsewhere_can_show(recording: build.Recording) -> None:
    """The limits, so that nobody takes them for more: the whole directory put back, or written anew with its index."""
    old = {path: path.read_bytes() for path in recording.directory.iterdir()}
    third = recording.open("20260101T000002Z-3-cc")
    recording.close(third)
    recording.write()
    for path in recording.directory.iterdir():
        path.unlink()
    for path, data in old.items():
        path.write_bytes(data)
    assert verify(recording.directory).exit_code == 0
    report: Any = verify(recording.directory, level="anchored")
    assert (report.exit_code, report.kind) == (3, "checkpoint_missing")
