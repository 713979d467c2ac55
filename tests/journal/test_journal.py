"""The journal of a process: every line chained, nothing raised, what is lost is counted in the chain."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.journal import journal as journal_module
from otel_agentrec.journal.canonical import canonical
from otel_agentrec.journal.draft import Envelope
from otel_agentrec.journal.journal import Journal

from . import lines


def note(journal: Journal, text: str, **where: Any) -> Any:
    payload = {"type": "TOOL", "name": "t", "facts": {"result": text}}
    return journal.append("NODE_RECORDED", payload, Envelope(**where))


def test_each_line_is_canonical_and_names_the_one_before(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "rec", origin="me")
    where = {"run": "r", "session": "s", "turn": "t", "step": 3, "trace": {"traceId": "a", "spanId": "b"}}
    note(journal, "one", **where)
    done = note(journal, "zwei ü", session="s\u2028")
    journal.seal()
    (path,) = lines.streams(tmp_path / "rec")
    events = lines.events(path)
    for line, event in zip(path.read_bytes().splitlines(), events, strict=True):
        assert line[9:-153] == canonical(event)
    assert [e["type"] for e in events] == ["STREAM_OPENED", "NODE_RECORDED", "NODE_RECORDED", "STREAM_SEALED"]
    assert {k: events[1][k] for k in where} == where
    assert lines.hashes(path)[2] == done.hash
    assert lines.cells(path) == {(1, 0): "one", (2, 0): "zwei ü"}
    assert events[3]["payload"] == {"count": 3}
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "rec" / ".gitignore").read_text() == "*\n"
    assert (tmp_path / "rec" / ".gitignore").stat().st_mode & 0o777 == 0o600


def test_the_index_lists_each_stream_and_each_stream_names_the_index(tmp_path: Path) -> None:
    for _ in range(2):
        journal = Journal(tmp_path, origin="me")
        note(journal, "x")
        journal.seal()
    index = lines.events(tmp_path / "index.jsonl")
    digests = lines.hashes(tmp_path / "index.jsonl")
    assert [e["type"] for e in index] == ["STREAM_OPENED", "OPENED", "SEALED", "OPENED", "SEALED"]
    opened = {e["payload"]["stream"]: e for e in index if e["type"] == "OPENED"}
    for path in lines.streams(tmp_path):
        first = lines.events(path)[0]["payload"]
        assert opened[path.stem]["payload"]["hash"] == lines.hashes(path)[0]
        assert first["indexTip"] == {"size": opened[path.stem]["seq"], "hash": digests[opened[path.stem]["seq"] - 1]}
        sealed = next(e["payload"] for e in index if e["type"] == "SEALED" and e["payload"]["stream"] == path.stem)
        assert sealed == {"stream": path.stem, "size": 3, "hash": lines.hashes(path)[-1]}


def test_a_held_index_lock_delays_nobody_and_the_stream_is_listed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("otel_agentrec.journal.index.RETRY_EVERY", 0.0)
    holder = os.open(tmp_path / "index.jsonl", os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)
    journal = Journal(tmp_path, origin="me")
    assert note(journal, "x")
    (path,) = lines.streams(tmp_path)
    assert "indexTip" not in lines.events(path)[0]["payload"]
    assert (tmp_path / "index.jsonl").stat().st_size == 0
    os.close(holder)
    note(journal, "y")
    assert [e["type"] for e in lines.events(tmp_path / "index.jsonl")] == ["STREAM_OPENED", "OPENED"]
    assert journal.counters["index_misses"] >= 1


@pytest.mark.parametrize("mode", ["inline", "off"])
def test_other_content_modes_write_no_cells(tmp_path: Path, mode: Any) -> None:
    journal = Journal(tmp_path, origin="me", content=mode)
    messages = [{"role": "user", "parts": []}, {"$odd": 2**60}]
    for _ in range(2):
        journal.append(
            "NODE_RECORDED", {"type": "MODEL", "name": "c", "facts": {"messages": messages, "result": "$ecret"}}
        )
    journal.seal()
    (path,) = lines.streams(tmp_path)
    assert not path.with_name(path.stem + ".content.jsonl").exists()
    facts = [e["payload"]["facts"] for e in lines.events(path)[1:3]]
    if mode == "off":
        assert facts[0]["result"] == {"$off": {"bytes": 8}} and set(facts[0]["messages"]) == {"$off"}
    else:
        assert facts[0]["result"] == "$ecret"
        assert facts[0]["messages"]["$list"] == [{"$v": messages[0]}, {"$v": {"$$odd": {"$int": str(2**60)}}}]
        assert facts[1]["messages"] == {"$list": [[1, 0, 2]], "n": 2}


def test_threads_share_one_chain(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me")
    threads = [threading.Thread(target=lambda: [note(journal, "x" * 100) for _ in range(100)]) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    journal.seal()
    (path,) = lines.streams(tmp_path)
    assert len(lines.events(path)) == 802 and len(lines.cells(path)) == 800
    assert journal.counters["records"] == 800


def test_an_append_from_inside_a_write_is_written_by_the_outer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a finaliser or signal handler does, at the worst place: the lock is held, seq and hash are half way."""
    journal = Journal(tmp_path, origin="me")
    note(journal, "first")
    real, inner = os.write, []

    def write(fd: int, data: bytes) -> int:
        if len(inner) < 3:
            inner.append(note(journal, f"inner {len(inner)}"))
        return real(fd, data)

    monkeypatch.setattr("otel_agentrec.journal.named.os.write", write)
    note(journal, "outer")
    monkeypatch.undo()
    assert inner == [None, None, None]
    (path,) = lines.streams(tmp_path)
    lines.events(path)
    assert sorted(lines.cells(path).values()) == ["first", "inner 0", "inner 1", "inner 2", "outer"]
    assert journal.counters["records"] == 5


