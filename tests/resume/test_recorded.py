"""Recorded calls as the tape wants them: lanes, order, what the run went past, effects in place of their spans."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_agentrec import Recorder, ResumeCache, agent_run, ingest, resumable_tool
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import Effect
from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.prompts import AgentPrompt
from otel_agentrec.records import NodeIoRecord
from otel_agentrec.resume.recorded import recorded_calls
from otel_agentrec.resume.tape import Outcome, Recorded
from tests.cases.case import DATA

EMAIL = {"subject": "todo", "to": "bo@example.test"}


def calls_of(path: str | Path) -> list[Recorded]:
    return recorded_calls(Recording(path), None, KeyRing.of(path, create=False))


def test_an_effect_stands_for_its_span_and_lanes_agree(recorder: Recorder) -> None:
    @resumable_tool
    def pay(eur: int) -> str:
        return f"paid {eur}"

    @resumable_tool(effect="container")
    def research(topic: str) -> str:
        with agent_run("researcher") as inner, inner.step() as step:
            with step.model_call(AgentPrompt(model="m", items=topic)) as call:
                call.response("look")
            with step.tool_call("pay", {"eur": 6}) as tool:
                tool.result(pay(6))
        return "found"

    with agent_run("planner") as run, run.step() as step:
        with step.model_call(AgentPrompt(model="m", items="a")) as call:
            call.response("x")
        with step.tool_call("pay", {"eur": 5}, call_id="c1") as tool:
            tool.result(pay(5))
        with step.tool_call("research", {"topic": "x"}, call_id="c2") as tool:
            tool.result(research("x"))
    recorder.shutdown()

    calls = calls_of(recorder.path)
    assert [(c.name, c.lane, c.call_id) for c in calls] == [
        ("m", "planner", None),
        ("pay", "planner", "c1"),
        ("research", "planner", "c2"),
        ("m", "planner/researcher@c2", None),
        ("pay", "planner/researcher@c2", None),
    ]
    assert [type(c.answer) for c in calls] == [NodeIoRecord, Effect, Effect, NodeIoRecord, Effect]
    assert {c.outcome for c in calls} == {Outcome.DONE}
    assert all(len(c.keys) == 1 for c in calls)


def test_an_error_that_an_agent_around_it_went_past_is_past(recorder: Recorder) -> None:
    with agent_run("planner") as run, run.step() as step:
        with step.tool_call("research", {}, call_id="c1") as tool:
            with (
                pytest.raises(ConnectionError),
                agent_run("researcher") as inner,
                inner.step() as at,
                at.model_call(AgentPrompt(model="m", items="inner")),
            ):
                raise ConnectionError("lost")
            tool.result("nothing found")
        with pytest.raises(ConnectionError), step.model_call(AgentPrompt(model="m", items="outer")):
            raise ConnectionError("lost for good")
    recorder.shutdown()
    models = [c for c in calls_of(recorder.path) if c.name == "m"]
    assert [(c.lane, c.outcome, c.past, c.is_answer) for c in models] == [
        ("planner/researcher@c1", Outcome.FAILED, True, True),
        ("planner", Outcome.FAILED, False, False),
    ]


@pytest.mark.parametrize(
    ("case", "who"),
    [
        ("009", "whose attributes an SDK limit cut off or dropped"),
        ("020", "whose arguments and results hold credentials"),
    ],
)
def test_what_is_not_whole_is_never_an_answer(tmp_path: Path, case: str, who: str) -> None:
    ingest(DATA / case / "input.otlp.jsonl", tmp_path / "rec")
    assert len(ResumeCache.from_recording(tmp_path / "rec", match="content")) == 0, who
    assert all(c.unfit or not c.keys or c.outcome is not Outcome.DONE for c in calls_of(tmp_path / "rec"))


def test_a_call_that_nothing_tells_the_end_of_is_no_answer(tmp_path: Path) -> None:
    ingest(DATA / "002" / "input.otlp.jsonl", tmp_path / "rec")
    cache = ResumeCache.from_recording(tmp_path / "rec", match="content")
    assert cache.lookup_tool({"name": "read_file", "arguments": {"path": "todo.txt"}}) == "buy milk"
    missed = object()
    assert cache.lookup_tool({"name": "send_email", "arguments": EMAIL}, missed) is missed


def test_a_stream_that_was_left_is_cut_and_made_again(recorder: Recorder) -> None:
    prompt = AgentPrompt(model="m", items="hi")
    with agent_run("agent") as run, run.step() as step:
        call = step.model_call(prompt, stream=True)
        call.__enter__().delta("tok1 ")
        del call
        recorder.shutdown()
    (left,) = calls_of(recorder.path)
    assert (left.outcome, left.is_answer) == (Outcome.CUT, False)
    assert len(ResumeCache.from_recording(recorder.path, match="content")) == 0
