"""The contract of an event store; each twin runs it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from otel_agentrec.audit.verify import verify
from otel_agentrec.errors import UsageError
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.memory import InMemoryEventStore
from otel_agentrec.journal.store import EventStore, FileEventStore, SequenceConflict

TWINS: dict[str, Callable[[Path], EventStore]] = {"file": FileEventStore, "memory": lambda _: InMemoryEventStore()}


@pytest.fixture(params=sorted(TWINS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EventStore:
    return TWINS[request.param](tmp_path / "store")


def said(text: str, session: str = "s") -> NewEvent:
    return NewEvent("FINAL_OUTPUT", {"output": text})


def test_events_come_back_with_their_content(store: EventStore) -> None:
    done = store.append("sessions/s", [said("one"), said("two")])
    assert [d.seq for d in done] == [1, 2]
    events = list(store.read("sessions/s"))
    assert [(e.seq, e.type) for e in events] == [(0, "STREAM_OPENED"), (1, "FINAL_OUTPUT"), (2, "FINAL_OUTPUT")]
    assert [e.payload["output"] for e in events[1:]] == ["one", "two"]
    assert [e.hash for e in events[1:]] == [d.hash for d in done]
    assert [e.seq for e in store.read("sessions/s", 2)] == [2]


def test_head_and_streams_tell_what_is_there(store: EventStore) -> None:
    assert store.streams() == [] and store.head("a") is None and list(store.read("a")) == []
    (one,) = store.append("a", [said("x")])
    store.append("sessions/b%2Fc", [said("y")])
    assert store.head("a") == (2, one.hash)
    assert store.streams() == ["a", "sessions/b%2Fc"]


def test_the_second_of_two_writers_with_one_expectation_is_told(store: EventStore) -> None:
    store.append("a", [said("x")], expected_seq=0)
    store.append("a", [said("first")], expected_seq=2)
    with pytest.raises(SequenceConflict) as conflict:
        store.append("a", [said("second")], expected_seq=2)
    assert conflict.value.head == 3
    assert [e.payload.get("output") for e in store.read("a")][1:] == ["x", "first"]


@pytest.mark.parametrize("name", ["", "../up", "a/../b", "/abs", ".hidden", "a//b", "a\0b", "with space", "a/"])
def test_a_name_that_could_leave_the_store_is_refused(store: EventStore, name: str) -> None:
    with pytest.raises(UsageError):
        store.append(name, [said("x")])


WRITER = """
import sys
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.store import FileEventStore
store = FileEventStore(sys.argv[1])
for n in range(25):
    store.append("sessions/s", [NewEvent("FINAL_OUTPUT", {"output": f"{sys.argv[2]}-{n}"})])
"""


def test_processes_append_to_one_stream_without_a_gap(tmp_path: Path) -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "store"), str(k)], cwd=Path(__file__).parents[2])
        for k in range(4)
    ]
    assert [c.wait(60) for c in children] == [0] * 4
    events = list(FileEventStore(tmp_path / "store").read("sessions/s"))
    assert [e.seq for e in events] == list(range(101))
    wanted = {f"{k}-{n}" for k, n in itertools.product(range(4), range(25))}
    assert {e.payload["output"] for e in events[1:]} == wanted
    report = verify(tmp_path / "store")
    assert report.is_valid, report.to_json()