@pytest.mark.parametrize("written", [0, 5], ids=["nothing", "half a line"])
@pytest.mark.parametrize("which", ["event", "content"])
def test_a_full_disk_leaves_no_half_line_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], written: int, which: str
) -> None:
    journal = Journal(tmp_path, origin="me")
    note(journal, "before")
    real = os.write

    def full(fd: int, data: bytes) -> int:
        if data.startswith(b'{"event"' if which == "event" else b'{"i"'):
            if written:
                return real(fd, data[:written])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr("otel_agentrec.journal.named.os.write", full)
    assert note(journal, "lost 1") is None and note(journal, "lost 2") is None
    monkeypatch.undo()
    assert note(journal, "after")
    journal.seal()
    (path,) = lines.streams(tmp_path)
    events = lines.events(path)
    dropped = [e["payload"] for e in events if e["type"] == "DROPPED"]
    assert sum(d["count"] for d in dropped) == 2 and {d["reason"] for d in dropped} == {"ENOSPC"}
    assert [e["type"] for e in events if e["type"] != "DROPPED"][1:] == [
        "NODE_RECORDED",
        "NODE_RECORDED",
        "STREAM_SEALED",
    ]
    assert lines.cells(path) == {(1, 0): "before", (len(events) - 2, 0): "after"}
    assert journal.counters["dropped"] == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_write_that_cannot_be_cut_back_ends_its_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, origin="me")
    note(journal, "before")

    def no_truncate(fd: int, length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    real = os.write
    monkeypatch.setattr("otel_agentrec.journal.named.os.ftruncate", no_truncate)
    monkeypatch.setattr("otel_agentrec.journal.named.os.write", lambda fd, data: real(fd, data[:7]))
    note(journal, "lost")
    monkeypatch.undo()
    note(journal, "after")
    found = sorted([e["type"] for e in lines.events(p)] for p in lines.streams(tmp_path))
    assert found == [["STREAM_OPENED", "DROPPED", "NODE_RECORDED"], ["STREAM_OPENED", "NODE_RECORDED"]]


def test_a_recording_that_is_deleted_under_the_writer_is_begun_anew(tmp_path: Path) -> None:
    directory = tmp_path / "rec"
    journal = Journal(directory, origin="me")
    note(journal, "gone")
    shutil.rmtree(directory)
    note(journal, "kept")
    (path,) = lines.streams(directory)
    events = lines.events(path)
    assert [e["type"] for e in events] == ["STREAM_OPENED", "DROPPED", "NODE_RECORDED"]
    assert events[1]["payload"]["count"] == 2
    assert list(lines.cells(path).values()) == ["kept"]


def taken(journal: Journal, victim: int | None) -> None:
    """What a program does that closes all descriptors, as daemons do, and then opens a file of its own."""
    assert journal._writer is not None
    for fd in journal._writer.sync_state()[1]:
        os.close(fd)
        if victim is not None:
            os.dup2(victim, fd)


@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize("then", ["write", "seal"])
def test_descriptors_that_the_program_closed_or_uses_itself_cost_neither_it_nor_the_recording(
    tmp_path: Path, reused: bool, then: str
) -> None:
    directory, own = tmp_path / "rec", tmp_path / "own"
    own.write_bytes(b"of the program")
    victim = os.open(own, os.O_RDWR)
    journal = Journal(directory, origin="me")
    note(journal, "before")
    assert journal._writer is not None
    numbers = journal._writer.sync_state()[1]
    taken(journal, victim if reused else None)
    if then == "write":
        assert note(journal, "after") is not None
    journal.seal()
    assert own.read_bytes() == b"of the program"
    assert [os.fstat(fd).st_ino for fd in numbers if reused] == [own.stat().st_ino] * (2 if reused else 0)
    (path,) = lines.streams(directory)
    assert list(lines.cells(path).values()) == ["before", *(["after"] if then == "write" else [])]
    assert lines.events(path)[-1]["type"] == "STREAM_SEALED"
    for fd in {victim, *numbers} if reused else {victim}:
        os.close(fd)


@pytest.mark.parametrize("path_holds", ["nothing", "another file"])
def test_a_recording_that_is_deleted_and_whose_descriptors_are_taken_is_begun_anew(
    tmp_path: Path, path_holds: str
) -> None:
    directory, own = tmp_path / "rec", tmp_path / "own"
    own.write_bytes(b"of the program")
    victim = os.open(own, os.O_RDWR)
    journal = Journal(directory, origin="me")
    note(journal, "gone")
    (old,) = lines.streams(directory)
    shutil.rmtree(directory)
    if path_holds == "another file":
        directory.mkdir()
        old.write_bytes(b"of somebody")
    taken(journal, victim)
    note(journal, "kept")
    assert own.read_bytes() == b"of the program"
    if path_holds == "another file":
        assert old.read_bytes() == b"of somebody"
        old.unlink()
    (path,) = lines.streams(directory)
    assert [e["type"] for e in lines.events(path)] == ["STREAM_OPENED", "DROPPED", "NODE_RECORDED"]
    os.close(victim)


def test_an_index_that_is_no_regular_file_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "index.jsonl")
    journal = Journal(tmp_path, origin="me")
    assert note(journal, "x") is not None
    journal.seal()
    (path,) = [p for p in lines.streams(tmp_path) if p.name != "index.jsonl"]
    assert "indexTip" not in lines.events(path)[0]["payload"]
    assert journal._index is not None and journal._index.misses


