"""Which model call asked for which tool, steps and turns, and tools that have no span."""

from __future__ import annotations

import pytest

from otel_agentrec.nodes.fold import fold

from .telling import Telling, answer, asks, does, text


def by_span(t: Telling):
    return {r.span_id: r for r in fold(t.events).records()}


def test_parity_1_two_model_calls_and_a_tool():
    t = Telling()
    t.agent("a0", at=(0, 9))
    t.model(
        "m1",
        parent="a0",
        at=(1, 2),
        facts={
            "model": "m",
            "outputMessages": [
                {"role": "assistant", "parts": [{"type": "text", "content": p} for p in ("hello ", "world")]}
            ],
            "outputRaw": {"id": "raw-1"},
        },
        run="run-1",
        turn="turn-1",
    )
    t.tool("x1", parent="a0", at=(3, 4), facts=does("f", "{}", "r", "c1"), run="run-1", turn="turn-1")
    t.model("m2", parent="a0", at=(5, 6), run="run-1", turn="turn-1")
    first, tool, second = fold(t.events).records()
    assert (first.node_id, first.output_text, first.outputs) == ("model@run-1|turn-1|1", "hello world", {"id": "raw-1"})
    assert (first.model_id, first.inputs["model"]) == ("m", "m")
    assert tool.node_id == "tool@run-1|turn-1|1|c1"
    assert second.node_id == "model@run-1|turn-1|2"


def test_case_001_parallel_calls_of_one_tool_that_finish_in_reverse():
    t = Telling()
    t.tool("x2", parent="a0", at=(11, 12), facts=does("weather", '{"city":"B"}', "20", "call_B"))
    t.span("STEP_ENDED", "other", parent="a0", at=(11, 13), kind="embeddings")
    t.tool("x1", parent="a0", at=(10, 14), facts=does("weather", '{"city":"A"}', "21", "call_A"))
    t.model(
        "m1",
        parent="a0",
        at=(1, 9),
        facts=asks(("call_A", "weather", '{"city":"A"}'), ("call_B", "weather", '{"city":"B"}')),
    )
    t.model("m2", parent="a0", at=(15, 16))
    t.agent("a0", at=(0, 20))
    records = list(fold(t.events).records())
    assert [r.span_id for r in records] == ["m1", "x1", "x2", "m2"]
    assert [r.step for r in records] == [1, 1, 1, 2]
    assert {r.turn_id for r in records} == {"a0"}
    assert [r.outputs for r in records[1:3]] == [21, 20]


def test_call_ids_that_repeat_go_to_the_latest_request():
    t = Telling()
    for i in range(3):
        t.model(f"m{i}", parent="a0", at=(10 * i, 10 * i + 1), facts=asks(("call_1", "f", "{}")))
        t.tool(f"x{i}", parent="a0", at=(10 * i + 2, 10 * i + 3), facts=does("f", "{}", i, "call_1"))
    t.agent("a0", at=(0, 99))
    assert [(r.span_id, r.step) for r in fold(t.events).records()] == [
        ("m0", 1), ("x0", 1), ("m1", 2), ("x1", 2), ("m2", 3), ("x2", 3),
    ]  # fmt: skip


def test_tools_without_call_ids_pair_by_name_arguments_then_order():
    t = Telling()
    t.agent("a0", at=(0, 99))
    t.model(
        "m1", parent="a0", at=(0, 1),
        facts=asks(("c1", "f", '{"n": 1}'), ("c2", "f", '{"n": 2}'), ("c3", "g", "{}"), ("c4", "h", "{}"), ("c5", "h", "{}")),
    )  # fmt: skip
    t.tool("two", parent="a0", at=(2, 3), facts=does("f", '{ "n": 2}'))
    t.tool("one", parent="a0", at=(3, 4), facts=does("f", '{"n": 1, "unit": "default"}'))
    t.tool("g", parent="a0", at=(4, 5), facts=does("server-g"))
    t.tool("h1", parent="a0", at=(5, 6), facts=does("h", "{}"))
    t.tool("h2", parent="a0", at=(6, 7), facts=does("h", "{}"))
    view = fold(t.events)
    ids = {r.span_id: r.tool_call_id for r in view.records()}
    assert ids["two"] == "c2"
    assert ids["g"] == "c3"
    assert ids["one"] is None, "its arguments differ, so which call it answers is only likely"
    assert ids["h1"] is None and ids["h2"] is None, "two equal calls: no id is made up"
    assert view.runs[0].unpaired == []


