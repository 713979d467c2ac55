"""Settings that name what receives records, and how large a value may be."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture.emit import agent_run
from otel_agentrec.capture.namedsinks import sinks_of
from otel_agentrec.capture.processors import AgentRecSpanProcessor
from otel_agentrec.errors import ConfigurationError
from otel_agentrec.journal.reader import read_events
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.nodes.sinks import InMemoryIoCaptureSink, JsonlIoCaptureSink

MADE: list[InMemoryIoCaptureSink] = []


def make() -> InMemoryIoCaptureSink:
    MADE.append(InMemoryIoCaptureSink())
    return MADE[-1]


def record(recording: Path, words: str = "hello") -> None:
    """One model call and one tool call, recorded as the environment says."""
    provider = TracerProvider()
    provider.add_span_processor(AgentRecSpanProcessor(recording))
    with agent_run("planner", tracer_provider=provider) as run, run.step() as step:
        with step.model_call([{"role": "user", "content": words}, {"role": "user", "content": "short"}]) as call:
            call.response({"id": "r", "text": words})
        with step.tool_call("look", {"at": words, "n": 2}) as tool:
            tool.result(words)
    provider.shutdown()


def test_sinks_are_named_in_the_environment_and_in_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    MADE.clear()
    monkeypatch.setenv("OTEL_AGENTREC_SINKS", f"{tmp_path}/nodes.jsonl, {__name__}:make")
    record(tmp_path / "rec")
    told = JsonlIoCaptureSink.load(tmp_path / "nodes.jsonl")
    assert [r.record_id for r in told] == [r.record_id for r in MADE[0].records()]
    assert len(told) == 2
    opened = next(iter(read_events(tmp_path / "rec")))
    assert opened.payload["sinks"] == [f"JsonlIoCaptureSink {tmp_path}/nodes.jsonl", "InMemoryIoCaptureSink"]


def test_a_sink_may_be_given_by_name_in_the_program_too(tmp_path: Path) -> None:
    kept = InMemoryIoCaptureSink()
    made = sinks_of([kept, f"{tmp_path}/nodes.jsonl"])
    assert made[0] is kept
    assert isinstance(made[1], JsonlIoCaptureSink)


@pytest.mark.parametrize(
    ("name", "what"),
    [("no_such_module:make", "No module"), (f"{__name__}:nothing", "nothing"), ("os:getpid", "no sink")],
)
def test_a_sink_that_can_not_be_made_is_a_clear_error(name: str, what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        sinks_of([name])


@pytest.mark.parametrize("content", ["detached", "inline"])
def test_the_large_parts_of_a_large_value_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_VALUE_BYTES", "1K")
    monkeypatch.setenv("OTEL_AGENTREC_CONTENT", content)
    record(tmp_path / "rec", "x" * 2000)
    model, tool = read_nodes(tmp_path / "rec")
    words = [message["parts"][0]["content"] for message in model.inputs["messages"]]
    assert (words[0]["$cut"]["bytes"], words[1]) == (2002, "short")
    assert (model.outputs["id"], model.outputs["text"]["$cut"]["bytes"]) == ("r", 2002)
    assert (tool.inputs["arguments"]["at"]["$cut"]["bytes"], tool.inputs["arguments"]["n"]) == (2002, 2)
    assert "x" * 100 not in "".join(file.read_text() for file in (tmp_path / "rec").glob("*.jsonl"))
