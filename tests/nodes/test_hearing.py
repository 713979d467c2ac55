"""Log records that tell of a model call without naming its span reach that call, or none."""

from __future__ import annotations

import random
from typing import Any

import pytest

from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.live import LiveFold
from otel_agentrec.records import NodeIoRecord

from .telling import Telling, asks, does, text

HI = {"messages": [text("user", "hi")]}


def said(words: str) -> dict[str, Any]:
    return {"outputMessages": [text("assistant", words)], "calls": [], "finishReasons": ["stop"]}


def records(t: Telling) -> dict[str | None, NodeIoRecord]:
    return {r.span_id: r for r in fold(t.events).records()}


def heard(record: NodeIoRecord) -> tuple[list[str], str | None]:
    """What a record says of question and answer."""
    return [p["content"] for m in record.inputs["messages"] or [] for p in m["parts"]], record.output_text


def test_records_that_name_no_span_tell_of_the_call_without_a_parent():
    t = Telling()
    t.log({"messages": [text("system", "be brief")]}, 1)
    t.log(HI, 2)
    t.log(said("hello"), 9)
    t.model("m1", at=(0, 10))
    (record,) = records(t).values()
    assert heard(record) == (["be brief", "hi"], "hello")
    assert (record.finish_reasons, record.tool_calls) == (["stop"], [])
    assert record.outputs == [text("assistant", "hello")]


def test_the_span_that_is_named_is_the_one_around_the_call():
    t = Telling()
    for agent in ("a1", "a2", "a3"):
        t.agent(agent, at=(0, 20))
        t.model(f"m-{agent}", parent=agent, at=(1, 19))
        t.log({"messages": [text("user", f"for {agent}")]}, 2, span=agent)
        t.log(said(f"from {agent}"), 18, span=agent)
    found = records(t)
    for agent in ("a1", "a2", "a3"):
        assert heard(found[f"m-{agent}"]) == ([f"for {agent}"], f"from {agent}")


def test_a_span_further_up_may_be_named_as_well():
    t = Telling()
    t.agent("a1", at=(0, 20))
    t.span("STEP_ENDED", "s1", kind="task", parent="a1", at=(0, 20))
    t.model("m1", parent="s1", at=(1, 19))
    t.model("m2", parent="s2", at=(1, 19))
    t.log(HI, 2, span="a1")
    found = records(t)
    assert heard(found["m1"]) == (["hi"], None)
    assert heard(found["m2"]) == ([], None)


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"scope": "scope.b"},
        {"trace": "t2", "span": "a1"},
        {"at": -1},
        {"at": 11},
    ],
)
def test_another_scope_trace_or_time_is_another_call(elsewhere):
    t = Telling()
    t.model("m1", parent="a1", at=(0, 10))
    t.log(HI, **{"at": 5, "span": "a1", **elsewhere})
    assert heard(records(t)["m1"]) == ([], None)


def test_a_record_without_any_span_may_mean_the_only_call_there_is():
    t = Telling()
    t.model("m1", parent="a1", at=(0, 10))
    t.model("m2", parent="a1", at=(20, 30))
    t.model("m3", parent="a1", at=(22, 29))
    t.log(HI, 5)
    t.log(HI, 25)
    found = records(t)
    assert [heard(found[m])[0] for m in ("m1", "m2", "m3")] == [["hi"], [], []]


def test_a_program_has_a_scope_for_its_spans_and_one_for_its_log_records():
    t = Telling()
    t.agent("a1", at=(0, 20))
    t.model("m1", parent="a1", at=(1, 9), scope="a.program.tracing")
    t.log(said("hello"), 8, span="a1", scope="a.program.events")
    t.log(said("no"), 8, span="a1", scope="another.events")
    assert heard(records(t)["m1"]) == ([], "hello")


