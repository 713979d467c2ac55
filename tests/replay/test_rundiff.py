"""Two runs side by side: the same whatever ids and times they have; else where they part."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.replay.rundiff import Compared, RunDiff, diff_runs

Json = Any


def said(text: str) -> dict[str, Json]:
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def model(n: int, asked: str, answer: str | None, *calls: tuple[str, str, Json], **more: Json) -> NodeIoRecord:
    wanted = [{"id": id, "name": name, "arguments": arguments} for id, name, arguments in calls]
    return NodeIoRecord(
        f"m{n}",
        NodeType.MODEL,
        f"model@r|t|{n}",
        step=n,
        model_id="gpt",
        inputs={"model": "gpt", "messages": [said(asked)]},
        output_text=answer,
        tool_calls=wanted,
        **more,
    )


def tool(n: int, name: str, arguments: Json, result: Json, call_id: str = "c") -> NodeIoRecord:
    inputs = {"name": name, "arguments": arguments, "callId": call_id}
    return NodeIoRecord(
        f"t{n}", NodeType.TOOL, f"tool@{n}", step=n, tool_name=name, tool_call_id=call_id, inputs=inputs, outputs=result
    )


def run(*records: NodeIoRecord, lane: str = "") -> list[Compared]:
    return [Compared(record, lane) for record in records]


def agent(day: str = "Monday", result: str = "sun", id: str = "c1") -> list[Compared]:
    return run(
        model(1, f"Weather on {day}?", None, (id, "weather", {"day": day})),
        tool(1, "weather", {"day": day}, result, id),
        model(2, f"it is {result}", f"It is {result}."),
    )


def told(diff: RunDiff) -> list[tuple[str, str | None, str | None]]:
    return [(p.status, p.a and p.a.record_id, p.b and p.b.record_id) for p in diff.pairs]


def test_ids_times_and_tokens_are_no_difference() -> None:
    later = [
        Compared(dataclasses.replace(c.record, started_at_epoch_ms=9, input_tokens=7, record_id=f"x{n}"), c.lane)
        for n, c in enumerate(agent(id="call_77"))
    ]
    diff = diff_runs(agent(id="call_1"), later)
    assert diff.same and diff.first is None and diff.counts == {"same": 3, "changed": 0, "only_a": 0, "only_b": 0}


def test_marks_of_redaction_are_compared_by_which_secrets_were_the_same() -> None:
    def asks(*marks: str) -> list[Compared]:
        keys = [f"key REDACTED(api-key~{mark})" for mark in marks]
        return run(model(1, keys[0], "ok"), tool(1, "f", {"keys": keys[1:], "other": "REDACTED(withheld)"}, "x"))

    first = asks("0000000a", "0000000a", "0000000b")
    assert diff_runs(first, asks("11111111", "11111111", "22222222")).same
    other = diff_runs(first, asks("11111111", "22222222", "22222222"))
    assert [(pair.status, [d.path for d in pair.differences]) for pair in other.pairs] == [
        ("same", []),
        ("changed", [("inputs", "arguments", "keys", 0)]),
    ]


def test_the_first_difference_is_named_by_its_path_with_both_values() -> None:
    diff = diff_runs(agent(), agent(day="Sunday"))
    assert [p.status for p in diff.pairs] == ["changed", "changed", "same"]
    first = diff.first
    assert first is not None and first.asked
    assert [(d.where, d.recorded, d.asked) for d in first.differences] == [
        ("$.inputs.messages[0].parts[0].content", "Weather on Monday?", "Weather on Sunday?"),
        ("$.toolCalls[0].arguments.day", "Monday", "Sunday"),
    ]


def test_another_answer_to_the_same_question_is_told_apart() -> None:
    diff = diff_runs(run(model(1, "hi", "hello")), run(model(1, "hi", "good day")))
    assert diff.first is not None and not diff.first.asked
    assert [d.where for d in diff.first.differences] == ["$.outputText"]


def test_calls_that_one_run_made_alone_stand_at_their_place() -> None:
    more = [*agent()[:2], *run(tool(9, "train", {}, "21:42")), *agent()[2:]]
    assert told(diff_runs(agent(), more)) == [
        ("same", "m1", "m1"),
        ("same", "t1", "t1"),
        ("only_b", None, "t9"),
        ("same", "m2", "m2"),
    ]
    assert told(diff_runs(more, agent()))[2] == ("only_a", "t9", None)


def test_two_agents_in_another_order_are_the_same() -> None:
    a, b = run(model(1, "a", "A"), lane="boss/a"), run(model(2, "b", "B"), lane="boss/b")
    assert diff_runs([*a, *b], [*b, *a]).same
    assert not diff_runs([*a, *b], [*a, *run(model(2, "b", "B"), lane="boss/c")]).same


def test_a_failed_call_differs_from_one_that_went_well() -> None:
    failed = dataclasses.replace(tool(1, "pay", {}, None), status="error", error={"type": "Timeout"})
    diff = diff_runs(run(tool(1, "pay", {}, None)), run(failed))
    assert diff.first is not None
    assert {d.where for d in diff.first.differences} >= {"$.status", "$.error"}


records = st.builds(model, st.integers(1, 3), st.sampled_from("ab"), st.sampled_from(["x", "y", None])) | st.builds(
    tool, st.integers(1, 3), st.sampled_from(["t", "u"]), st.sampled_from([{}, {"k": 1}]), st.sampled_from(["r", "s"])
)
runs = st.lists(st.builds(Compared, records, st.sampled_from(["", "l"])), max_size=8)


@given(runs)
def test_a_run_is_the_same_as_itself(a: list[Compared]) -> None:
    assert diff_runs(a, a).same


@given(runs, runs)
def test_every_call_stands_in_one_pair_and_both_ways_tell_the_same(a: list[Compared], b: list[Compared]) -> None:
    there, back = diff_runs(a, b), diff_runs(b, a)
    assert sorted(id(p.a) for p in there.pairs if p.a) == sorted(id(c.record) for c in a)
    assert sorted(id(p.b) for p in there.pairs if p.b) == sorted(id(c.record) for c in b)
    assert there.same == back.same
    assert there.same == (not there.counts["changed"] + there.counts["only_a"] + there.counts["only_b"])
