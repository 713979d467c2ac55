"""Why a request misses: the nearest recorded one, and the paths that differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.prompts import AgentPrompt, AgentToolCall
from otel_agentrec.resume.cache import ResumeCache
from otel_agentrec.resume.jsondiff import ABSENT, differences

values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from("xyz"), x, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ({"x": 1}, {"x": 2}, [("$.x", "value", 1, 2)]),
        ({"x": 1}, {"x": "1"}, [("$.x", "type", 1, "1")]),
        ({"x": 1}, {"x": True}, [("$.x", "type", 1, True)]),
        ({"x": None}, {"x": 0}, [("$.x", "null", None, 0)]),
        ({"x": None}, {}, [("$.x", "absent", None, ABSENT)]),
        ({}, {"x": None}, [("$.x", "added", ABSENT, None)]),
        ({"x": [1, 2, 3]}, {"x": [1, 3]}, [("$.x[1]", "absent", 2, ABSENT)]),
        ({"x": [3]}, {"x": [1, 2, 3]}, [("$.x[0]", "added", ABSENT, 1), ("$.x[1]", "added", ABSENT, 2)]),
        ({"x": [1, 2]}, {"x": [2, 1]}, [("$.x", "order", [1, 2], [2, 1])]),
        ({"x": 1, "y": {"z": 1}}, {"y": {"z": 2}, "x": 1.0}, [("$.y.z", "value", 1, 2)]),
        ([1], {"0": 1}, [("$", "type", [1], {"0": 1})]),
    ],
)
def test_each_way_to_differ_is_told_by_its_name(a: Any, b: Any, told: list[Any]) -> None:
    assert [(d.where, d.kind, d.recorded, d.asked) for d in differences(a, b)] == told


@given(values, values)
def test_there_is_a_difference_exactly_where_the_keys_differ(a: Any, b: Any) -> None:
    cache = ResumeCache()
    cache.record_tool(AgentToolCall("t", {"v": a}), 1)
    hits = cache.lookup_tool(AgentToolCall("t", {"v": b})) == 1
    assert hits == (differences(a, b) == [])
    assert cache.why_miss(AgentToolCall("t", {"v": b})).hit == hits


def test_the_nearest_of_many_is_named() -> None:
    cache = ResumeCache()
    for n in range(5):
        items = [{"role": "user", "content": f"question {i}"} for i in range(n + 1)]
        cache.record_model(AgentPrompt(model="m", items=items, temperature=0.1), n)
    items = [{"role": "user", "content": f"question {i}"} for i in range(3)]
    report = cache.why_miss(AgentPrompt(model="m", items=items, temperature=0.2))
    assert [(d.where, d.recorded, d.asked) for d in report.differences] == [("$.temperature", 0.1, 0.2)]
    assert report.heal == ("$.temperature",)
    assert report.compared == 5
    assert report.lines() == [
        "no recorded request is the same; the nearest, prompt, differs: $.temperature (value)",
        "  $.temperature: value: recorded 0.1, now 0.2",
        "  would hit with: --inert '$.temperature'",
    ]


def test_it_counts_nothing_and_takes_nothing() -> None:
    cache = ResumeCache("occurrence")
    cache.record_tool(AgentToolCall("t", "{}"), 1)
    cache.rewind()
    assert cache.why_miss(AgentToolCall("t", "{}")).hit
    assert (cache.tool_hits, cache.tool_misses) == (0, 0)
    assert cache.lookup_tool(AgentToolCall("t", "{}")) == 1
    gone = cache.why_miss(AgentToolCall("t", "{}"))
    assert not gone.hit
    assert "handed out already" in gone.reason


def test_nothing_of_its_kind_is_recorded() -> None:
    cache = ResumeCache()
    cache.record_tool(AgentToolCall("t", "{}"), 1)
    report = cache.why_miss(AgentToolCall("u", "{}"))
    assert (report.hit, report.nearest, report.reason) == (False, None, "no tool u request was recorded")


def test_no_heal_that_makes_recorded_requests_one_is_advised() -> None:
    cache = ResumeCache()
    for seed in (1, 2):
        cache.record_model({"model": "m", "seed": seed}, seed)
    report = cache.why_miss({"model": "m", "seed": 3})
    assert report.differences[0].where == "$.seed"
    assert report.heal == ()


def test_it_reads_as_json() -> None:
    cache = ResumeCache()
    cache.record_model({"model": "m", "user": "a"}, 1)
    assert cache.why_miss({"model": "m", "user": None, "n": 1}).to_json() == {
        "hit": False,
        "reason": "no recorded request is the same; the nearest, prompt, differs: $.user (null)",
        "nearest": "prompt",
        "step": None,
        "differences": [
            {"path": "$.user", "kind": "null", "recorded": "a", "asked": None},
            {"path": "$.n", "kind": "added", "asked": 1},
        ],
        "heal": ["$.user", "$.n"],
        "compared": 1,
    }
