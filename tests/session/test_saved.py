"""Law: saved projection + later events = all events replayed, for any log and any policy."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_agentrec.journal.store import FileEventStore
from otel_agentrec.session.log import SessionLog
from otel_agentrec.session.policy import CONVERSATION, Policy, with_compaction, with_tools

POLICIES = [
    CONVERSATION,
    with_tools(CONVERSATION),
    with_compaction(CONVERSATION),
    with_compaction(with_tools(CONVERSATION)),
    with_tools(with_compaction(CONVERSATION, role="system")),
]
ids = st.sampled_from(["c1", "c2", None])
texts = st.text(st.characters(codec="utf-8"), max_size=8)
contents = texts | st.lists(st.fixed_dictionaries({"type": st.just("text"), "content": texts}), max_size=2)
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "parts": st.just([])}), max_size=3
)
events = st.one_of(
    st.tuples(st.just("USER_MESSAGE_APPENDED"), st.fixed_dictionaries({"content": contents})),
    st.tuples(st.just("AGENT_REPLY_APPENDED"), st.fixed_dictionaries({"content": contents})),
    st.tuples(st.just("TOOL_CALLED"), st.fixed_dictionaries({"name": st.just("t"), "call_id": ids})),
    st.tuples(st.just("TOOL_RESULT_APPENDED"), st.fixed_dictionaries({"call_id": ids, "result": texts})),
    st.tuples(st.just("TURN_COMPLETED"), st.just({})),
    st.tuples(st.just("CONTEXT_REPLACED"), st.fixed_dictionaries({"messages": messages})),
    st.tuples(
        st.just("CONTEXT_COMPACTED"),
        st.fixed_dictionaries({"from_": st.integers(1, 9), "to": st.integers(1, 20), "summary": texts}),
    ),
    st.tuples(st.just("REQUEST_HEADER"), st.fixed_dictionaries({"parameters": st.just({"model": "m"})})),
)


def append(log: SessionLog, what: tuple[str, dict[str, Any]]) -> None:
    log.append(what[0], **what[1])


@settings(max_examples=60, deadline=None)
@given(st.lists(events, min_size=1, max_size=12), st.lists(events, max_size=6), st.sampled_from(POLICIES))
def test_a_saved_projection_and_what_came_later_is_the_whole(
    before: list[tuple[str, dict[str, Any]]], after: list[tuple[str, dict[str, Any]]], policy: Policy
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        log = SessionLog.open(scratch, "s", policy=policy)
        for event in before:
            append(log, event)
        log.save_projection()
        for event in after:
            append(log, event)

        opened = SessionLog.open(scratch, "s", policy=policy)
        now = opened.state()
        assert opened.events_read == 1 + len(after), "PROJECTION_SAVED, and what came after it"

        whole = SessionLog.open(scratch, "s", policy=replace(policy, version=policy.version + 1))
        assert whole.state() == now
        assert whole.events_read == log.head()
        assert opened.project() == whole.project()


@settings(max_examples=30, deadline=None)
@given(st.lists(events, min_size=2, max_size=10), st.data())
def test_two_forks_never_touch_their_parent(parts: list[tuple[str, dict[str, Any]]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        log = SessionLog.open(scratch, "s", policy=POLICIES[3])
        for event in parts:
            append(log, event)
        files = {p: p.read_bytes() for p in (Path(scratch) / "sessions").iterdir()}
        at = data.draw(st.integers(0, log.head() - 1))
        forks = [log.fork(at, f"fork {n}") for n in range(2)]
        for n, fork in enumerate(forks):
            assert fork.project() == log.project(at=at)
            fork.user(f"way {n}")
        assert {p: p.read_bytes() for p in files} == files
        assert [list(f.events())[-1].payload for f in forks] == [{"content": "way 0"}, {"content": "way 1"}]


def saved_file(scratch: Path) -> Path:
    (file,) = (scratch / "projections").iterdir()
    return file


@pytest.mark.parametrize("spoil", ["cut", "other bytes", "gone", "other history", "other version", "later than asked"])
def test_what_does_not_fit_is_passed_over(tmp_path: Path, spoil: str) -> None:
    log = SessionLog.open(tmp_path, "s")
    log.user("one")
    log.reply("two")
    log.save_projection()
    wanted, policy, at = log.project(), CONVERSATION, None
    file = saved_file(tmp_path)
    data = file.read_bytes()
    if spoil == "cut":
        file.write_bytes(data[:-9])
    elif spoil == "other bytes":
        file.write_bytes(data.replace(b"two", b"owt"))
    elif spoil == "gone":
        file.unlink()
    elif spoil == "other history":
        for part in (tmp_path / "sessions").iterdir():
            part.unlink()
        log.user("one")
        log.reply("another two")
        wanted = log.project(policy=replace(CONVERSATION, version=9))
    elif spoil == "other version":
        policy = replace(CONVERSATION, version=2)
    else:
        at, wanted = 2, wanted[:1]
    opened = SessionLog.open(tmp_path, "s")
    assert opened.project(policy, at) == wanted
    assert opened.events_read >= log.head() - 1 or at == 2


def test_a_saved_projection_of_time_travel_is_used_when_it_is_early_enough(tmp_path: Path) -> None:
    log = SessionLog.open(tmp_path, "s")
    for i in range(5):
        log.user(f"u{i}")
    log.save_projection()
    for i in range(5, 9):
        log.user(f"u{i}")
    opened = SessionLog.open(FileEventStore(tmp_path), "s")
    assert [m["parts"][0]["content"] for m in opened.project(at=9)] == [f"u{i}" for i in range(7)]
    assert opened.events_read == 4  # the marker, two messages, and the one that is past
