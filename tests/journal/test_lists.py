"""Splices: any list comes back as it was sent, and what repeats is not stored again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_agentrec.journal.draft import Envelope
from otel_agentrec.journal.facts import RawList
from otel_agentrec.journal.journal import Journal
from otel_agentrec.journal.lists import ListCache, Run, parse_elements

from . import lines

MESSAGES = "$.payload.facts.messages"
OUTPUT = "$.payload.facts.outputMessages"


def message(i: int, text: str = "") -> dict[str, Any]:
    return {"role": "assistant" if i % 2 else "user", "parts": [{"type": "text", "content": f"{i} {text}"}]}


def record(journal: Journal, messages: Any, output: Any = None, session: str = "s") -> int:
    facts = {"messages": messages, "outputMessages": output}
    done = journal.append("NODE_RECORDED", {"type": "MODEL", "name": "chat", "facts": facts}, Envelope(session=session))
    assert done
    return done.seq


def raw(items: list[Any], **dumps: Any) -> RawList:
    return RawList(json.dumps(items, **dumps), lambda element: element)


def written(directory: Path) -> tuple[list[dict[str, Any]], dict[tuple[int, int], Any]]:
    (path,) = lines.streams(directory)
    return lines.events(path), lines.cells(path)


history = st.lists(st.integers(0, 12), max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    calls=st.lists(
        st.tuples(history, st.booleans(), st.sampled_from(["a", "b"]), st.sampled_from([None, 1])), max_size=12
    )
)
def test_any_list_comes_back_as_it_was_sent(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[list[int], bool, str, int | None]]
) -> None:
    directory = tmp_path_factory.mktemp("rec")
    journal = Journal(directory, origin="test")
    sent = []
    for numbers, as_text, session, indent in calls:
        items = [message(n) for n in numbers]
        seq = record(journal, raw(items, indent=indent) if as_text else items, session=session)
        sent.append((seq, items))
    journal.seal()
    if sent:
        events, cells = written(directory)
        for seq, items in sent:
            assert lines.resolve_list(events, cells, seq, MESSAGES) == items


def test_a_growing_history_adds_only_what_is_new(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="test")
    items: list[Any] = []
    for i in range(0, 40, 2):
        items.append(message(i))
        record(journal, raw(items), [message(i + 1)])
        items.append(message(i + 1))
    _, cells = written(tmp_path)
    assert len(cells) == 40


def test_a_reply_stored_as_output_is_not_stored_again_as_input(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="test")
    first = record(journal, raw([message(0)]), [message(1)])
    second = record(journal, raw([message(0), message(1), message(2)]))
    events, cells = written(tmp_path)
    items = events[second]["payload"]["facts"]["messages"]["$list"]
    assert items[:2] == [[first, 0, 1], [first, 0, 1, OUTPUT]]
    assert lines.resolve_list(events, cells, second, MESSAGES) == [message(0), message(1), message(2)]
    assert len(cells) == 3


@pytest.mark.parametrize("window", [5, 20])
def test_a_trimmed_window_is_a_range_of_the_list_before(tmp_path: Path, window: int) -> None:
    journal = Journal(tmp_path, origin="test")
    for i in range(60):
        record(journal, raw([message(n) for n in range(max(0, i - window), i)]))
    events, cells = written(tmp_path)
    assert len(cells) == 59
    assert all(len(e["payload"]["facts"]["messages"]["$list"]) <= 2 for e in events[2:])


def test_two_interleaved_histories_do_not_push_each_other_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="test")
    one, two = [message(0, "one")], [message(0, "two")]
    for i in range(1, 30):
        for mine, name in ((one, "one"), (two, "two")):
            record(journal, raw(mine))
            mine.append(message(i, name))
    _, cells = written(tmp_path)
    assert len(cells) == 58


def test_a_long_chain_of_lists_is_cut_short(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="test")
    items: list[Any] = []
    for i in range(200):
        items.append(message(i))
        last = record(journal, raw(items))
    events, cells = written(tmp_path)
    hops: dict[int, list[int]] = {}  # of each element
    for e in events[1:]:
        mine: list[int] = []
        for item in e["payload"]["facts"]["messages"]["$list"]:
            mine += [1 + h for h in hops[item[0]][item[1] : item[2]]] if isinstance(item, list) else [0]
        hops[e["seq"]] = mine
    assert 32 < max(max(h) for h in hops.values()) <= 64
    assert lines.resolve_list(events, cells, last, MESSAGES) == items


def test_text_that_only_looks_alike_at_the_boundary_is_compared_by_element() -> None:
    cache = ListCache()
    cache.add("k", 1, [cache.draft("k", "p", RawList('["ab","c"]', lambda e: e))])
    draft = cache.draft("k", "p", RawList('["ab","cd"]', lambda e: e))
    assert draft.items == [Run(1, 0, 1, "p", 1), b'"cd"']
    numbers = cache.draft("n", "p", RawList("[1,12]", lambda e: e))
    cache.add("n", 2, [numbers])
    assert cache.draft("n", "p", RawList("[1,123]", lambda e: e)).items[-1] == b"123"


def test_cut_json_is_kept_as_the_text_it_is(tmp_path: Path) -> None:
    journal = Journal(tmp_path, origin="test")
    cut = json.dumps([message(0), message(1)])[:-9]
    seq = record(journal, RawList(cut, lambda e: e))
    events, cells = written(tmp_path)
    assert "$c" in events[seq]["payload"]["facts"]["messages"]
    assert cells[seq, 0] == cut


@pytest.mark.parametrize("text", ["", "[", "[1", "[1,", "[1,]", "[,1]", "{}", "[1] x", "[1}", "nul", "[" * 100_000])
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        parse_elements(text)


def test_numbers_keep_what_they_say() -> None:
    text = "[ 9007199254740993 , 0.1 , 1E400 , 18446744073709551617 ]"
    assert [v for v, _ in parse_elements(text)] == [9007199254740993, 0.1, "1E400", 18446744073709551617]


def test_the_cache_forgets_the_oldest_conversation_beyond_its_bound() -> None:
    cache = ListCache(max_weight=10_000)
    for key in range(50):
        cache.add(key, key, [cache.draft(key, "p", [message(i, "x" * 50) for i in range(5)])])
    assert len(cache._shelves) < 12
    assert cache.draft(49, "p", [message(0, "x" * 50)]).items == [Run(49, 0, 1, "p", 1)]


def test_a_history_larger_than_the_bound_still_adds_only_what_is_new() -> None:
    cache = ListCache(max_weight=20_000)
    for turn in range(60):
        draft = cache.draft("s", "p", raw([message(i, "x" * 500) for i in range(turn + 1)]))
        assert sum(isinstance(item, bytes) for item in draft.items) == 1
        cache.add("s", turn, [draft])


def test_many_long_conversations_in_turn_still_add_only_what_is_new() -> None:
    cache = ListCache(max_weight=200_000)
    for turn in range(20):
        for key in range(10):
            draft = cache.draft(key, "p", raw([message(i, f"{key}{'x' * 2000}") for i in range(turn + 1)]))
            assert sum(isinstance(item, bytes) for item in draft.items) == 1
            cache.add(key, turn * 10 + key, [draft])
        assert cache._weight <= 200_000


def test_a_list_takes_the_place_of_those_that_it_continues() -> None:
    cache = ListCache()
    for turn in range(5):
        cache.add("s", turn, [cache.draft("s", "p", raw([message(i) for i in range(turn + 1)]))])
    (kept,) = cache._shelves["s"].lists["p"]
    assert kept.seq == 4