def test_a_single_argument_told_without_its_name_is_named_by_the_call_that_asked() -> None:
    t = Telling()
    t.agent("a0", at=(0, 99))
    t.model(
        "m1",
        parent="a0",
        at=(0, 1),
        facts=asks(("c1", "f", '{"city": "A"}'), ("c2", "f", '{"city": "7"}'), ("c3", "g", '{"x": 1, "y": 1}')),
    )
    t.tool("without id", parent="a0", at=(2, 3), facts=does("f", "7"))
    t.tool("with id", parent="a0", at=(3, 4), facts=does("f", "A", call_id="c1"))
    t.tool("of two", parent="a0", at=(4, 5), facts=does("g", "1", call_id="c3"))
    t.tool("unasked", parent="a0", at=(5, 6), facts=does("z", "A"))
    records = by_span(t)
    assert (records["without id"].tool_call_id, records["without id"].inputs["arguments"]) == ("c2", {"city": "7"})
    assert records["with id"].inputs["arguments"] == {"city": "A"}
    assert records["of two"].inputs["arguments"] == 1, "which of the two it is, nobody knows"
    assert records["unasked"].inputs["arguments"] == "A"


def test_two_agents_in_one_run_pair_with_their_own_calls():
    t = Telling()
    t.agent("root", at=(0, 99))
    for name, at in (("a", 1), ("b", 2)):
        t.span("HANDOFF_ENDED", name, parent="root", at=(at, 50))
        t.model(f"m-{name}", parent=name, at=(at + 2, at + 4), facts=asks((f"c-{name}", "f", "{}")))
    t.tool("x-a", parent="a", at=(10, 11), facts=does("f", "{}"))
    t.tool("x-b", parent="b", at=(11, 12), facts=does("f", "{}"))
    ids = {r.span_id: r.tool_call_id for r in fold(t.events).records()}
    assert (ids["x-a"], ids["x-b"]) == ("c-a", "c-b")


def test_case_003_tools_in_traces_of_their_own_join_by_session_and_call_id():
    t = Telling()
    t.tool("x1", trace="t2", at=(20, 30), facts=does("search", '{"q":"a"}', "A!", "c1"), session="conv")
    t.model(
        "m",
        trace="t1",
        parent="gone",
        at=(1, 10),
        facts=asks(("c1", "search", "{}"), ("c2", "search", "{}")),
        session="conv",
    )
    t.tool("x2", trace="t3", at=(21, 29), facts=does("search", '{"q":"b"}', "B!", "c2"), session="conv")
    t.tool("x9", trace="t4", at=(22, 28), facts=does("search", '{"q":"z"}', "Z!", "c9"))
    view = fold(t.events)
    first, second = view.runs
    assert (first.id, first.members, first.session) == ("t1", ["m", "x1", "x2"], "conv")
    assert (first.complete, first.missing_parents) == (False, ["gone"])
    assert (second.id, second.members, second.complete) == ("t4", ["x9"], True)
    records = {r.span_id: r for r in view.records()}
    assert [records[s].run_id for s in ("m", "x1", "x2", "x9")] == ["t1", "t1", "t1", "t4"]
    assert {records[s].turn_id for s in ("m", "x1", "x2")} == {"m"}
    assert records["x9"].turn_id is None and records["x9"].step is None
    assert records["m"].flags == ["root_missing"]


def test_case_002_a_call_that_nobody_answered():
    t = Telling()
    t.model("m", parent="gone", at=(1, 2), facts=asks(("call_1", "read", "{}"), ("call_2", "mail", "{}")))
    t.tool("x", parent="gone", at=(3, 4), facts=does("read", "{}", "milk", "call_1"))
    (run,) = fold(t.events).runs
    assert run.unpaired == [{"callId": "call_2", "toolName": "mail", "requestedBy": "m", "status": "unknown_outcome"}]
    assert run.complete is False


