"""Reading: what is whole is handed out, in order or by number; what does not fit the chain is never shown."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.errors import RecordingNotFound, RecordingUnreadable
from otel_agentrec.journal.reader import Recording, StreamFile, read_events

from . import build

NAME = "20260101T000000Z-1-aa"


def written(stream: build.Stream) -> StreamFile:
    return StreamFile(stream.name, stream.write())


def counted(directory: Path, count: int, pad: int = 0) -> build.Stream:
    stream = build.Stream(directory, NAME)
    for k in range(1, count):
        stream.event("DROPPED", {"count": k, "reason": "x" * (k * 7 % (pad + 1))})
    return stream


def seqs(stream: StreamFile, **how: bool) -> list[int]:
    return [event.seq for event in stream.events(**how)]


# --- recordings ---


def test_streams_are_in_name_order_and_the_index_is_none_of_them(tmp_path: Path) -> None:
    recording = build.Recording(tmp_path)
    for name in ("b", "a"):
        recording.close(recording.open(name))
    recording.write()
    found = Recording(tmp_path)
    assert [s.name for s in found.streams()] == ["a", "b"]
    assert found.index is not None and found.sessions() == []
    assert found.stream("b") is found.streams()[1] and found.stream("index") is found.index
    assert found.stream("c") is None


def test_sessions_are_streams_below_their_directory(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    session = build.Stream(tmp_path, "sessions/a%2Fb")
    session.write()
    (found,) = Recording(tmp_path).sessions()
    assert found.name == "sessions/a%2Fb" and found.named
    assert [e.type for e in read_events(tmp_path)] == ["STREAM_OPENED"]
    assert Recording(session.path).single is not None
    assert [s.name for s in Recording(session.path).streams()] == ["sessions/a%2Fb"]


def test_a_single_file_is_a_recording_of_one_stream(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    path = recording.streams[0].path
    assert [s.path for s in Recording(path).streams()] == [path]
    assert {e.stream for e in read_events(path)} == {path.stem}


@pytest.mark.parametrize(
    ("made", "error", "says"),
    [
        (lambda p: None, RecordingNotFound, "does not exist"),
        (lambda p: p.mkdir(), RecordingNotFound, "holds no recording"),
        (lambda p: p.touch(), RecordingUnreadable, "is empty"),
        (lambda p: p.write_bytes(bytes(range(256)) * 40), RecordingUnreadable, "is no recording"),
        (lambda p: p.write_text('{"resourceSpans": []}\n'), RecordingUnreadable, "is no recording"),
        (lambda p: p.symlink_to(p), (RecordingNotFound, RecordingUnreadable), "x.jsonl"),
        (lambda p: p.symlink_to("/dev/null"), RecordingUnreadable, "not a regular file"),
    ],
    ids=["none", "empty directory", "empty file", "binary", "otlp", "loop", "device"],
)
def test_what_is_no_recording_is_one_clear_line(tmp_path: Path, made, error, says) -> None:  # type: ignore[no-untyped-def]
    made(tmp_path / "x.jsonl")
    with pytest.raises(error, match=says) as caught:
        Recording(tmp_path / "x.jsonl")
    assert caught.value.hint and "\n" not in str(caught.value) and caught.value.exit_code == 2


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, ""])
def test_a_hostile_path_is_not_found(tmp_path: Path, path: str) -> None:
    with pytest.raises(RecordingNotFound):
        Recording(str(tmp_path / path) if path else "")


def test_a_recording_may_itself_be_called_sessions(tmp_path: Path) -> None:
    path = build.Stream(tmp_path / "sessions", NAME).write()
    assert [s.name for s in Recording(path).streams()] == [NAME]
    assert [e.stream for e in read_events(tmp_path / "sessions")] == [NAME]


def test_a_content_file_points_to_its_stream(tmp_path: Path) -> None:
    recording = build.small(tmp_path)
    with pytest.raises(RecordingUnreadable, match="content file") as caught:
        Recording(recording.streams[0].content_path)
    assert caught.value.hint.endswith(f"{recording.streams[0].name}.jsonl")


def test_a_file_that_is_no_stream_gives_no_events(tmp_path: Path) -> None:
    build.small(tmp_path)
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "junk.jsonl").write_bytes(bytes(range(256)))
    assert len(list(read_events(tmp_path))) == 10


# --- events ---


def test_events_come_with_their_envelope_and_place(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    trace = {"traceId": "t", "spanId": "s"}
    stream.event("DROPPED", {"count": 1, "reason": "r"}, run="r", session="s", turn="t", step=3, trace=trace)
    first, second = written(stream).events()
    assert (first.type, first.seq, first.prev_hash) == ("STREAM_OPENED", 0, "0" * 64)
    assert (second.hash, second.prev_hash) == (stream.hashes[1], stream.hashes[0])
    assert (second.run, second.session, second.turn, second.step, second.trace) == ("r", "s", "t", 3, trace)
    assert second.mono == 10**9 + 1 and second.ts == 1_780_000_000_001


@pytest.mark.parametrize("at", range(5))
def test_reading_stops_at_the_first_line_that_was_changed(tmp_path: Path, at: int) -> None:
    stream = counted(tmp_path, 5)
    stream.lines[at] = stream.lines[at].replace(b'"ts":1', b'"ts":2')
    file = written(stream)
    assert seqs(file) == list(range(at))
    assert file.damaged_at == at


def test_broken_lines_can_be_skipped_and_are_told(tmp_path: Path) -> None:
    stream = counted(tmp_path, 6)
    stream.lines[2] = b"{}\n"
    stream.lines[4] = b"\xff\xfe" + stream.lines[4]
    told: list[int] = []
    file = written(stream)
    assert [e.seq for e in file.events(skip_broken=True, on_damage=told.append)] == [0, 1, 3, 5]
    assert told == [2, 4] and file.damaged_at == 2


def test_a_line_that_was_taken_out_ends_the_valid_prefix(tmp_path: Path) -> None:
    stream = counted(tmp_path, 6)
    del stream.lines[3]
    assert seqs(written(stream)) == [0, 1, 2]


@pytest.mark.parametrize("cut", [1, 5, 100, 200])
def test_a_torn_tail_is_passed_over(tmp_path: Path, cut: int) -> None:
    stream = counted(tmp_path, 4)
    stream.lines[3] = stream.lines[3][:-cut]
    file = written(stream)
    assert seqs(file) == [0, 1, 2]
    assert file.damaged_at is None
    last = file.last()
    assert last is not None and last.seq == 2


@pytest.mark.parametrize("data", [b"", b"\n", b"{", b'{"event":', b"\n\n\n"])
def test_a_file_without_a_whole_event_has_none(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    stream = StreamFile("a", path)
    assert list(stream.events()) == [] and stream.first() is None and stream.last() is None and not stream.sealed


def test_an_envelope_of_the_wrong_types_reads_as_empty(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    hostile = {"seq": "1", "ts": [], "payload": [1], "trace": "t", "mono": "9" * 5000, "type": None, "id": {}}
    stream.raw(build.canon(hostile))
    stream.raw(b'{"a":1e999}')
    stream.raw(b"[1]")
    found = list(written(stream).events())
    assert [e.type for e in found] == ["STREAM_OPENED", ""]
    assert (found[1].payload, found[1].trace, found[1].mono, found[1].ts) == ({}, None, None, 0)


def test_the_chain_of_the_seed_reads_too(tmp_path: Path) -> None:
    path = tmp_path / "seed.jsonl"
    prev, lines = "0" * 64, []
    for n in range(3):
        line, prev = build.seal(prev, build.canon({"seq": n + 1, "ts": 5, "type": "T", "payload": {"n": n}}))
        lines.append(line)
    path.write_bytes(b"".join(lines))
    assert [(e.seq, e.type, e.payload) for e in read_events(path)] == [(n + 1, "T", {"n": n}) for n in range(3)]


def test_a_file_is_read_up_to_the_size_it_had_at_the_start(tmp_path: Path) -> None:
    stream = counted(tmp_path, 3)
    file = written(stream)
    reading = file.events()
    assert next(reading).seq == 0
    stream.event("DROPPED", {"count": 9, "reason": "later"})
    stream.write()
    assert [e.seq for e in reading] == [1, 2]
    assert file.damaged_at is None


# --- one event ---


@pytest.mark.parametrize("iterated", [False, True], ids=["cold", "after reading"])
@pytest.mark.parametrize("seq", [0, 1, 500, 998, 999])
def test_one_event_is_found_by_its_number(tmp_path: Path, seq: int, iterated: bool) -> None:
    stream = counted(tmp_path, 1000, pad=400)
    file = written(stream)
    if iterated:
        assert len(seqs(file)) == 1000
    found = file.at(seq)
    assert found.seq == seq and found.hash == stream.hashes[seq]
    assert seq == 0 or found.payload["count"] == seq
    assert [e.seq for e in file.events(from_seq=seq)] == list(range(seq, 1000))


def test_a_number_that_is_not_there_is_an_index_error(tmp_path: Path) -> None:
    file = written(counted(tmp_path, 3))
    for seq in (3, 10**9):
        with pytest.raises(IndexError, match="no readable event"):
            file.at(seq)
        assert list(file.events(from_seq=seq)) == []


def test_a_damaged_line_hides_only_itself(tmp_path: Path) -> None:
    stream = counted(tmp_path, 50)
    for k in (7, 8, 30):
        stream.lines[k] = b"\x00" * (len(stream.lines[k]) - 1) + b"\n"
    stream.lines[20] = stream.lines[20].replace(b'"count":20', b'"count":21')
    file = written(stream)
    for seq in range(50):
        if seq in (7, 8, 20, 30):
            with pytest.raises(IndexError):
                file.at(seq)
        else:
            assert file.at(seq).seq == seq


@given(st.integers(0, 2**32))
def test_any_byte_that_is_changed_never_shows_a_changed_event(
    tmp_path_factory: pytest.TempPathFactory, at: int
) -> None:
    directory = tmp_path_factory.mktemp("flip")
    stream = counted(directory, 4)
    good = {h: json.loads(line)["event"] for h, line in zip(stream.hashes, stream.lines, strict=True)}
    data = bytearray(b"".join(stream.lines))
    data[at % len(data)] ^= 1 << (at // len(data)) % 8
    path = stream.path
    path.write_bytes(data)
    for event in StreamFile(NAME, path).events(skip_broken=True):
        assert event.hash in good and event.payload == good[event.hash]["payload"]


def test_memory_stays_flat_over_a_long_stream(tmp_path: Path) -> None:
    file = written(counted(tmp_path, 20_000))

    def peak() -> int:
        tracemalloc.start()
        count = sum(1 for _ in file.events())
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == 20_000
        return used

    assert peak() < 4 << 20
