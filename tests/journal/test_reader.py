"""Reading: what is whole is handed out, resolved, in constant memory; what is damaged costs only itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.journal.journal import Journal
from otel_agentrec.journal.reader import Recording, Resolver, StreamFile, read_events

from . import build

NAME = "20260101T000000Z-1-aa"


def open_stream(stream: build.Stream) -> StreamFile:
    return StreamFile(stream.name, stream.write())


def test_what_was_written_reads_back_resolved(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me")
    sent: list[list[dict[str, Any]]] = []
    history: list[dict[str, Any]] = []
    for k in range(20):
        history = [*history[-6:], {"role": "user", "parts": [{"type": "text", "content": f"message {k} ü"}]}]
        sent.append(history)
        journal.append("NODE_RECORDED", {"type": "MODEL", "name": "m", "facts": {"messages": history, "result": k}})
    journal.seal()
    events = list(read_events(tmp_path))
    assert [e.type for e in events] == ["STREAM_OPENED", *["NODE_RECORDED"] * 20, "STREAM_SEALED"]
    assert [e.payload["facts"]["messages"] for e in events[1:-1]] == sent
    assert [e.payload["facts"]["result"] for e in events[1:-1]] == list(range(20))
    assert "$list" in list(read_events(tmp_path, resolve=False))[1].payload["facts"]["messages"]


def test_streams_are_in_name_order_and_the_index_is_none_of_them(tmp_path: Path) -> None:
    recording = build.Recording(tmp_path)
    for name in ("b", "a"):
        recording.close(recording.open(name))
    recording.write()
    found = Recording(tmp_path)
    assert [s.name for s in found.streams()] == ["a", "b"]
    assert found.index is not None and found.sessions() == []


@pytest.mark.parametrize("seq", [0, 1, 500, 998, 999])
def test_one_event_is_found_by_its_number(tmp_path: Path, seq: int) -> None:
    stream = build.Stream(tmp_path, NAME)
    for k in range(1, 1000):
        stream.event("DROPPED", {"count": k, "reason": "x" * (k * 7 % 400)})
    found = open_stream(stream).at(seq)
    assert found.seq == seq and found.hash == stream.hashes[seq]
    assert seq == 0 or found.payload["count"] == seq


def test_a_number_that_is_not_there_is_an_index_error(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    with pytest.raises(IndexError, match="no readable event 7"):
        open_stream(stream).at(7)


def test_only_the_paths_that_are_asked_for_are_resolved(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me")
    for k in range(3):
        history = [{"role": "user", "parts": [{"type": "text", "content": f"m{i}"}]} for i in range(k + 1)]
        journal.append(
            "NODE_RECORDED", {"type": "MODEL", "name": "m", "facts": {"messages": history, "outputText": "o"}}
        )
    journal.seal()
    (stream,) = Recording(tmp_path).streams()
    with Resolver(stream) as resolver:
        facts = resolver.resolve(stream.at(2), only={"$.payload.facts.outputText"})["facts"]
        assert facts["outputText"] == "o" and "$list" in facts["messages"]
        assert len(resolver.resolve(stream.at(3))["facts"]["messages"]) == 3
