"""The contract of an event store; each twin runs it."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from otel_agentrec.audit.verify import verify
from otel_agentrec.errors import EventInvalid, UsageError
from otel_agentrec.journal.draft import Envelope, NewEvent
from otel_agentrec.journal.events.run import FinalOutput
from otel_agentrec.journal.memory import InMemoryEventStore
from otel_agentrec.journal.sqlstore import SqlEventStore
from otel_agentrec.journal.store import EventStore, FileEventStore, SequenceConflict

ROOT = Path(__file__).parents[2]
TWINS: dict[str, Callable[[Path], EventStore]] = {
    "file": FileEventStore,
    "memory": lambda _: InMemoryEventStore(),
    "sqlite": lambda path: pytest.importorskip("sqlalchemy") and SqlEventStore(f"sqlite:///{path}.db"),
}


@pytest.fixture(params=sorted(TWINS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EventStore:
    return TWINS[request.param](tmp_path / "store")


def said(content: object) -> NewEvent:
    return NewEvent("FINAL_OUTPUT", {"output": content})


def test_events_come_back_with_their_content(store: EventStore) -> None:
    done = store.append("sessions/s", [said("one"), said("two")])
    assert [d.seq for d in done] == [1, 2]
    events = list(store.read("sessions/s"))
    assert [(e.seq, e.type) for e in events] == [(0, "STREAM_OPENED"), (1, "FINAL_OUTPUT"), (2, "FINAL_OUTPUT")]
    assert [e.payload["output"] for e in events[1:]] == ["one", "two"]
    assert [e.hash for e in events[1:]] == [d.hash for d in done]
    assert [e.seq for e in store.read("sessions/s", 2)] == [2]


def test_an_event_may_be_given_as_an_object_or_typed(store: EventStore) -> None:
    given = {"type": "FINAL_OUTPUT", "payload": {"output": "one"}, "session": "s", "run": "r"}
    store.append("sessions/s", [given, FinalOutput("two"), said("three")])
    events = list(store.read("sessions/s", 1))
    assert [e.payload["output"] for e in events] == ["one", "two", "three"]
    assert [(e.session, e.run) for e in events] == [("s", "r"), (None, None), (None, None)]


@pytest.mark.parametrize(
    "event", ["FINAL_OUTPUT", {"payload": {}}, {"type": "X", "payload": []}, {"type": "X", "seq": 5}]
)
def test_what_is_no_event_is_not_appended(store: EventStore, event: Any) -> None:
    with pytest.raises(EventInvalid):
        store.append("a", [said("x"), event])
    assert store.head("a") is None


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


def test_an_append_is_done_whole_or_not_at_all(store: EventStore) -> None:
    store.append("a", [said("x")])
    head = store.head("a")
    with pytest.raises(SequenceConflict):
        store.append("a", [said("y"), said("z")], expected_seq=1)
    assert store.head("a") == head and [e.payload.get("output") for e in store.read("a", 1)] == ["x"]
    with pytest.raises(SequenceConflict):
        store.append("new", [said("y")], expected_seq=2)
    assert store.streams() == ["a"], "a stream that was not opened is not there"


def test_what_opens_a_stream_may_say_more(store: EventStore) -> None:
    store.append("a", [said("x")], 0, opened={"forkOf": {"stream": "b", "at": 3, "hash": "0" * 64}})
    first = next(iter(store.read("a")))
    assert first.payload["forkOf"]["at"] == 3 and len(first.payload["nonce"]) == 32


def test_where_an_event_belongs_and_what_it_repeats_comes_back(store: EventStore) -> None:
    trace = {"traceId": "1" * 32, "spanId": "2" * 16}
    where = Envelope(run="r", session="s\0\udc80 阿星", turn="t", step=3, trace=trace)
    store.append("a", [NewEvent("FINAL_OUTPUT", {"output": "x"}, where, "my-id", "0" * 64, 1234)])
    (event,) = store.read("a", 1)
    assert (event.run, event.session, event.turn, event.step, event.trace) == ("r", where.session, "t", 3, trace)
    assert (event.id, event.copy_of, event.ts) == ("my-id", "0" * 64, 1234)


@pytest.mark.parametrize(
    "value",
    [
        {"$ref": 1, "$schema": {"$$x": [{"$list": []}]}},
        "\0 \udc80",
        2**70,
        1.5,
        -0.0,
        [[]],
        {},
        None,
        True,
        b"\xff",
        {"": ""},
    ],
    ids=repr,
)
def test_any_value_comes_back_as_it_was(store: EventStore, value: object) -> None:
    store.append("a", [said(value)])
    (event,) = store.read("a", 1)
    assert repr(event.payload.get("output")) == repr(value)
    store.append("b", [NewEvent(event.type, event.payload)])
    assert next(iter(store.read("b", 1))).payload == event.payload, "and so does a copy"


def test_secrets_are_taken_out_before_anything_is_written(store: EventStore, tmp_path: Path) -> None:
    key = "sk-proj-" + "Ab1" * 16
    store.append("a", [said(f"the key is {key}")])
    (event,) = store.read("a", 1)
    assert key not in str(event) and "the key is" in event.payload["output"]
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and key.encode() in p.read_bytes()]


def test_what_was_computed_is_kept_by_stream_and_name(store: EventStore) -> None:
    names = ["p", "P", "p/q", "\0", "\udc80"]
    assert store.saved("a", "p") is None
    for n, name in enumerate(names):
        store.save("a", name, b"\0\xff%d" % n)
    store.save("b", "p", b"other")
    store.save("a", "p", b"again")
    assert [store.saved("a", name) for name in names] == [b"again", b"\0\xff1", b"\0\xff2", b"\0\xff3", b"\0\xff4"]


def test_a_reader_sees_what_was_there_when_it_began(store: EventStore) -> None:
    store.append("a", [said(str(n)) for n in range(40)])
    seen = []
    for event in store.read("a", 1):
        seen.append(event.payload["output"])
        if len(seen) == 1:
            store.append("a", [said("later")])  # and a writer does not wait for it
    assert seen[:40] == [str(n) for n in range(40)]


APPENDS = st.lists(
    st.tuples(
        st.sampled_from(["a", "sessions/b"]),
        st.lists(
            st.recursive(
                st.text() | st.integers() | st.booleans(),
                lambda s: st.lists(s) | st.dictionaries(st.text(), s),
                max_leaves=5,
            ),
            max_size=3,
        ),
        st.none() | st.integers(0, 6),
    ),
    max_size=6,
)


@settings(max_examples=25)
@given(APPENDS)
@example([("a", [{"Pwd": "tiger"}], None)])
def test_all_twins_tell_one_story(
    tmp_path_factory: pytest.TempPathFactory, appends: list[tuple[str, list[object], int | None]]
) -> None:
    stories = []
    for make in TWINS.values():
        store = make(tmp_path_factory.mktemp("store") / "store")
        told: list[object] = []
        for stream, values, expected in appends:
            try:
                told.append([done.seq for done in store.append(stream, [said(value) for value in values], expected)])
            except SequenceConflict as conflict:
                told.append(("conflict", conflict.head))
        for stream in store.streams():
            head = store.head(stream)
            events = list(store.read(stream))
            assert head == (len(events), events[-1].hash)
            told.append([stream, [(e.seq, e.type, e.payload.get("output")) for e in events]])
        # what is redacted is known again by a mark that is each store's own
        stories.append(re.sub(r"~[0-9a-f]{8}\)", "~)", repr(told)))
    assert all(story == stories[0] for story in stories)


WRITER = """
import sys
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.sqlstore import SqlEventStore
from otel_agentrec.journal.store import FileEventStore
kind, path, count, name = sys.argv[1:]
store = FileEventStore(path) if kind == "file" else SqlEventStore(f"sqlite:///{path}.db")
for n in range(int(count)):
    store.append("sessions/s", [NewEvent("FINAL_OUTPUT", {"output": f"{name}-{n}"})])
"""


@pytest.mark.parametrize(("twin", "count"), [("file", 25), ("sqlite", 8)])  # SQLite waits for the disk
def test_processes_append_to_one_stream_without_a_gap(tmp_path: Path, twin: str, count: int) -> None:
    store = TWINS[twin](tmp_path / "store")
    command = [sys.executable, "-c", WRITER, twin, str(tmp_path / "store"), str(count)]
    children = [subprocess.Popen([*command, str(k)], cwd=ROOT) for k in range(4)]
    assert [c.wait(60) for c in children] == [0] * 4
    events = list(store.read("sessions/s"))
    assert [e.seq for e in events] == list(range(4 * count + 1))
    wanted = {f"{k}-{n}" for k, n in itertools.product(range(4), range(count))}
    assert {e.payload["output"] for e in events[1:]} == wanted
    if isinstance(store, SqlEventStore):
        store.export("sessions/s", tmp_path / "store")
    report = verify(tmp_path / "store")
    assert report.is_valid, report.to_json()
