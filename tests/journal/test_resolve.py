"""Resolving: content stands again where its reference stood; what can't be had costs one element."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from otel_agentrec.journal import resolve
from otel_agentrec.journal.canonical import normalise
from otel_agentrec.journal.draft import Envelope
from otel_agentrec.journal.journal import Journal
from otel_agentrec.journal.reader import Recording, Resolver, StreamFile, read_events
from otel_agentrec.redaction import Redactor

from . import build

NAME = "20260101T000000Z-1-aa"
HERE = "$.payload.facts.messages"
NOWHERE = {"$missing": {"reason": "its splice leads nowhere"}}


def history(stream: build.Stream, items: list[Any], **more: Any) -> int:
    return stream.event("NODE_RECORDED", {"type": "MODEL", "name": "m", "facts": {"messages": items_of(items), **more}})


def items_of(items: list[Any]) -> dict[str, Any]:
    return {"$list": items, "n": 0}


def messages(stream: build.Stream, seq: int, **limits: int) -> list[Any]:
    file = StreamFile(stream.name, stream.path)
    with Resolver(file, **limits) as resolver:
        found: list[Any] = resolver.resolve(file.at(seq))["facts"]["messages"]
        return found


def test_values_and_lists_stand_where_their_references_stood(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    facts = {
        "result": build.Cell({"b": [1, None], "a": "ü"}),
        "model": "m",
        "flags": [],
        "deep": {"x": build.Cell("y")},
    }
    history(stream, [build.Cell("one"), {"$v": {"$$k": 1}}, {"$off": {"bytes": 7}}, build.Cell("two")], **facts)
    stream.event("FINAL_OUTPUT", {"output": {"$off": {"bytes": 3}}})
    stream.write()
    first, second = list(read_events(stream.path))[1:]
    assert first.payload["facts"] == {
        "messages": ["one", {"$$k": 1}, {"$off": {"bytes": 7}}, "two"],
        "result": {"b": [1, None], "a": "ü"},
        "model": "m",
        "flags": [],
        "deep": {"x": "y"},
    }
    assert second.payload == {"output": {"$off": {"bytes": 3}}}


def test_unresolved_events_keep_their_references(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    history(stream, [build.Cell("one")])
    (event,) = list(read_events(stream.write(), resolve=False))[1:]
    before = repr(event.payload)
    assert set(event.payload["facts"]["messages"]["$list"][0]) == {"$c", "bytes"}
    file = StreamFile(NAME, stream.path)
    with Resolver(file) as resolver:
        resolver.resolve(event)
    assert repr(event.payload) == before, "resolving does not change the event"


def test_only_the_paths_that_are_asked_for_are_resolved(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    seq = history(stream, [build.Cell("m")], outputText=build.Cell("o"))
    after = history(stream, [[seq, 0, 1], build.Cell("n")])
    file = StreamFile(NAME, stream.write())
    with Resolver(file) as resolver:
        facts = resolver.resolve(file.at(seq), only={"$.payload.facts.outputText"})["facts"]
        assert facts["outputText"] == "o" and "$list" in facts["messages"]
        assert resolver.resolve(file.at(after))["facts"]["messages"] == ["m", "n"]


# --- splices ---


def test_a_splice_takes_a_range_of_the_same_list_or_of_another(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    first = history(stream, [build.Cell(k) for k in range(6)], outputMessages=items_of([build.Cell("reply")]))
    second = history(stream, [[first, 1, 5], build.Cell("x"), [first, 0, 1, "$.payload.facts.outputMessages"]])
    third = history(stream, [[second, 2, 6], [first, 5, 6], [second, 0, 0], [second, 3, 5]])
    stream.write()
    assert messages(stream, second) == [1, 2, 3, 4, "x", "reply"]
    assert messages(stream, third) == [3, 4, "x", "reply", 5, 4, "x"]


@pytest.mark.parametrize(
    ("splice", "gives"),
    [
        ([2, 0, 1], [NOWHERE]),
        ([3, 0, 2], [NOWHERE] * 2),
        ([99, 0, 1], [NOWHERE]),
        ([0, 0, 1], [NOWHERE]),
        ([1, 1, 4], ["b", NOWHERE, NOWHERE]),
        ([1, 7, 9], [NOWHERE] * 2),
        ([1, 0, 1, "$.payload.facts.other"], [NOWHERE]),
        ([1, 1, 0], [{"$missing": {"reason": "no item of a list"}}]),
        ([1, -1, 1], [{"$missing": {"reason": "no item of a list"}}]),
        ([1, 0], [{"$missing": {"reason": "no item of a list"}}]),
        ([1, 0, True], [{"$missing": {"reason": "no item of a list"}}]),
        ([1, 0, 1, 5], [{"$missing": {"reason": "no item of a list"}}]),
        ("text", [{"$missing": {"reason": "no item of a list"}}]),
    ],
    ids=str,
)
def test_a_splice_that_leads_nowhere_costs_its_own_elements(tmp_path: Path, splice: Any, gives: list[Any]) -> None:
    stream = build.Stream(tmp_path, NAME)
    history(stream, [build.Cell("a"), build.Cell("b")])
    seq = history(stream, [build.Cell("x"), splice, build.Cell("y")])
    after = history(stream, [[seq, len(gives), len(gives) + 2]])
    stream.write()
    assert messages(stream, seq) == ["x", *gives, "y"]
    assert messages(stream, after)[-1] == "y", "positions behind it are kept"


def test_a_short_text_that_names_a_huge_list_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "MAX_ELEMENTS", 1000)
    stream = build.Stream(tmp_path, NAME)
    size, seq = 2, history(stream, [build.Cell(1), build.Cell(2)])
    for _ in range(60):
        seq = history(stream, [[seq, 0, size], [seq, 0, size]])
        size *= 2
    far = history(stream, [[0, 0, 10**15]])
    stream.write()
    assert messages(stream, seq)[-1] == {"$missing": {"reason": "the list is too long"}}
    assert len(messages(stream, seq)) <= 1001
    assert len(messages(stream, far)) <= 1001


def test_any_depth_is_followed_without_recursion(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    seq = history(stream, [build.Cell(0)])
    for k in range(1, 2500):
        seq = history(stream, [[seq, 0, k], build.Cell(k)])
    stream.write()
    assert messages(stream, seq) == list(range(2500))


def test_a_payload_of_any_depth_is_walked_without_recursion(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    cell = build.Cell("deep")
    e = build.canon({"payload": {"x": [1]}, "seq": 1, "stream": NAME})
    depth = 900
    inner = b"[" * depth + build.canon(cell.reference) + b"]" * depth
    stream.raw(e.replace(b"[1]", inner), [(cell.salt, cell.data)])
    file = StreamFile(NAME, stream.write())
    with Resolver(file) as resolver:
        value = resolver.resolve(file.at(1))["x"]
    for _ in range(depth):
        (value,) = value
    assert value == "deep"


# --- damage and erasure ---


def three(directory: Path) -> build.Stream:
    stream = build.Stream(directory, NAME)
    history(stream, [build.Cell("a"), build.Cell("b"), build.Cell("c")])
    history(stream, [[1, 0, 3], build.Cell("d")])
    return stream


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda line: line.replace(b'"b"', b'"X"'), "damaged"),
        (lambda line: line.replace(b'"salt":"', b'"salt":"0'), "gone"),
        (lambda line: line.replace(b'{"i"', b'{"I"'), "gone"),
        (lambda line: b"\n", "gone"),
        (lambda line: b"", "gone"),
        (lambda line: line.replace(b'"seq":1', b'"seq":7'), "gone"),
        (lambda line: line[:-1] + b"\v", None),
        (lambda line: line[:30] + b"\n" + line[30:], None),
    ],
    ids=["value", "salt", "frame", "blank", "removed", "number", "newline lost", "newline in it"],
)
def test_a_damaged_cell_costs_its_own_element(tmp_path: Path, damage: Any, reason: str | None) -> None:
    stream = three(tmp_path)
    stream.cells[1] = damage(stream.cells[1])
    stream.write()
    for seq, whole in ((1, ["a", "b", "c"]), (2, ["a", "b", "c", "d"])):
        found = messages(stream, seq)
        assert len(found) == len(whole)
        wrong = [k for k, value in enumerate(found) if value != whole[k]]
        assert 1 in wrong and set(wrong) <= {1, 2}
        assert all(set(found[k]) == {"$missing"} for k in wrong)
        if reason:
            assert wrong == [1] and found[1] == {"$missing": {"bytes": 3, "reason": reason}}


def test_a_lost_content_file_costs_content_only(tmp_path: Path) -> None:
    stream = three(tmp_path)
    stream.write()
    stream.content_path.unlink()
    assert messages(stream, 2) == [{"$missing": {"bytes": 3, "reason": "gone"}}] * 4


def test_an_erased_cell_says_so(tmp_path: Path) -> None:
    stream = three(tmp_path)
    line = stream.cells[1]
    stub = b'{"i":1,"salt":null,"seq":1}'
    stream.cells[1] = stub + b" " * (len(line) - 1 - len(stub)) + b"\n"
    stream.write()
    assert messages(stream, 2) == ["a", {"$erased": {"bytes": 3}}, "c", "d"]


def test_a_value_that_is_no_json_is_damaged(tmp_path: Path) -> None:
    stream = three(tmp_path)
    cell = build.Cell("x")
    cell.data = b"not json"
    seq = history(stream, [cell])
    stream.write()
    assert messages(stream, seq) == [{"$missing": {"bytes": 8, "reason": "damaged"}}]


def test_a_damaged_event_costs_what_was_spliced_from_it(tmp_path: Path) -> None:
    stream = three(tmp_path)
    stream.lines[1] = stream.lines[1].replace(b'"ts":1', b'"ts":2')
    stream.write()
    assert messages(stream, 2) == [NOWHERE, NOWHERE, NOWHERE, "d"]


# --- caches ---


def test_tiny_caches_change_nothing_but_speed(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    seq, sent = history(stream, [build.Cell("x" * 50)]), [["x" * 50]]
    for k in range(1, 60):
        start = max(0, len(sent[-1]) - 20)
        seq = history(stream, [[seq, start, len(sent[-1])], build.Cell(f"{k}" * 20)])
        sent.append([*sent[-1][start:], f"{k}" * 20])
    stream.write()
    file = StreamFile(NAME, stream.path)
    with Resolver(file, cache_bytes=1) as resolver:
        found = [resolver.resolve(e)["facts"]["messages"] for e in file.events(from_seq=1)]
    assert found == sent


def test_a_long_history_is_not_read_again_for_every_record(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="me")
    said: list[Any] = []
    for k in range(400):
        said.append({"role": "user", "parts": [{"type": "text", "content": f"{k} " + "x" * 1000}]})
        journal.append("NODE_RECORDED", {"type": "MODEL", "name": "m", "facts": {"messages": said}})
    journal.seal()
    (stream,) = Recording(tmp_path).streams()
    begun = time.process_time()
    lengths = [len(e.payload["facts"]["messages"]) for e in read_events(tmp_path) if e.type == "NODE_RECORDED"]
    took = time.process_time() - begun
    assert lengths == list(range(1, 401))
    assert took < 2
    with Resolver(stream) as cold:
        assert cold.resolve(stream.at(400))["facts"]["messages"] == said


# --- the law ---

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def same(value: Any) -> Any:
    """A form in which equal JSON is equal: a double such as 2^60 reads as a whole number."""
    if isinstance(value, dict):
        return {key: same(inner) for key, inner in sorted(value.items())}
    if isinstance(value, list):
        return [same(inner) for inner in value]
    return float(value) if type(value) is int else value


recordings = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 12), st.lists(values, max_size=3), st.integers(0, 3), values),
    max_size=12,
)


@pytest.mark.parametrize("content", ["detached", "inline"])
@given(recording=recordings, seed=st.integers(0, 9))
@settings(max_examples=25, deadline=None)
@example([("a", 0, [{"pwd": "tiger"}], 0, {"Otp": 0})], 0)
def test_a_random_recording_resolves_to_what_was_put_in(
    tmp_path_factory: pytest.TempPathFactory, content: Any, recording: list[Any], seed: int
) -> None:
    directory = tmp_path_factory.mktemp("law")
    # no rules: what stands under the name of a credential is to come back, too
    journal = Journal(directory, origin="me", content=content, redactor=Redactor(credentials=False))
    journal.append("DROPPED", {"count": 1, "reason": "so that there is a stream"})
    known: dict[str, list[Any]] = {"a": [], "b": []}
    sent: list[Any] = []
    for session, drop, new, cut, single in recording:
        kept = known[session][drop % (len(known[session]) + 1) :]
        known[session] = [*kept[: len(kept) - cut], *new, *kept[len(kept) - cut :]]
        facts = {"messages": known[session], "outputMessages": new, "result": single, "model": "m"}
        journal.append("NODE_RECORDED", {"type": "MODEL", "name": "m", "facts": facts}, Envelope(session=session))
        sent.append(normalise({key: value for key, value in facts.items() if value is not None}))
    journal.seal()
    events = [e for e in read_events(directory) if e.type == "NODE_RECORDED"]
    assert [same(e.payload["facts"]) for e in events] == [same(facts) for facts in sent]
    # the same, event by event, in any order
    for stream in Recording(directory).streams():
        order = list(range(2, 2 + len(sent)))
        random.Random(seed).shuffle(order)
        with Resolver(stream, cache_bytes=400) as resolver:
            for seq in order:
                assert same(resolver.resolve(stream.at(seq))["facts"]) == same(sent[seq - 2])
    shutil.rmtree(directory)
