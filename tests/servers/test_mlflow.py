"""A recording that was exported, and a run that was forwarded live, as a real MLflow shows them.

Its installation takes minutes, so it is asked for by name: ``AGENTREC_VIEWERS=mlflow``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.demo import stage
from otel_agentrec.demo.agent import MODEL
from otel_agentrec.journal.stamps import CHECKPOINT, stamp_of
from tests.servers.feeding import export, stamps
from tests.servers.mlflow_server import HEADER, MLflow
from tests.servers.viewers import asked_for, run_live

pytestmark = [asked_for("mlflow"), pytest.mark.timeout(1800)]

Json = Any
DEFAULT = f"{HEADER}=0"


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MLflow]:
    one = MLflow(tmp_path_factory.mktemp("mlflow"))
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.fixture(scope="module", params=["exported", "live"])
def run(
    request: pytest.FixtureRequest, mlflow: MLflow, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Json]]:
    """(the recording, MLflow's trace of it)."""
    recording = tmp_path_factory.mktemp(request.param) / "rec"
    if request.param == "exported":
        stage.record(recording, stage.ANSWER, stage.QUESTION, lambda piece: None)
        assert export(recording, mlflow.url, "--header", DEFAULT) == 5
    else:
        run_live(recording, mlflow.url, OTEL_EXPORTER_OTLP_HEADERS=DEFAULT)
    streams = {stamp.stream for stamp in stamps(recording)}
    traces = [one for one in mlflow.wait_for(5) if {told(s).get("agentrec.stream") for s in spans(one)} & streams]
    (trace,) = [one for one in traces if {s["name"] for s in spans(one)} != {CHECKPOINT}]
    return recording, trace


Run = tuple[Path, dict[str, Json]]


def spans(trace: dict[str, Json]) -> list[dict[str, Json]]:
    found: list[dict[str, Json]] = trace["data"]["spans"]
    return found


def told(span: dict[str, Json]) -> dict[str, Json]:
    """Its attributes, each of which MLflow keeps as JSON text."""
    return {key: json.loads(value) for key, value in span["attributes"].items()}


def of_kind(run: Run, kind: str) -> list[dict[str, Json]]:
    in_order = sorted(spans(run[1]), key=lambda span: int(span["start_time_unix_nano"]))
    return [one for one in map(told, in_order) if one.get("mlflow.spanType") == kind]


def test_kinds(run: Run) -> None:
    assert [len(of_kind(run, kind)) for kind in ("AGENT", "CHAT_MODEL", "TOOL")] == [1, 2, 2]


def test_its_list_shows_what_was_asked_and_answered(run: Run) -> None:
    info = run[1]["info"]
    assert json.loads(info["request_preview"]) == stage.QUESTION
    assert json.loads(info["response_preview"]) == stage.ANSWER


def test_messages_and_tool_calls(run: Run) -> None:
    first, last = of_kind(run, "CHAT_MODEL")
    assert [one["role"] for one in first["mlflow.spanInputs"]] == ["system", "user"]
    assert first["mlflow.spanInputs"][1]["parts"][0]["content"] == stage.QUESTION
    (answer,) = first["mlflow.spanOutputs"]
    assert [(part["type"], part["name"]) for part in answer["parts"]] == [
        ("tool_call", "weather"),
        ("tool_call", "last_train"),
    ]
    assert {tool["name"] for tool in first["mlflow.chat.tools"]} >= {"weather", "last_train"}
    assert last["mlflow.spanOutputs"][0]["parts"][0]["content"] == stage.ANSWER


def test_tools(run: Run) -> None:
    (train,) = [one for one in of_kind(run, "TOOL") if one["gen_ai.tool.name"] == "last_train"]
    assert train["mlflow.spanInputs"] == {"start": "Finse", "to": "Oslo"}
    assert train["mlflow.spanOutputs"]["departs"] == "21:42"


def test_tokens_model_and_session(run: Run) -> None:
    counts = [one["mlflow.chat.tokenUsage"] for one in of_kind(run, "CHAT_MODEL")]
    metadata = run[1]["info"]["trace_metadata"]
    assert json.loads(metadata["mlflow.trace.tokenUsage"]) == {key: sum(c[key] for c in counts) for key in counts[0]}
    assert counts[0]["input_tokens"] > 0
    assert {one["mlflow.llm.model"] for one in of_kind(run, "CHAT_MODEL")} == {MODEL}
    assert metadata["mlflow.trace.session"] == "demo"


def test_each_span_leads_to_its_line(run: Run) -> None:
    recording, trace = run
    assert {stamp_of(told(span)) for span in spans(trace)} - {None} == stamps(recording)
