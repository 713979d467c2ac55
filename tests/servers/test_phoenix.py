"""A recording that was exported, and a run that was forwarded live, as a real Phoenix shows them.

Its installation takes minutes and 850 MB, so it is asked for by name: ``AGENTREC_VIEWERS=phoenix``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import verify
from otel_agentrec.demo import stage
from otel_agentrec.demo.agent import MODEL
from otel_agentrec.journal.stamps import CHECKPOINT, stamp_of
from tests.servers.feeding import export, stamps
from tests.servers.phoenix import Phoenix
from tests.servers.viewers import asked_for, run_live

pytestmark = [asked_for("phoenix"), pytest.mark.timeout(1800)]

Json = Any


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    one = Phoenix(tmp_path_factory.mktemp("phoenix"))
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.fixture(scope="module", params=["exported", "live"])
def run(
    request: pytest.FixtureRequest, phoenix: Phoenix, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[dict[str, Json]]]:
    """(the recording, what Phoenix has of it), each way in a project of its own."""
    recording = tmp_path_factory.mktemp(request.param) / "rec"
    if request.param == "exported":
        stage.record(recording, stage.ANSWER, stage.QUESTION, lambda piece: None)
        assert export(recording, phoenix.url) == 5
        return recording, phoenix.wait_for(5)
    run_live(recording, phoenix.url, OTEL_RESOURCE_ATTRIBUTES="openinference.project.name=live")
    return recording, [s for s in phoenix.wait_for(6, "live") if s["name"] != CHECKPOINT and "agentrec.seq" in told(s)]


Run = tuple[Path, list[dict[str, Json]]]


def told(span: dict[str, Json]) -> dict[str, Json]:
    attributes: dict[str, Json] = span["attributes"]
    return attributes


def of_kind(run: Run, kind: str) -> list[dict[str, Json]]:
    """Attributes of its spans of a kind, in the order of their beginnings."""
    return [told(s) for s in sorted(run[1], key=lambda s: str(s["start_time"])) if s["span_kind"] == kind]


def test_kinds(run: Run) -> None:
    assert sorted(s["span_kind"] for s in run[1]) == ["AGENT", "LLM", "LLM", "TOOL", "TOOL"]
    (root,) = [s for s in run[1] if s["parent_id"] is None]
    assert (root["span_kind"], root["name"]) == ("AGENT", "invoke_agent trip planner")
    assert {s["parent_id"] for s in run[1] if s is not root} == {root["context"]["span_id"]}


def test_the_first_span_shows_what_was_asked_and_answered(run: Run) -> None:
    """The columns of Phoenix's lists of traces and of sessions."""
    (agent,) = of_kind(run, "AGENT")
    assert (agent["input.value"], agent["output.value"]) == (stage.QUESTION, stage.ANSWER)


def test_messages_and_tool_calls(run: Run) -> None:
    first, last = of_kind(run, "LLM")
    asked = "llm.input_messages.1.message."
    assert (first[asked + "role"], first[asked + "content"]) == ("user", stage.QUESTION)
    assert first["llm.input_messages.0.message.role"] == "system"
    assert "llm.input_messages.2.message.role" not in first, "the prompt stands there once"
    call = "llm.output_messages.0.message.tool_calls.{}.tool_call.function."
    assert [first[call.format(n) + "name"] for n in (0, 1)] == ["weather", "last_train"]
    assert json.loads(first[call.format(0) + "arguments"]) == {"place": "Finse", "day": "tomorrow"}
    assert json.loads(first["llm.tools.0.tool.json_schema"])["function"]["name"] == "weather"
    assert last["llm.output_messages.0.message.content"] == stage.ANSWER
    assert "21:42" in last["llm.input_messages.4.message.content"], "what the tool gave"


def test_tools(run: Run) -> None:
    tools = {one["tool.name"]: one for one in of_kind(run, "TOOL")}
    train = tools["last_train"]
    assert json.loads(train["input.value"]) == {"start": "Finse", "to": "Oslo"}
    assert json.loads(train["output.value"])["departs"] == "21:42"
    assert tools.keys() == {"last_train", "weather"}


def test_tokens_and_model(run: Run) -> None:
    for one in of_kind(run, "LLM"):
        counts = [one[f"llm.token_count.{side}"] for side in ("prompt", "completion", "total")]
        assert counts == [one["gen_ai.usage.input_tokens"], one["gen_ai.usage.output_tokens"], counts[0] + counts[1]]
        assert counts[0] > 0 and one["llm.model_name"] == MODEL


def test_session(run: Run, phoenix: Phoenix) -> None:
    assert {one["session.id"] for one in [*of_kind(run, "AGENT"), *of_kind(run, "LLM")]} == {"demo"}
    (session,) = phoenix.sessions()
    assert session["session_id"] == "demo"
    assert run[1][0]["context"]["trace_id"] in {trace["trace_id"] for trace in session["traces"]}


def project_of(recording: Path) -> str:
    return "live" if recording.parent.name.startswith("live") else "default"


def test_what_is_no_step_can_be_left_out(run: Run, phoenix: Phoenix) -> None:
    shown = phoenix.found("span_kind != 'UNKNOWN'", project_of(run[0]))
    assert shown == {span["context"]["span_id"] for span in run[1]}


def test_each_span_leads_to_its_line_and_back(run: Run, phoenix: Phoenix) -> None:
    recording, spans = run
    chosen = spans[0]
    where = "attributes['agentrec']['stream'] == {stream!r} and attributes['agentrec']['seq'] == {seq}"
    condition = where.format(stream=told(chosen)["agentrec.stream"], seq=told(chosen)["agentrec.seq"])
    assert phoenix.found(condition, project_of(recording)) == {chosen["context"]["span_id"]}
    assert {stamp_of(told(span)) for span in spans} == stamps(recording)
    assert verify(recording).exit_code == 0