def test_case_014_late_children_join_the_run():
    t = Telling()
    t.agent("agent", at=(0, 1000))
    t.tool("tool", parent="model", at=(900, 2000), facts=does("slow", "{}", "late result", "c1"))
    t.tell("LINKS", {"links": {"t1": {"post": "tool"}}})
    t.model("model", parent="agent", at=(50, 1500), facts=asks(("c1", "slow", "{}")))
    view = fold(t.events)
    (run,) = view.runs
    assert run.members == ["agent", "model", "post", "tool"]
    assert (run.ended_ms - run.started_ms, run.complete) == (2000, True)
    assert [(r.span_id, r.duration_ms) for r in view.records()] == [("model", 1450), ("tool", 1100)]


HISTORY = [text("user", "weather?"), *asks(("c1", "f", '{"city":"A"}'))["outputMessages"], answer("c1", '{"t": 21}')]


@pytest.mark.parametrize("traces", [("t1", "t1"), ("t1", "t2")])
def test_a_tool_without_a_span_is_recovered_from_the_next_call(traces):
    t = Telling()
    t.model("m1", trace=traces[0], at=(0, 1), facts=asks(("c1", "f", '{"city": "A"}')))
    t.model("m2", trace=traces[1], at=(2, 3), facts={"messages": HISTORY})
    view = fold(t.events)
    first, tool, second = view.records()
    assert (first.span_id, tool.span_id, second.span_id) == ("m1", None, "m2")
    assert (tool.dialect, tool.tool_name, tool.tool_call_id) == ("recovered", "f", "c1")
    assert (tool.inputs["arguments"], tool.outputs) == ({"city": "A"}, {"t": 21})
    assert (tool.run_id, tool.turn_id, tool.step) == (first.run_id, first.turn_id, first.step)
    assert tool.journal.seq == 1
    assert [r.unpaired for r in view.runs] == [[] for _ in view.runs]
    assert view.runs[0].records + (view.runs[1].records if len(view.runs) > 1 else 0) == 3
    assert [r.record_id for r in view.records("t1")][1] == tool.record_id


@pytest.mark.parametrize(("goes_on", "recovered"), [("r1", ["c1"]), ("r0", []), (7, [])])
def test_a_request_that_goes_on_from_an_answer_tells_results_without_the_history(goes_on, recovered):
    t = Telling()
    t.model("m1", trace="t1", at=(0, 1), facts={"responseId": "r1", **asks(("c1", "f", "{}"))})
    header = t.tell("REQUEST_HEADER", {"parameters": {"previous_response_id": goes_on}})
    t.model("m2", trace="t2", at=(2, 3), facts={"messages": [answer("c1", "sunny")]}, header=header.seq)
    tools = [r for r in fold(t.events).records() if r.node_type == "TOOL"]
    assert [r.tool_call_id for r in tools] == recovered
    assert [r.outputs for r in tools] == ["sunny"] * len(recovered)


def test_results_under_other_ids_are_recovered_in_the_order_of_the_calls():
    t = Telling()
    asked = asks(("item-1", "f", {"x": 1}), ("item-2", "f", {"x": 2}))
    t.model("m1", parent="a", at=(0, 1), facts=asked)
    history = [text("user", "q"), *asked["outputMessages"], answer("call-1", "one"), answer("call-2", "two")]
    t.model("m2", parent="a", at=(2, 3), facts={"messages": history})
    tools = [r for r in fold(t.events).records() if r.dialect == "recovered"]
    assert [(r.inputs["arguments"], r.outputs) for r in tools] == [({"x": 1}, "one"), ({"x": 2}, "two")]


def test_two_calls_under_one_id_are_recovered_as_two_records():
    t = Telling()
    asked = asks(("c1", "f", {"x": 1}), ("c1", "f", {"x": 2}))
    t.model("m1", at=(0, 1), facts=asked)
    t.model("m2", at=(2, 3), facts={"messages": [*asked["outputMessages"], answer("c1", "one"), answer("c1", "two")]})
    tools = [r for r in fold(t.events).records() if r.dialect == "recovered"]
    assert [(r.inputs["arguments"], r.outputs) for r in tools] == [({"x": 1}, "one"), ({"x": 2}, "two")]
    assert tools[0].record_id != tools[1].record_id


