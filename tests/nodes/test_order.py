"""Cause order, and the law that the order of events does not matter."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from otel_agentrec.nodes.fold import fold

from .telling import Telling, answer, asks, does, text


def test_a_tool_never_stands_before_the_call_that_asked_for_it():
    t = Telling()
    t.tool("x", at=(0, 1), facts=does("f", "{}", "r", "c1"))
    t.model("m", at=(5, 6), facts=asks(("c1", "f", "{}")))
    t.model("later", at=(7, 8))
    assert [r.span_id for r in fold(t.events).records()] == ["m", "x", "later"]


def test_a_span_never_stands_before_the_span_around_it():
    t = Telling()
    t.model("inner", parent="x", at=(0, 1))
    t.tool("x", at=(5, 6), facts=does("f"))
    assert [r.span_id for r in fold(t.events).records()] == ["x", "inner"]


def test_a_tool_that_ran_inside_a_model_span_stands_before_its_answer() -> None:
    """One span for a whole loop, as an SDK emits that calls functions by itself; the answer is the last one."""
    t = Telling()
    t.model("loop", at=(0, 9), facts={"outputMessages": [text("assistant", "done")]})
    t.tool("x", parent="loop", at=(2, 3), facts=does("f", "{}"))
    assert [(r.span_id, r.step) for r in fold(t.events).records()] == [("x", 1), ("loop", 1)]


def test_a_streamed_loop_that_tells_its_calls_and_then_its_answer() -> None:
    t = Telling()
    call = asks(("c1", "f", "{}"))
    call["outputMessages"][0]["parts"].append({"type": "text", "content": "done"})
    t.model("loop", at=(0, 9), facts=call)
    t.tool("x", parent="loop", at=(2, 3), facts=does("f", "{}"))
    assert [(r.span_id, r.step) for r in fold(t.events).records()] == [("x", 1), ("loop", 1)]


def test_a_tool_that_is_quicker_than_the_stream_that_asked_for_it() -> None:
    t = Telling()
    t.model("m", at=(0, 9), facts=asks(("c1", "f", "{}")))
    t.tool("x", parent="m", at=(2, 3), facts=does("f", "{}"))
    assert [(r.span_id, r.step) for r in fold(t.events).records()] == [("m", 1), ("x", 1)]


def test_a_live_stream_orders_by_start_even_when_the_clock_is_set_back():
    t = Telling()
    for span, at in (("m1", 1_000), ("m2", 10), ("m3", 20)):
        t.span("NODE_STARTED", span, kind="MODEL", at=(at, None))
        t.model(span, at=(at, at + 1))
    assert [r.span_id for r in fold(t.events).records()] == ["m1", "m2", "m3"]


def test_a_call_whose_start_nobody_told_stands_where_it_ended():
    t = Telling()
    t.model("m3", at=(6, 7))
    t.model("m2", at=(None, 5))
    t.model("m1", at=(0, 4))
    assert [r.span_id for r in fold(t.events).records()] == ["m1", "m2", "m3"]


def test_what_came_later_is_part_of_the_record_also_its_header():
    t = Telling()
    t.model("m", facts={"model": "m"})
    t.tell("REQUEST_HEADER", {"instructions": [{"type": "text", "content": "Be terse."}]})
    t.span("NODE_AMENDED", "m", at=(None, None), facts={"messages": [text("user", "hi")]}, header=1)
    (record,) = fold(t.events).records()
    assert record.inputs["messages"] == [text("user", "hi")]
    assert record.inputs["systemInstructions"] == [{"type": "text", "content": "Be terse."}]


def test_equal_starts_keep_the_order_of_arrival():
    t = Telling()
    for span in ("b", "a", "c"):
        t.model(span, at=(0, 1))
    assert [r.span_id for r in fold(t.events).records()] == ["b", "a", "c"]


def test_calls_that_cause_each_other_are_all_shown():
    t = Telling()
    t.model("m", parent="x", at=(1, 2), facts=asks(("c1", "f", "{}")))
    t.tool("x", parent="m", at=(0, 3), facts=does("f", "{}", "r", "c1"))
    assert {r.span_id for r in fold(t.events).records()} == {"m", "x"}


def test_a_span_that_is_its_own_parent_does_not_hang():
    t = Telling()
    t.model("m", parent="m")
    t.tell("LINKS", {"links": {"t1": {"p": "q", "q": "p"}}})
    t.model("n", parent="p")
    assert {r.span_id for r in fold(t.events).records()} == {"m", "n"}


times = st.integers(0, 3)
spans = st.sampled_from([f"s{i}" for i in range(6)])
names = st.sampled_from(["f", "g"])
ids = st.sampled_from(["c1", "c2", None])
facts = {
    "MODEL": st.one_of(
        st.builds(
            lambda *calls: asks(*calls), st.tuples(ids, names, st.just("{}")), st.tuples(ids, names, st.just('{"n":1}'))
        ),
        st.fixed_dictionaries({"responseId": st.sampled_from(["r1", "r2"]), "inputTokens": st.just(5)}),
        st.just({"messages": [text("user", "q"), *asks(("c1", "f", "{}"))["outputMessages"], answer("c1", 1)]}),
        st.just({}),
    ),
    "TOOL": st.builds(does, names, st.sampled_from(["{}", '{"n":1}', None]), st.just("r"), ids),
}


@st.composite
def tellings(draw: st.DrawFn):
    tellers = [Telling("s1"), Telling("s2")]
    for _ in range(draw(st.integers(1, 12))):
        t = draw(st.sampled_from(tellers))
        kind = draw(st.sampled_from(["MODEL", "TOOL"]))
        type_ = draw(
            st.sampled_from(
                ["NODE_STARTED", "NODE_RECORDED", "NODE_RECORDED", "RUN_ENDED", "NODE_INTERRUPTED", "LINKS"]
            )
        )
        if type_ == "LINKS":
            t.tell("LINKS", {"links": {"t1": {draw(spans): draw(spans)}}})
            continue
        start = draw(times)
        t.span(
            type_, draw(spans), kind=kind, trace=draw(st.sampled_from(["t1", "t2"])), parent=draw(st.none() | spans),
            at=(start, start + draw(times)), scope=draw(st.sampled_from(["a", "b"])), facts=draw(facts[kind]),
            session=draw(st.sampled_from([None, "S"])),
        )  # fmt: skip
    events = [e for t in tellers for e in t.events]
    return events, draw(st.permutations(events))


@given(tellings())
@settings(max_examples=150, deadline=None)
def test_any_permutation_of_the_events_gives_the_same_view(told):
    events, shuffled = told
    one, other = fold(events), fold(shuffled)
    assert list(one.records()) == list(other.records())
    assert one.runs == other.runs
    records = list(one.records())
    assert len({r.record_id for r in records}) == len(records)
    assert sum(run.records for run in one.runs) == sum("probable_reexport" not in r.flags for r in records)
