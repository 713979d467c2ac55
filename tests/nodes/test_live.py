"""What a recorder's sinks are told, and when."""

from __future__ import annotations

from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.live import LiveFold
from otel_agentrec.nodes.sinks import InMemoryIoCaptureSink

from .telling import Telling, answer, asks, does, text


def spans(records):
    return [r.span_id for r in records]


def test_a_call_is_handed_out_at_its_own_end():
    t, live = Telling(), LiveFold()
    assert live.feed(t.span("RUN_STARTED", "a0", at=(0, None))) == []
    assert live.feed(t.span("NODE_STARTED", "m1", kind="MODEL", parent="a0", path=["a0"], at=(1, None))) == []
    assert spans(live.feed(t.model("m1", parent="a0", path=["a0"], at=(1, 2), facts=asks(("c1", "f", "{}"))))) == ["m1"]
    assert live.feed(t.span("NODE_STARTED", "x1", kind="TOOL", parent="a0", path=["a0"], at=(3, None))) == []
    (tool,) = live.feed(t.tool("x1", parent="a0", path=["a0"], at=(3, 4), facts=does("f", "{}", "r", "c1")))
    assert (tool.span_id, tool.turn_id, tool.step) == ("x1", "a0", 1)
    assert live.feed(t.span("RUN_ENDED", "a0", at=(0, 5))) == []
    assert live.close() == []


def test_an_inner_model_span_waits_for_the_outer_one():
    t, live = Telling(), LiveFold()
    live.feed(t.span("NODE_STARTED", "outer", kind="MODEL", at=(0, None)))
    live.feed(t.span("NODE_STARTED", "inner", kind="MODEL", parent="outer", path=["outer"], at=(1, None)))
    assert live.feed(t.model("inner", parent="outer", path=["outer"], scope="b", at=(1, 2))) == []
    (record,) = live.feed(t.model("outer", at=(0, 3), facts={"messages": [text("user", "hi")]}))
    assert (record.span_id, record.merged_span_ids) == ("outer", ["inner"])


def test_a_record_is_told_again_when_a_later_span_is_the_same_call():
    t, live, sink = Telling(), LiveFold(), InMemoryIoCaptureSink()
    facts = {"model": "m", "responseId": "r1", "outputMessages": [text("assistant", "hi")]}
    told = live.feed(t.model("inner", trace="t2", at=(1, 2), scope="b", facts=facts))
    told += live.feed(t.model("outer", trace="t1", at=(0, 3), scope="a", facts=facts))
    for record in told:
        sink.capture(record)
    assert spans(told) == ["inner", "outer"]
    assert spans(sink.records()) == ["outer"]


def test_closing_tells_what_has_not_ended_as_interrupted():
    t, live = Telling(), LiveFold()
    live.feed(t.span("NODE_STARTED", "m1", kind="MODEL", at=(0, None), facts={"messages": [text("user", "hi")]}))
    (record,) = live.close()
    assert record.status == "interrupted"
    assert record.inputs["messages"] == [text("user", "hi")]


def test_a_recovered_tool_is_told_once():
    t, live = Telling(), LiveFold()
    live.feed(t.model("m1", at=(0, 1), facts=asks(("c1", "f", "{}"))))
    history = [text("user", "q"), *asks(("c1", "f", "{}"))["outputMessages"], answer("c1", "7")]
    second = live.feed(t.model("m2", at=(2, 3), facts={"messages": history}))
    third = live.feed(t.model("m3", at=(4, 5), facts={"messages": history}))
    assert [r.dialect for r in second] == ["recovered", None]
    assert spans(third) == ["m3"]


def test_a_long_run_keeps_its_steps_and_bounded_memory():
    t, live = Telling(), LiveFold(window=4)
    told = live.feed(t.span("RUN_STARTED", "a0", at=(0, None)))
    for i in range(60):
        told += live.feed(
            t.model(f"m{i}", parent="a0", path=["a0"], at=(3 * i, 3 * i + 1), facts=asks((f"c{i}", "f", "{}")))
        )
        told += live.feed(
            t.tool(f"x{i}", parent="a0", path=["a0"], at=(3 * i + 1, 3 * i + 2), facts=does("f", "{}", i, f"c{i}"))
        )
        assert len(live._events) <= 12
    told += live.feed(t.span("RUN_ENDED", "a0", at=(0, 500)))
    whole = list(fold(t.events).records())
    assert [(r.record_id, r.node_id) for r in told] == [(r.record_id, r.node_id) for r in whole]


def test_many_parallel_calls_keep_the_step_of_the_call_that_asked_for_them() -> None:
    t, live = Telling(), LiveFold(window=4)
    live.feed(t.span("RUN_STARTED", "a0", at=(0, None)))
    around = {"parent": "a0", "path": ["a0"]}
    live.feed(t.model("m1", **around, at=(0, 1), facts=asks(*((f"c{i}", "f", "{}") for i in range(40)))))
    for i in range(20):
        live.feed(t.model(f"other{i}", **around, at=(2 + i, 3 + i)))
    tools = [
        live.feed(t.tool(f"x{i}", **around, at=(50 + i, 51 + i), facts=does("f", "{}", i, f"c{i}"))) for i in range(40)
    ]
    assert [record.step for (record,) in tools] == [1] * 40
    (last,) = live.feed(t.model("last", **around, at=(99, 100)))
    assert last.step == 22