@pytest.mark.parametrize("told_by", ["NODE_STARTED", "NODE_AMENDED"])
def test_a_run_counts_a_tool_that_is_recovered_from_what_came_beside_the_leading_event(told_by: str) -> None:
    t = Telling()
    t.model("m1", at=(0, 1), facts=asks(("c1", "f", '{"city": "A"}'), ("c1", "f", '{"city": "B"}')))
    t.tool("x1", at=(1, 2), facts=does("f", '{"city": "B"}'))
    t.span(told_by, "m2", kind="MODEL", at=(2, None), facts={"messages": HISTORY})
    t.span("NODE_RECORDED" if told_by == "NODE_AMENDED" else "NODE_INTERRUPTED", "m2", kind="MODEL", at=(2, 3))
    view = fold(t.events)
    records = list(view.records())
    assert [r.span_id for r in records] == ["m1", "x1", None, "m2"]
    assert view.runs[0].records == len(records)
    assert view.runs[0].unpaired == []


def test_no_tool_is_recovered_where_a_span_tells_of_it():
    t = Telling()
    t.agent("a0", at=(0, 9))
    t.model("m1", parent="a0", at=(0, 1), facts=asks(("c1", "f", '{"city": "A"}')))
    t.tool("x1", parent="a0", at=(1, 2), facts=does("f", '{"city": "A"}'))
    t.model("m2", parent="a0", at=(2, 3), facts={"messages": HISTORY})
    assert [r.span_id for r in fold(t.events).records()] == ["m1", "x1", "m2"]


def test_a_handoff_is_no_tool_that_has_to_be_recovered() -> None:
    t = Telling()
    t.agent("a0", at=(0, 9))
    t.model("m1", parent="a0", at=(0, 1), facts=asks(("c1", "transfer_to_expert", "{}")))
    t.span("STEP_ENDED", "h", kind="handoff", parent="a0", at=(1, 2))
    history = [*asks(("c1", "transfer_to_expert", "{}"))["outputMessages"], answer("c1", "expert")]
    t.model("m2", parent="a0", at=(2, 3), facts={"messages": history})
    view = fold(t.events)
    assert [r.span_id for r in view.records()] == ["m1", "m2"]
    assert view.runs[0].unpaired == []


def test_a_result_in_a_stranger_history_is_not_taken_for_an_equal_call_id():
    t = Telling()
    t.model("m1", trace="t1", at=(0, 1), facts=asks(("c1", "f", '{"city": "elsewhere"}')))
    t.model("m2", trace="t2", at=(2, 3), facts={"messages": HISTORY})
    view = fold(t.events)
    assert [r.span_id for r in view.records()] == ["m1", "m2"]
    assert len(view.runs[0].unpaired) == 1


def test_turn_and_step_as_given_win():
    t = Telling()
    t.agent("a0", at=(0, 9), run="R", turn="T")
    t.model("m1", parent="a0", at=(0, 1), facts=asks(("c1", "f", "{}")), step=7)
    t.tool("x1", parent="a0", at=(1, 2), facts=does("f", "{}", "r", "c1"))
    assert [r.node_id for r in fold(t.events).records()] == ["model@R|T|7", "tool@R|T|7|c1"]


def test_session_comes_from_the_agent_above_and_is_never_invented():
    t = Telling()
    t.agent("a0", at=(0, 9), session="S")
    t.span("STEP_ENDED", "step", kind="chain", parent="a0")
    t.tool("x1", parent="foreign", at=(1, 2), facts=does("f"))
    t.tell("LINKS", {"links": {"t1": {"foreign": "step"}}})
    t.tool("y1", trace="t2", at=(1, 2), facts=does("f"))
    records = by_span(t)
    assert records["x1"].session_id == "S"
    assert records["y1"].session_id is None


def test_without_content_a_tool_has_the_step_of_the_call_before_it():
    t = Telling()
    t.agent("a0", at=(0, 9))
    t.model("m1", parent="a0", at=(0, 1), facts={"model": "m"})
    t.tool("x1", parent="a0", at=(1, 2), facts=does("f", call_id="c1"))
    t.model("m2", parent="a0", at=(3, 4), facts={"model": "m"})
    assert [(r.span_id, r.step) for r in fold(t.events).records()] == [("m1", 1), ("x1", 1), ("m2", 2)]
