"""The tape: which recorded call is meant, and where the record ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.records import NodeType
from otel_agentrec.resume.requests import Request, WireRequest, asked_model, asked_tool
from otel_agentrec.resume.tape import Answered, Done, Failed, Miss, NotBegun, Outcome, Recorded, Tape, Unknown

RING = KeyRing.random()
LANE = "agent"


def prompt(said: Any) -> Request:
    return asked_model({"model": "m", "messages": [said]})


def model(said: Any, answer: Any, *, lane: str = LANE, outcome: Outcome = Outcome.DONE, **more: Any) -> Recorded:
    request = prompt(said)
    keys = (request.keys(RING, ())[0],)
    return Recorded(NodeType.MODEL, lane, keys, outcome, answer, request=request, label=f"model {answer}", **more)


def tool_call(name: str, arguments: Any = None, call_id: str | None = None) -> Request:
    return asked_tool({"name": name, "arguments": arguments, "callId": call_id})


def tool(
    name: str, arguments: Any, answer: Any, call_id: str | None = None, *, outcome: Outcome = Outcome.DONE, **more: Any
) -> Recorded:
    request = tool_call(name, arguments, call_id)
    more = {"lane": LANE, "keys": (request.keys(RING, ())[0],), **more}
    return Recorded(
        NodeType.TOOL, outcome=outcome, answer=answer, name=name, call_id=call_id, request=request, label=name, **more
    )


def answer(found: Any) -> Any:
    assert isinstance(found, (Answered, Done, Failed)), found
    return found.call.answer


# --- models -------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(["a", "a/b@1"]), st.sampled_from("xyz")), max_size=10), st.randoms())
def test_k_equal_calls_give_k_answers_per_lane_in_order_and_then_a_miss(calls: list[Any], random: Any) -> None:
    tape = Tape([model(said, n, lane=lane) for n, (lane, said) in enumerate(calls)], RING)
    asked = [(lane, said) for lane, said in calls]
    random.shuffle(asked)  # lanes and different requests come in any order: identity is not arrival
    got = [(lane, said, answer(tape.model(lane, prompt(said)))) for lane, said in asked]
    for lane, said in set(calls):
        recorded = [n for n, call in enumerate(calls) if call == (lane, said)]
        assert [n for a, b, n in got if (a, b) == (lane, said)] == recorded
        miss = tape.model(lane, prompt(said))
        assert isinstance(miss, Miss)
        assert miss.frontier
    assert tape.left_over() == []


def test_a_lane_with_unused_answers_has_not_reached_its_frontier() -> None:
    tape = Tape([model("a", 1), model("b", 2), model("c", 3, lane="other")], RING)
    answer(tape.model(LANE, prompt("a")))
    miss = tape.model(LANE, prompt("b2"))
    assert isinstance(miss, Miss)
    assert not miss.frontier
    assert not tape.frontier(LANE)
    assert answer(tape.model(LANE, prompt("b"))) == 2
    assert tape.frontier(LANE)
    assert tape.model(LANE, prompt("b2")).frontier  # type: ignore[union-attr]
    assert not tape.frontier("other"), "each lane has its own"
    assert tape.frontier("never seen")


def test_the_report_names_step_path_and_both_values() -> None:
    tape = Tape([model({"role": "user", "content": "Today is Monday"}, 1, step=4)], RING)
    miss = tape.model(LANE, prompt({"role": "user", "content": "Today is Tuesday"}))
    assert isinstance(miss, Miss)
    (difference,) = miss.report.differences
    assert (miss.report.step, miss.report.nearest, difference.where) == (4, "model 1", "$.messages[0].content")
    assert (difference.recorded, difference.asked) == ("Today is Monday", "Today is Tuesday")


def test_errors_and_cut_streams_are_answered_as_they_were_where_the_run_went_on() -> None:
    calls = [
        model("a", "error", outcome=Outcome.FAILED, past=True),
        model("b", "cut", outcome=Outcome.CUT, past=True),
        model("c", "crashed", outcome=Outcome.CUT),
        model("c", "failed", outcome=Outcome.FAILED),
        model("c", "never", outcome=Outcome.OPEN),
    ]
    tape = Tape(calls, RING)
    assert [answer(tape.model(LANE, prompt(said))) for said in "ab"] == ["error", "cut"]
    assert isinstance(tape.model(LANE, prompt("c")), Miss)
    assert tape.frontier(LANE), "what broke at the frontier is made again, and holds nothing up"


def test_an_answer_that_can_not_be_handed_out_keeps_the_lane_from_its_frontier() -> None:
    tape = Tape([model("a", 1, unfit="something in its answer is redacted")], RING)
    miss = tape.model(LANE, prompt("a"))
    assert isinstance(miss, Miss)
    assert not miss.frontier


def test_renamed_call_ids_are_found_by_the_second_look_up() -> None:
    def wire(call_id: str) -> Request:
        body = {"messages": [{"role": "tool", "tool_call_id": call_id, "content": "x"}]}
        return asked_model(WireRequest("POST", "/v1/chat/completions", body, "openai.chat"))

    key, alias = wire("a").keys(RING, ())
    assert alias is not None
    call = Recorded(NodeType.MODEL, LANE, (key,), Outcome.DONE, "x", aliases=(alias,))
    assert Tape([call], RING).model(LANE, wire("b")) == Answered(call, True)
    assert Tape([call], RING).model(LANE, wire("a")) == Answered(call, False)


# --- tools --------------------------------------------------------------------------------------------------------------


def test_a_tool_is_done_failed_unknown_or_not_begun() -> None:
    calls = [
        tool("pay", {"n": 1}, "paid"),
        tool("pay", {"n": 2}, "ValueError", outcome=Outcome.FAILED),
        tool("pay", {"n": 3}, None, outcome=Outcome.OPEN),
    ]
    tape = Tape(calls, RING)
    found = [tape.tool(LANE, tool_call("pay", f'{{"n": {n}}}')) for n in (1, 2, 3, 4, 1)]
    assert [type(f) for f in found] == [Done, Failed, Unknown, NotBegun, NotBegun]
    assert [answer(f) for f in found[:2]] == ["paid", "ValueError"]
    assert isinstance(tape.tool(LANE, tool_call("pay", {"n": 3})), Unknown), "asked again, it is still not known"
    assert [u.call.call_id for u in tape.unknown()] == [None]


def test_equal_calls_match_the_same_call_id_first_and_then_their_order() -> None:
    tape = Tape([tool("t", {}, n, f"c{n}") for n in range(4)], RING)
    got = [answer(tape.tool(LANE, tool_call("t", {}, call_id))) for call_id in ("c2", None, "new", "c3")]
    assert got == [2, 0, 1, 3]


def test_an_effect_without_a_record_before_the_frontier_is_told_apart_from_one_behind_it() -> None:
    tape = Tape([model("a", 1), tool("t", {"n": 1}, "x")], RING)
    before = tape.tool(LANE, tool_call("t", {"n": 2}))
    answer(tape.model(LANE, prompt("a")))
    behind = tape.tool(LANE, tool_call("t", {"n": 2}))
    assert isinstance(before, NotBegun)
    assert isinstance(behind, NotBegun)
    assert (before.frontier, behind.frontier) == (False, True)
    assert before.report.differences[0].where == "$.n"


def test_after_a_divergence_a_recorded_call_of_that_name_is_unknown_whatever_its_arguments() -> None:
    tape = Tape([model("a", 1), model("b", 2), tool("pay", {"n": 1}, "paid")], RING)
    tape.leave(LANE)
    assert tape.frontier(LANE)
    assert isinstance(tape.model(LANE, prompt("a")), Miss), "it takes no more answers"
    assert isinstance(tape.tool(LANE, tool_call("pay", {"n": 2})), Unknown)
    assert isinstance(tape.tool(LANE, tool_call("pay", {"n": 1})), Unknown)
    assert isinstance(tape.tool(LANE, tool_call("look", {"n": 1})), NotBegun)
    assert tape.model("other", prompt("a")).frontier  # type: ignore[union-attr]


def test_what_was_handed_out_before_a_divergence_does_not_make_the_tool_unknown() -> None:
    tape = Tape([tool("pay", {"n": 1}, "paid"), model("a", 1)], RING)
    assert answer(tape.tool(LANE, tool_call("pay", {"n": 1}))) == "paid"
    tape.leave(LANE)
    assert isinstance(tape.tool(LANE, tool_call("pay", {"n": 2})), NotBegun)


@pytest.mark.parametrize(
    ("recorded_id", "asked_id", "expected"),
    [(None, "c1", Unknown), ("c1", "c1", Unknown), ("c1", None, Unknown), ("c1", "c2", NotBegun)],
)
def test_a_call_whose_arguments_are_not_known_any_more_is_never_not_begun(
    recorded_id: str | None, asked_id: str | None, expected: type
) -> None:
    tape = Tape([tool("pay", {"n": 1}, "paid", recorded_id, keys=())], RING)
    assert isinstance(tape.tool(LANE, tool_call("pay", {"n": 1}, asked_id)), expected)
    assert isinstance(tape.tool(LANE, tool_call("look", {"n": 1}, asked_id)), NotBegun)


def test_a_result_that_can_not_be_handed_out_is_unknown_and_not_called_again() -> None:
    tape = Tape([tool("pay", {"n": 1}, "REDACTED", unfit="something in its answer is redacted")], RING)
    found = tape.tool(LANE, tool_call("pay", {"n": 1}))
    assert isinstance(found, Unknown)
    assert "redacted" in found.reason


def test_arguments_that_can_not_be_compared_are_unknown_while_any_call_is_left() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    tape = Tape([tool("pay", {"n": 1}, "paid")], RING)
    assert isinstance(tape.tool(LANE, tool_call("pay", cycle)), Unknown)
    assert answer(tape.tool(LANE, tool_call("pay", {"n": 1}))) == "paid"
    assert isinstance(tape.tool(LANE, tool_call("pay", cycle)), NotBegun)


def test_what_nobody_asked_for_is_left_over() -> None:
    tape = Tape([model("a", 1), model("b", 2), tool("t", {}, 3)], RING)
    answer(tape.model(LANE, prompt("b")))
    assert [c.answer for c in tape.left_over()] == [1, 3]