class TestTools:
    def told(self, facts: dict[str, Any], tool: dict[str, Any], trace: str = "t1") -> NodeIoRecord:
        t = Telling()
        t.agent("a1", at=(0, 20))
        t.tool("x1", parent="a1", at=(1, 9), facts=tool)
        t.tool("y1", parent="x1", at=(2, 8), facts=tool)
        t.log(facts, 15, trace=trace, span="a1")
        (record,) = records(t).values()
        return record

    def test_the_call_id_tells_which_is_meant(self):
        record = self.told(does("f", '{"q": 1}', "one", "c1"), does("f", call_id="c1"))
        assert (record.inputs["arguments"], record.outputs, record.status) == ({"q": 1}, "one", "ok")

    def test_a_record_may_tell_of_a_failure(self):
        failed = {"toolCallId": "c1", "status": "error", "errorType": "E", "errorMessage": "no"}
        record = self.told(failed, does("f", call_id="c1"))
        assert (record.status, record.error) == ("error", {"type": "E", "message": "no"})

    def test_what_the_span_itself_tells_counts(self):
        record = self.told(does("f", '{"q": 1}', "one", "c1"), does("f", '{"q": 2}', "two", "c1"))
        assert (record.inputs["arguments"], record.outputs) == ({"q": 2}, "two")

    @pytest.mark.parametrize(("call_id", "trace"), [("c2", "t1"), ("c1", "t2")])
    def test_other_calls_are_not_meant(self, call_id: str, trace: str):
        record = self.told(does("f", "{}", "one", call_id), does("f", call_id="c1"), trace)
        assert (record.inputs["arguments"], record.outputs) == (None, None)


def test_of_calls_side_by_side_the_latest_is_asked_and_the_first_to_end_has_answered():
    t = Telling()
    t.model("m1", parent="a", at=(0, 30))
    t.log({"messages": [text("user", "one")]}, 1, span="a")
    t.model("m2", parent="a", at=(2, 20))
    t.log({"messages": [text("user", "two")]}, 3, span="a")
    t.log(said("second"), 19, span="a")
    t.log(said("first"), 29, span="a")
    found = records(t)
    assert heard(found["m1"]) == (["one"], "first")
    assert heard(found["m2"]) == (["two"], "second")


def test_when_two_calls_began_before_either_was_told_of_nothing_is_guessed():
    t = Telling()
    t.model("m1", at=(0, 30))
    t.model("m2", trace="t2", at=(1, 20))
    t.log(HI, 2)
    assert all(heard(r) == ([], None) for r in records(t).values())


def test_when_two_answers_are_told_before_either_call_ends_nothing_is_guessed():
    t = Telling()
    counted = {"outputTokens": 7}
    t.model("m1", at=(0, 30), facts=counted)
    t.model("m2", trace="t2", at=(0, 31), facts=counted)
    t.log(said("one"), 28)
    t.log(said("two"), 29)
    assert all(heard(r) == ([], None) for r in records(t).values())


@pytest.mark.parametrize(
    "other", [{"status": "error", "outputTokens": 7}, {}, {"outputTokens": 7, "outputText": "own"}]
)
def test_a_call_that_has_no_answer_to_tell_does_not_make_others_doubtful(other):
    t = Telling()
    t.model("m1", at=(0, 30), facts=other)
    t.model("m2", trace="t2", at=(0, 20), facts={"outputTokens": 7})
    t.log(said("two"), 19)
    assert records(t)["m2"].output_text == "two"


def test_a_call_that_tells_itself_what_it_was_asked_does_not_make_others_doubtful():
    t = Telling()
    t.model("m1", at=(0, 30), facts={"messages": [text("user", "mine")]})
    t.model("m2", trace="t2", at=(1, 20))
    t.log(HI, 2)
    found = records(t)
    assert heard(found["m1"]) == (["mine"], None)
    assert heard(found["m2"]) == (["hi"], None)


def test_what_the_span_itself_tells_counts():
    t = Telling()
    t.model("m1", at=(0, 10), facts={"messages": [text("user", "own")], "finishReasons": ["length"]})
    t.log(HI, 1)
    t.log(said("hello"), 9)
    record = records(t)["m1"]
    assert heard(record) == (["own"], "hello")
    assert record.finish_reasons == ["length"]


def test_an_answer_in_blocks_is_one_message():
    t = Telling()
    call = {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"x": 1}}
    t.model("m1", at=(0, 10))
    t.log({**said("let me see"), "finishReasons": ["tool_call"]}, 8)
    t.log({"outputMessages": [{"parts": [call]}], "calls": [{"id": "c1", "name": "f"}]}, 9)
    t.tool("x1", at=(11, 12), facts=does("f", {"x": 1}, "done"))
    found = records(t)
    assert [len(m["parts"]) for m in found["m1"].outputs] == [2]
    assert found["m1"].finish_reasons == ["tool_call"]
    assert found["x1"].tool_call_id == "c1", "the call shows only in the log record"


