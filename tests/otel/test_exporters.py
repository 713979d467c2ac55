"""The exporters: what they are given after the fact reads like what was seen live, once, whoever else saw it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExportResult, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExportResult

from otel_agentrec import (
    AgentRecLogProcessor,
    AgentRecSpanProcessor,
    RecordingLogExporter,
    RecordingSpanExporter,
    read_nodes,
    verify,
)
from otel_agentrec.capture import exported
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.fold import fold
from tests.capture.recording import events, types

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.output.messages": "[]"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
DETAILS = "gen_ai.client.inference.operation.details"
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": "Good day."}]}]


class Batch(BatchSpanProcessor):
    """Exports when told to, not before."""

    def __init__(self, exporter: RecordingSpanExporter) -> None:
        super().__init__(exporter, schedule_delay_millis=3_600_000, max_export_batch_size=512)


@pytest.fixture
def rec(tmp_path: Path) -> Path:
    return tmp_path / "rec"


@pytest.fixture
def exporter(rec: Path) -> RecordingSpanExporter:
    return RecordingSpanExporter(rec)


@pytest.fixture
def provider(exporter: RecordingSpanExporter) -> Iterator[TracerProvider]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Batch(exporter))
    yield provider
    provider.shutdown()


def start(provider: TracerProvider, name: str, above: trace.Span | None = None, **attributes: Any) -> trace.Span:
    context = trace.set_span_in_context(above) if above is not None else None
    return provider.get_tracer("app").start_span(name, context=context, attributes=attributes)


def test_an_agent_in_one_batch_reads_as_if_seen_live(provider: TracerProvider, rec: Path) -> None:
    agent = start(provider, "agent", **AGENT)
    node = start(provider, "graph node", agent)
    model = start(provider, "chat", node, **CHAT)
    request = provider.get_tracer("opentelemetry.instrumentation.httpx").start_span(
        "POST",
        trace.set_span_in_context(model),
        trace.SpanKind.CLIENT,
        {"http.request.method": "POST", "http.response.status_code": 429},
    )
    request.end()
    second = provider.get_tracer("opentelemetry.instrumentation.httpx").start_span(
        "POST",
        trace.set_span_in_context(model),
        trace.SpanKind.CLIENT,
        {"http.request.method": "POST", "http.response.status_code": 200},
    )
    second.end()
    for span in (model, node, agent):
        span.end()
    provider.force_flush()
    assert types(rec) == ["NODE_RECORDED", "RUN_ENDED"]
    (record,) = read_nodes(rec)
    assert (record.agent_name, record.retries) == ("a", [{"statusCode": 429}])
    (told,) = events(rec, "NODE_RECORDED")
    assert told["trace"]["path"] == [f"{agent.get_span_context().span_id:016x}"]
    (run,) = fold(Recording(rec)).runs
    assert run.complete


@pytest.mark.parametrize("order", ["children first", "the step outlives what stands above it"])
def test_parents_may_come_in_later_batches_or_earlier_ones(provider: TracerProvider, rec: Path, order: str) -> None:
    agent = start(provider, "agent", **AGENT)
    outer = start(provider, "graph", agent)
    inner = start(provider, "graph node", outer)
    model = start(provider, "chat", inner, **CHAT)
    ends = [model, inner, outer, agent] if order == "children first" else [inner, outer, model, agent]
    for span in ends:
        span.end()
        provider.force_flush()
    (record,) = read_nodes(rec)
    assert record.agent_name == "a"
    (run,) = fold(Recording(rec)).runs
    assert (run.complete, run.agent) == (True, "a")


def test_attempts_wait_for_their_call(provider: TracerProvider, rec: Path) -> None:
    model = start(provider, "chat", **CHAT)
    http = provider.get_tracer("opentelemetry.instrumentation.httpx")
    for status in (500, 503, 200):
        attributes = {"http.request.method": "POST", "http.response.status_code": status}
        http.start_span("POST", trace.set_span_in_context(model), trace.SpanKind.CLIENT, attributes).end()
        provider.force_flush()
    model.end()
    provider.force_flush()
    (record,) = read_nodes(rec)
    assert record.retries == [{"statusCode": 500}, {"statusCode": 503}]


@pytest.mark.parametrize("first", ["exporter", "processor"])
@pytest.mark.parametrize("kind", [SimpleSpanProcessor, Batch])
def test_what_a_processor_saw_is_left_to_it(
    rec: Path, first: str, kind: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    processors = [kind(RecordingSpanExporter(rec)), AgentRecSpanProcessor(rec)]
    for processor in processors if first == "exporter" else reversed(processors):
        provider.add_span_processor(processor)
    early = start(provider, "chat", **CHAT)
    start(provider, "execute_tool", early, **TOOL).end()
    early.end()
    start(provider, "nothing").end()
    provider.shutdown()
    assert types(rec) == ["NODE_STARTED", "NODE_STARTED", "NODE_RECORDED", "NODE_RECORDED"]
    assert verify(rec).end == "proven_close"
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        line == "otel-agentrec: already recording through AgentRecSpanProcessor: the exporter agentrec changes nothing"
    )


def test_a_span_whose_start_nobody_saw_is_written_once(rec: Path) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(RecordingSpanExporter(rec)))
    early = start(provider, "chat", **CHAT)
    provider.add_span_processor(AgentRecSpanProcessor(rec))
    early.end()
    provider.shutdown()
    assert types(rec) == ["NODE_RECORDED"]


def test_a_long_queue_is_remembered(rec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A span waits behind all others of the queue before it is exported: it must still be known as seen."""
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "6000")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(AgentRecSpanProcessor(rec))
    exporter = RecordingSpanExporter(rec)
    given: list[Any] = []
    provider.add_span_processor(
        type("Keep", (SimpleSpanProcessor,), {"on_end": lambda self, span: given.append(span)})(exporter)
    )
    tracer = provider.get_tracer("app")
    for _ in range(6_000):
        tracer.start_span("chat", attributes=CHAT).end()
    exporter.export(given)
    provider.shutdown()
    assert len(events(rec, "NODE_RECORDED")) == 6_000


