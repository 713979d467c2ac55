"""The ledger as it is read: the first word wins, whichever stream it stands in, and a span settles nothing where events do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.journal.events import Event
from otel_agentrec.nodes.effects import DONE, FAILED, NOT_BEGUN, RUNNING, UNKNOWN, Effect, EffectEvents, fold_effects
from otel_agentrec.nodes.lineage import Lineages


class Told:
    """Events of one effect in two streams, as they are told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def say(self, type_: str, ts: int, stream: str = "a", run: str | None = "r", **payload: Any) -> Told:
        seq = sum(e.stream == stream for e in self.events)
        told = {"effectId": "e1", **payload}
        self.events.append(Event(f"{stream}{seq}", stream, seq, ts, type_, told, run=run))
        return self

    def effects(self, live: str = "") -> list[Effect]:
        found = EffectEvents.of(self.events)
        return fold_effects(found.events, found.lineages, lambda e: e.payload, lambda stream: stream == live)


def began(ts: int = 1, **more: Any) -> Told:
    return Told().say("EFFECT_STARTED", ts, name="pay", root="r", arguments={"x": 1}, **more)


@pytest.mark.parametrize(
    ("after", "state"),
    [
        ([], UNKNOWN),
        ([("EFFECT_DONE", "a", {"output": 1})], DONE),
        ([("EFFECT_FAILED", "a", {"error": {"type": "KeyError"}})], FAILED),
        ([("EFFECT_RESOLVED", "b", {"outcome": "done", "output": 2})], DONE),
        ([("EFFECT_RESOLVED", "b", {"outcome": "not_done"})], NOT_BEGUN),
        ([("EFFECT_RESOLVED", "b", {"outcome": "not_done"}), ("EFFECT_RESOLVED", "c", {"outcome": "done"})], NOT_BEGUN),
        ([("EFFECT_RESOLVED", "b", {"outcome": "not_done"}), ("EFFECT_STARTED", "c", {"name": "pay"})], UNKNOWN),
        ([("EFFECT_DONE", "a", {"output": 1}), ("EFFECT_RESOLVED", "b", {"outcome": "not_done"})], DONE),
        (
            [("EFFECT_DONE", "a", {"output": {"$off": {"bytes": 3}}}), ("EFFECT_RESOLVED", "b", {"outcome": "done"})],
            DONE,
        ),
        ([("EFFECT_STARTED", "b", {"name": "pay"}), ("EFFECT_DONE", "b", {"output": 3})], DONE),
    ],
)
def test_the_states(after: list[tuple[str, str, dict[str, Any]]], state: str) -> None:
    told = began()
    for n, (type_, stream, payload) in enumerate(after):
        told.say(type_, 2 + n, stream, **payload)
    (effect,) = told.effects()
    assert effect.state == state
    assert effect.lost is None


def test_what_a_living_process_has_begun_is_running() -> None:
    assert [e.state for e in began().effects(live="a")] == [RUNNING]
    assert [e.state for e in began().effects(live="b")] == [UNKNOWN]


def test_a_clock_that_is_set_back_changes_nothing() -> None:
    (effect,) = began(1000).say("EFFECT_DONE", 3, output=1).effects()
    assert effect.state == DONE


@pytest.mark.parametrize(
    "output", [{"$off": {"bytes": 3}}, {"a": "REDACTED(password~1a2b3c4d)"}, {"$cut": {"bytes": 9}}]
)
def test_what_is_not_whole_must_be_settled(output: Any) -> None:
    (effect,) = began().say("EFFECT_DONE", 2, output=output).effects()
    assert (effect.state, effect.needs_settling) == (DONE, True)


def test_what_only_reads_needs_no_settling() -> None:
    told = Told().say("EFFECT_STARTED", 1, name="look", effect=False)
    assert [(e.state, e.needs_settling) for e in told.effects()] == [(UNKNOWN, False)]


def test_the_root_of_an_attempt() -> None:
    told = Told().say("RUN_RESUMED", 1, run="r2", root="r1").say("RUN_RESUMED", 2, "b", run="r3", root="r1")
    lineages = EffectEvents.of(told.events).lineages
    assert (lineages.root("r2"), lineages.root("r3"), lineages.root("r1")) == ("r1", "r1", "r1")
    assert lineages.runs("r1") == ["r1", "r2", "r3"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), max_size=8))
def test_hostile_lineages_have_one_root_and_no_circle(pairs: list[tuple[str, str]]) -> None:
    told = Told()
    for n, (run, root) in enumerate(pairs):
        told.say("RUN_RESUMED", n, run=run, root=root)
    lineages = Lineages.of(told.events)
    for run in "abc":
        assert lineages.root(lineages.root(run)) == lineages.root(run)


@given(st.data())
def test_hostile_payloads_are_read(data: st.DataObject) -> None:
    anything = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just({}) | st.just([1])
    told = Told()
    for n in range(4):
        type_ = data.draw(st.sampled_from(["EFFECT_STARTED", "EFFECT_DONE", "EFFECT_FAILED", "EFFECT_RESOLVED"]))
        keys = ("effectId", "name", "root", "lane", "output", "error", "outcome", "effect", "arguments")
        told.say(type_, n, **{key: data.draw(anything) for key in keys})
    for effect in told.effects():
        effect.to_json()