def test_several_choices_stay_several():
    t = Telling()
    t.model("m1", at=(0, 10))
    t.log(said("heads"), 8)
    t.log(said("tails"), 9)
    record = records(t)["m1"]
    assert record.outputs == [text("assistant", "heads"), text("assistant", "tails")]
    assert record.finish_reasons == ["stop", "stop"]


def test_a_record_that_was_exported_twice_counts_once():
    t, again = Telling(), Telling("s2")
    for stream in (t, again):
        stream.log(HI, 1)
        stream.log({"messages": [text("user", "at the same moment")]}, 1)
    t.model("m1", at=(0, 10))
    t.events += again.events
    assert heard(records(t)["m1"]) == (["hi", "at the same moment"], None)


def test_content_that_was_left_out_is_known_to_be_left_out():
    t = Telling()
    t.model("m1", at=(0, 10))
    t.log({"messages": {"$off": {"count": 1}}}, 1)
    t.log({"calls": [{"id": "c1", "name": "f"}], "finishReasons": ["tool_calls"]}, 9)
    record = records(t)["m1"]
    assert record.inputs["messages"] == {"$off": {"count": 1}}
    assert record.tool_calls == [{"id": "c1", "name": "f", "arguments": None}]


def test_tools_that_a_record_offers_are_in_the_request():
    t = Telling()
    header = t.tell("REQUEST_HEADER", {"tools": [{"name": "f"}]})
    t.model("m1", at=(0, 10))
    t.log(HI, 1, header=header.seq)
    assert records(t)["m1"].inputs["tools"] == [{"name": "f"}]


def test_spans_of_one_call_are_known_by_what_log_records_tell():
    t = Telling()
    facts = asks(("c1", "f", {}))
    t.model("inner", parent="a", at=(2, 8), scope="scope.b", facts=facts)
    t.model("outer", parent="a", at=(1, 9))
    t.model("other", parent="a", at=(0, 10), scope="scope.b", facts=asks(("c2", "g", {})))
    t.log({key: facts[key] for key in ("outputMessages", "calls")}, 8, span="a")
    found = records(t)
    assert found["outer"].merged_span_ids == ["inner"]
    assert set(found) == {"outer", "other"}


def test_any_order_of_events_gives_the_same_records():
    t = Telling()
    for i in range(4):
        t.model(f"m{i}", parent="a", at=(10 * i, 10 * i + 25))
        t.log({"messages": [text("user", f"q{i}")]}, 10 * i + 1, span="a")
        t.log(said(f"a{i}"), 10 * i + 24, span="a")
    right = [r.to_json() for r in fold(t.events).records()]
    assert [r["outputText"] for r in right] == ["a0", "a1", "a2", "a3"]
    for seed in range(5):
        events = list(t.events)
        random.Random(seed).shuffle(events)
        assert [r.to_json() for r in fold(events).records()] == right


@pytest.mark.parametrize(
    "payload",
    [
        {"facts": []},
        {"facts": HI},
        {"facts": HI, "observedAt": 7},
        {"facts": HI, "observedAt": "9" * 40},
        {"facts": {"messages": 7, "calls": [7], "finishReasons": [1]}, "observedAt": "1767225600005000000"},
        {"facts": {"outputMessages": [7, {"parts": 7}], "calls": [{}]}, "observedAt": "1767225600005000000"},
        {"facts": HI, "observedAt": "1767225600005000000", "scope": 5, "header": "x"},
    ],
)
def test_hostile_records_make_no_fold_fail(payload):
    t = Telling()
    t.model("m1", at=(0, 10))
    t.log(said("hello"), 9)
    t.tell("LOG_RECORDED", {"name": "x", "scope": "scope.a", **payload})
    (record,) = records(t).values()
    assert "hello" in (record.output_text or "")


def test_sinks_are_told_of_it():
    t, live = Telling(), LiveFold(window=2)
    for i in range(20):
        assert live.feed(t.span("NODE_STARTED", f"m{i}", kind="MODEL", at=(10 * i, None))) == []
        assert live.feed(t.log({"messages": [text("user", f"q{i}")]}, 10 * i + 1)) == []
        assert live.feed(t.log(said(f"a{i}"), 10 * i + 8)) == []
        (record,) = live.feed(t.model(f"m{i}", at=(10 * i, 10 * i + 9)))
        assert heard(record) == ([f"q{i}"], f"a{i}")
    assert len(live._sayings) < 30
