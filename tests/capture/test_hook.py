"""The completion hook: what it is told becomes part of the span's record, or amends it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_agentrec import read_nodes
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.processors import AgentRecSpanProcessor
from otel_agentrec.otel import completion_hook
from otel_agentrec.otel.exporters import RecordingSpanExporter
from tests.capture.recording import contents, events, types
from tests.redaction.secrets import SHAPED

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


@dataclass
class Part:
    content: str
    type: str = "text"


@dataclass
class Message:
    role: str
    parts: list[Part]
    finish_reason: str | None = None
    name: str | None = None


def told(question: str = "hi", answer: str = "hello") -> dict[str, Any]:
    return {
        "inputs": [Message("user", [Part(question)])],
        "outputs": [Message("assistant", [Part(answer)], "stop")],
        "system_instruction": [Part("Be terse.")],
        "tool_definitions": [{"type": "function", "name": "f", "description": None}],
    }


class Live:
    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.processor = AgentRecSpanProcessor(path, **settings)
        self.provider.add_span_processor(self.processor)
        self.tracer = self.provider.get_tracer("demo")


@pytest.fixture(params=["written", "deferred"])
def live(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Live]:
    live = Live(tmp_path / "rec", durability=request.param)
    yield live
    live.processor.recorder.shutdown()


def record_of(live: Live) -> Any:
    live.processor.force_flush()
    (record,) = read_nodes(live.path)
    return record


def test_before_the_end_it_is_part_of_the_record(live: Live) -> None:
    said = told()
    with live.tracer.start_as_current_span("chat m", attributes=CHAT) as span:
        completion_hook().on_completion(**said, span=span)
        said["inputs"][0].parts[0].content = ""  # the program goes on using its objects
    record = record_of(live)
    assert record.inputs["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    assert record.inputs["systemInstructions"] == [{"type": "text", "content": "Be terse."}]
    assert record.inputs["tools"] == [{"type": "function", "name": "f"}]
    assert (record.output_text, record.finish_reasons, record.model_id) == ("hello", ["stop"], "m")
    assert events(live.path, "NODE_AMENDED") == []


def test_after_the_end_it_amends_the_record(live: Live) -> None:
    with live.tracer.start_as_current_span("chat m", attributes=CHAT) as span:
        pass
    completion_hook().on_completion(**told(), span=span)
    record = record_of(live)
    assert types(live.path) == ["NODE_STARTED", "NODE_RECORDED", "REQUEST_HEADER", "NODE_AMENDED"]
    assert (record.output_text, record.inputs["messages"][0]["parts"][0]["content"]) == ("hello", "hi")
    assert record.inputs["systemInstructions"] == [{"type": "text", "content": "Be terse."}]
    assert (record.status, record.model_id) == ("ok", "m")


def test_an_answer_that_was_read_before_the_program_died_is_kept(live: Live) -> None:
    span = live.tracer.start_span("chat m", attributes=CHAT)
    completion_hook().on_completion(**told(), span=span)
    live.processor.recorder.shutdown()
    assert (record_of(live).status, record_of(live).output_text) == ("partial", "hello")


def test_what_the_span_says_itself_counts_first_unless_it_was_cut(live: Live) -> None:
    own = '[{"role":"user","parts":[{"type":"text","content":"own"}]}]'
    for n, attribute in enumerate((own, own[:30])):
        attributes = {**CHAT, "gen_ai.input.messages": attribute}
        with live.tracer.start_as_current_span("chat m", attributes=attributes) as span:
            completion_hook().on_completion(**told(question=str(n)), span=span)
    live.processor.force_flush()
    first, second = read_nodes(live.path)
    assert first.inputs["messages"][0]["parts"][0]["content"] == "own"
    assert second.inputs["messages"][0]["parts"][0]["content"] == "1"
    assert second.flags == []
    assert events(live.path, "NODE_INTERRUPTED") == [], "the span object is gone before its end is written"


def test_of_an_agent_it_tells_what_the_agent_was_asked(live: Live) -> None:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
    with live.tracer.start_as_current_span("invoke_agent a", attributes=attributes) as span:
        completion_hook().on_completion(**told(), span=span)
    live.processor.force_flush()
    (ended,) = events(live.path, "RUN_ENDED")
    assert {"messages", "outputMessages"} <= ended["payload"]["facts"].keys()
    assert list(read_nodes(live.path)) == []


def test_a_span_that_began_before_recording_has_its_content(tmp_path: Path) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    span = provider.get_tracer("demo").start_span("chat m", attributes=CHAT)
    late = AgentRecSpanProcessor(tmp_path / "rec")
    provider.add_span_processor(late)
    completion_hook().on_completion(**told(), span=span)
    span._span_processor.on_end(span)  # type: ignore[attr-defined]
    (record,) = read_nodes(tmp_path / "rec")
    assert record.output_text == "hello"
    late.recorder.shutdown()


def test_where_spans_come_in_batches_their_content_is_kept_meanwhile(tmp_path: Path) -> None:
    exporter = RecordingSpanExporter(tmp_path / "rec")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    for _ in range(20):
        with provider.get_tracer("demo").start_as_current_span("chat m", attributes=CHAT) as span:
            completion_hook().on_completion(**told(), span=span)
    provider.shutdown()
    records = list(read_nodes(tmp_path / "rec"))
    assert [(one.output_text, one.model_id) for one in records] == [("hello", "m")] * 20
    assert exporter.recorder is not None
    exporter.recorder.shutdown()


def test_what_may_be_an_agents_is_kept_but_is_no_model_call(live: Live) -> None:
    """Of a trace that is not sampled, nothing tells whether the operation was a model call or a whole agent."""
    context = trace.SpanContext(7, 8, is_remote=False)
    completion_hook().on_completion(**told("a secret plan"), span=trace.NonRecordingSpan(context))
    live.processor.force_flush()
    (amended,) = events(live.path, "NODE_AMENDED")
    assert amended["trace"] == {"traceId": f"{7:032x}", "spanId": f"{8:016x}"}
    assert "a secret plan" in contents(live.path)
    assert list(read_nodes(live.path)) == []


def test_every_recorder_of_the_process_is_fed_but_one_that_wants_no_content(tmp_path: Path) -> None:
    lives = [Live(tmp_path / "a"), Live(tmp_path / "b"), Live(tmp_path / "c", content="off")]
    with lives[0].tracer.start_as_current_span("chat m", attributes=CHAT) as span:
        for live in lives[1:]:
            live.processor.on_start(span)  # type: ignore[arg-type]
        completion_hook().on_completion(**told(), span=span)
        for live in lives[1:]:
            live.processor.on_end(span)  # type: ignore[arg-type]
    for live in lives:
        live.processor.recorder.shutdown()
    assert [record_of(live).output_text for live in lives] == ["hello", "hello", None]
    assert contents(lives[2].path) == ""


def test_odd_calls_cost_nothing(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    hook = completion_hook()
    hook.on_completion()
    hook.on_completion(inputs=7, outputs="text", span=None, later_argument=1)
    hook.on_completion(inputs=[object()], span=object())
    live.processor.force_flush()
    assert list(read_nodes(live.path)) == []
    assert capsys.readouterr().err.count("the completion hook was swallowed") == 1


def test_without_a_recorder_nothing_is_loaded() -> None:
    code = (
        "import sys; from otel_agentrec.otel import completion_hook; completion_hook().on_completion(inputs=[1])\n"
        "print([m for m in sys.modules if m.startswith(('otel_agentrec.', 'opentelemetry', 'orjson'))])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert out.stdout.strip() == "['otel_agentrec.otel']"


def test_secrets_are_not_written(live: Live) -> None:
    secret = SHAPED["anthropic"]
    unsampled = trace.NonRecordingSpan(trace.SpanContext(7, 8, is_remote=False))
    with live.tracer.start_as_current_span("chat m", attributes=CHAT) as span:
        completion_hook().on_completion(**told(secret, secret), span=span)
    completion_hook().on_completion(**told(secret, secret), span=unsampled)
    live.processor.recorder.shutdown()
    assert len(events(live.path, "NODE_RECORDED", "NODE_AMENDED")) == 2
    assert all(secret.encode() not in file.read_bytes() for file in live.path.iterdir() if file.is_file())


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=4) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "parts", "type", "content", "name", "id", "function", "finish_reason", 7]), inner
        )
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(ODD, ODD, ODD, ODD)
def test_nothing_that_it_may_be_told_is_lost_or_raises(inputs: Any, outputs: Any, instruction: Any, tools: Any) -> None:
    with tempfile.TemporaryDirectory() as directory:
        live = Live(Path(directory) / "rec")
        with live.tracer.start_as_current_span("chat m", attributes=CHAT) as span:
            completion_hook().on_completion(
                inputs=inputs, outputs=outputs, system_instruction=instruction, tool_definitions=tools, span=span
            )
        live.processor.recorder.shutdown()
        record = record_of(live)
        assert live.processor.recorder.stats()["swallowed"] == PROCESS.counters.counts.get("swallowed", 0) == 0
        if inputs not in (None, 0, False, "", b"", [], {}):
            assert record.inputs["messages"] is not None