class TestLogRecords:
    def emit(self, provider: Any, span: trace.Span, name: str = DETAILS) -> None:
        context = trace.set_span_in_context(span)
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": SAID}
        provider.get_logger("app").emit(LogRecord(event_name=name, attributes=attributes, context=context))

    def logger(self, *processors: Any) -> LoggerProvider:
        provider = LoggerProvider(shutdown_on_exit=False)
        for processor in processors:
            provider.add_log_record_processor(processor)
        return provider

    def test_one_that_came_before_its_span_is_read_with_it(self, provider: TracerProvider, rec: Path) -> None:
        logs = self.logger(SimpleLogRecordProcessor(RecordingLogExporter(rec)))
        model = start(provider, "chat", **CHAT)
        self.emit(logs, model)
        model.end()
        provider.force_flush()
        logs.shutdown()
        (record,) = read_nodes(rec)
        assert record.output_text == "Good day."

    @pytest.mark.parametrize("first", ["exporter", "processor"])
    @pytest.mark.parametrize("kind", [SimpleLogRecordProcessor, BatchLogRecordProcessor])
    def test_one_that_a_processor_saw_counts_once(self, rec: Path, first: str, kind: Any) -> None:
        spans = AgentRecSpanProcessor(rec)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(spans)
        processors = [kind(RecordingLogExporter(rec)), AgentRecLogProcessor(spans)]
        logs = self.logger(*(processors if first == "exporter" else reversed(processors)))
        model = start(provider, "chat", **CHAT)
        self.emit(logs, model)
        self.emit(logs, model, "gen_ai.evaluation.result")
        logs.force_flush()
        model.end()
        provider.shutdown()
        logs.shutdown()
        (record,) = read_nodes(rec)
        assert record.output_text == "Good day."
        assert len(events(rec, "LOG_RECORDED")) == 1

    def test_one_whose_span_never_comes_is_recorded_at_the_end(self, rec: Path) -> None:
        logs = self.logger(SimpleLogRecordProcessor(RecordingLogExporter(rec)))
        self.emit(logs, start(TracerProvider(), "chat"))
        assert not rec.exists()
        logs.shutdown()
        (told,) = events(rec, "LOG_RECORDED")
        assert told["payload"]["name"] == DETAILS

    def test_only_so_many_wait(self, rec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(exported, "MAX_LOGS", 3)
        logs = self.logger(SimpleLogRecordProcessor(RecordingLogExporter(rec)))
        for _ in range(5):
            self.emit(logs, start(TracerProvider(), "chat"))
        assert len(events(rec, "LOG_RECORDED")) == 2
        logs.shutdown()
        assert len(events(rec, "LOG_RECORDED")) == 5


def test_the_stream_is_sealed_after_the_last_exporter(rec: Path) -> None:
    spans, logs = RecordingSpanExporter(rec), RecordingLogExporter(rec)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    start(provider, "chat", **CHAT).end()
    provider.shutdown()
    assert verify(rec).exit_code == 3
    logs.shutdown()
    assert verify(rec).exit_code == 0


class TestWhatIsWrongIsSaidAndHarmsNobody:
    def lines(self, capsys: pytest.CaptureFixture[str]) -> list[str]:
        return capsys.readouterr().err.splitlines()

    def test_no_path(self, capsys: pytest.CaptureFixture[str]) -> None:
        exporter = RecordingSpanExporter()
        assert exporter.export([]) is SpanExportResult.SUCCESS
        assert exporter.force_flush()
        exporter.shutdown()
        (line,) = self.lines(capsys)
        assert line.startswith("otel-agentrec: the exporter agentrec has no path to record to: set OTEL_AGENTREC_PATH")

    @pytest.mark.parametrize("options", [{"durability": "perhaps"}, {"chain": True}])
    def test_an_option_that_can_not_be_used(
        self, rec: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any]
    ) -> None:
        assert RecordingLogExporter(rec, **options).export([]) is LogRecordExportResult.SUCCESS
        (line,) = self.lines(capsys)
        assert "records nothing" in line
        assert next(iter(options)) in line

    def test_off_is_silent(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTEL_AGENTREC_ENABLED", "false")
        assert RecordingSpanExporter("rec").recorder is None
        assert self.lines(capsys) == []

    def test_a_span_that_makes_trouble_fails_its_batch_not_the_program(
        self, exporter: RecordingSpanExporter, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert exporter.export([object()]) is SpanExportResult.FAILURE  # type: ignore[list-item]
        assert "was swallowed" in self.lines(capsys)[0]
        assert exporter.recorder is not None
        assert exporter.recorder.stats()["swallowed"] == 1


def test_after_shutdown_nothing_is_written(exporter: RecordingSpanExporter, rec: Path) -> None:
    assert exporter.recorder is not None
    exporter.recorder.shutdown()
    with (
        TracerProvider(shutdown_on_exit=False).get_tracer("app").start_as_current_span("chat", attributes=CHAT) as span
    ):
        pass
    assert exporter.export([span]) is SpanExportResult.SUCCESS  # type: ignore[list-item]
    assert not rec.exists()


def test_log_lines_of_the_program_cost_no_record(rec: Path) -> None:
    exporter = RecordingLogExporter(rec)
    logs = LoggerProvider(shutdown_on_exit=False)
    logs.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    logs.get_logger("app").emit(LogRecord(body="hello", severity_text=logging.getLevelName(20)))
    logs.shutdown()
    assert not rec.exists()
