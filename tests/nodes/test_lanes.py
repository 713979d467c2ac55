"""Lanes: which agent a call belongs to, and which of equal calls it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.lanes import AgentStep, Around, Lane, lane_path, occurrences

from .telling import Telling, asks, does


def test_the_path_names_the_agents_outermost_first_with_the_calls_that_started_them() -> None:
    around = [
        Around("AGENT", "research"),
        Around("STEP", "chain"),
        Around("TOOL", "ask_research", "call_7"),
        Around("AGENT", "planner"),
    ]
    assert lane_path(around) == (AgentStep("planner"), AgentStep("research", "call_7"))


def test_two_spans_of_one_agent_are_one_step_but_an_agent_that_calls_itself_is_two() -> None:
    assert lane_path([Around("AGENT", "a"), Around("AGENT", "a")]) == (AgentStep("a"),)
    recursive = [Around("AGENT", "a"), Around("TOOL", "again", "c1"), Around("AGENT", "a")]
    assert lane_path(recursive) == (AgentStep("a"), AgentStep("a", "c1"))


names = st.text(max_size=6)


@given(st.lists(st.builds(AgentStep, names.filter(bool), st.none() | names), max_size=4))
def test_a_spelled_lane_reads_back(path: list[AgentStep]) -> None:
    lane = Lane("run-1", tuple(path))
    assert Lane.parse("run-1", lane.text) == lane


def test_equal_calls_are_counted_per_lane() -> None:
    assert occurrences([("a", 1), ("b", 1), ("a", 1), ("a", 2), ("b", 1), ("a", 1)]) == [0, 0, 1, 0, 1, 2]


def test_calls_of_a_recording_know_their_lanes() -> None:
    t = Telling()
    t.agent("a0", name="invoke_agent planner", at=(0, 90), path=[], facts={"agentName": "planner"})
    t.model("m0", parent="a0", path=["a0"], at=(1, 5), facts=asks(("c1", "research", {}), ("c2", "research", {})))
    for n in (1, 2):
        t.tool(f"t{n}", parent="a0", path=["a0"], at=(10, 50), facts=does("research", {}, "r", f"c{n}"))
        named = {"agentName": "researcher"}
        t.span("HANDOFF_ENDED", f"b{n}", name="x", parent=f"t{n}", path=[f"t{n}", "a0"], at=(11, 49), facts=named)
        t.model(f"n{n}", parent=f"b{n}", path=[f"b{n}", f"t{n}", "a0"], at=(12, 20), facts={"model": "m"})
    view = fold(t.events)
    lanes = {record.span_id: view.lane(s) for s, record in view.calls()}
    assert {span: lane.text for span, lane in lanes.items()} == {
        "m0": "planner",
        "t1": "planner",
        "t2": "planner",
        "n1": "planner/researcher@c1",
        "n2": "planner/researcher@c2",
    }
    assert {lane.root for lane in lanes.values()} == {"t1"}


def test_the_name_of_a_span_does_not_name_an_agent() -> None:
    t = Telling()
    t.agent("a0", name="invoke_agent 7f3c", at=(0, 90), path=[])
    t.model("m0", parent="a0", path=["a0"], at=(1, 5), facts={"model": "m"})
    view = fold(t.events)
    assert [view.lane(s).text for s, _ in view.calls()] == [""]