@pytest.mark.parametrize("path", ["/dev/full", "/dev/null/x", "{tmp}/plain", "{tmp}/plain/sub"])
def test_a_path_that_is_no_directory_costs_the_agent_nothing(tmp_path: Path, path: str) -> None:
    (tmp_path / "plain").write_text("")
    journal = Journal(path.format(tmp=tmp_path), origin="me")
    assert note(journal, "x") is None
    assert journal.counters["dropped"] == 1
    journal.seal()


def test_a_path_that_heals_is_used_and_tells_what_was_lost(tmp_path: Path) -> None:
    path = tmp_path / "later"
    path.write_text("a plain file")
    journal = Journal(path, origin="me")
    note(journal, "lost")
    path.unlink()
    assert note(journal, "kept")
    assert [e["type"] for e in lines.events(lines.streams(path)[0])] == ["STREAM_OPENED", "DROPPED", "NODE_RECORDED"]


def test_an_event_after_sealing_opens_a_late_stream(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me")
    note(journal, "in time")
    journal.seal()
    note(journal, "late")
    journal.seal()
    opened = [lines.events(p)[0]["payload"].get("late") for p in lines.streams(tmp_path)]
    assert sorted(opened, key=bool) == [None, True]


def test_a_forked_child_writes_a_stream_of_its_own(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me")
    note(journal, "parent before")
    parent = journal.stream
    child = os.fork()
    if child == 0:
        note(journal, "child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    note(journal, "parent after")
    journal.seal()
    found = {tuple(lines.cells(p).values()): lines.events(p)[0]["payload"] for p in lines.streams(tmp_path)}
    assert set(found) == {("parent before", "parent after"), ("child",)}
    assert found["child",]["parentStream"] == parent
    assert found["child",]["pid"] == child


def test_a_fork_while_another_thread_writes_does_not_hang_the_child(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me")
    note(journal, "x")
    with journal._lock:
        child = os.fork()
        if child == 0:
            note(journal, "child")
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_values_that_json_cannot_say_are_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me")
    loop: list[Any] = []
    loop.append(loop)
    for value in (float("nan"), 2**70, b"\xff", "\ud800", loop, {1: 2}, object(), {"$c": "0" * 64}):
        assert note(journal, value)
    (path,) = lines.streams(tmp_path)
    assert len(lines.cells(path)) == 8
    assert json.loads(json.dumps(lines.cells(path)[8, 0])) == {"$$c": "0" * 64}


def test_a_payload_too_large_for_an_event_is_cut_and_said(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me")
    assert journal.append("STEP_ENDED", {"kind": "x", "name": "n" * (33 << 20), "facts": {"result": "r"}})
    assert sum(p.stat().st_size for p in lines.streams(tmp_path)) < 10_000


def test_module_keeps_no_journal_alive() -> None:
    import gc

    gc.collect()
    before = len(journal_module._JOURNALS)
    Journal("unused", origin="me")
    gc.collect()
    assert len(journal_module._JOURNALS) == before


def test_a_stream_that_has_grown_goes_on_in_a_new_one_that_names_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me", segment_bytes=5_000)
    for i in range(40):
        note(journal, f"{i} " + "x" * 300)
    journal.seal()
    by_name = {p.stem: p for p in lines.streams(tmp_path)}
    assert len(by_name) >= 4
    firsts = {name: lines.events(path)[0]["payload"] for name, path in by_name.items()}
    named = {f["prevStream"]["id"]: f["prevStream"] for f in firsts.values() if "prevStream" in f}
    assert len(named) == len(by_name) - 1
    for name, prev in named.items():
        events = lines.events(by_name[name])
        assert events[-1]["type"] == "STREAM_SEALED"
        assert prev == {"id": name, "size": len(events), "hash": lines.hashes(by_name[name])[-1]}
        assert "late" not in firsts[name]
    texts = [t for path in by_name.values() for t in lines.cells(path).values()]
    assert sorted(int(t.split()[0]) for t in texts) == list(range(40))


def test_lists_are_stored_whole_again_in_a_new_stream(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me", segment_bytes=3_000)
    messages: list[Any] = []
    for i in range(30):
        messages.append({"role": "user", "parts": [{"type": "text", "content": str(i)}]})
        journal.append("NODE_RECORDED", {"type": "MODEL", "name": "c", "facts": {"messages": list(messages)}})
    journal.seal()
    last = 0
    for path in lines.streams(tmp_path):
        events, cells = lines.events(path), lines.cells(path)
        for e in events:
            if e["type"] == "NODE_RECORDED":
                found = lines.resolve_list(events, cells, e["seq"], "$.payload.facts.messages")
                assert found == messages[: len(found)]
                last = max(last, len(found))
    assert last == 30


@pytest.mark.parametrize("mode", ["inline", "detached"])
def test_an_event_longer_than_readers_take_is_counted_not_written(
    tmp_path: Path, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("otel_agentrec.journal.writer.MAX_LINE", 5_000)
    journal = Journal(tmp_path, origin="me", content=mode)
    assert note(journal, "before")
    assert note(journal, "x" * 6_000) is None
    assert note(journal, "after")
    journal.seal()
    (path,) = lines.streams(tmp_path)
    kinds = [(e["type"], e["payload"].get("reason")) for e in lines.events(path)]
    assert kinds[1:] == [
        ("NODE_RECORDED", None),
        ("DROPPED", "EFBIG"),
        ("NODE_RECORDED", None),
        ("STREAM_SEALED", None),
    ]
    assert lines.cells(path) == ({(1, 0): "before", (3, 0): "after"} if mode == "detached" else {})
