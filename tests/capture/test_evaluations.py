"""``gen_ai.evaluation.result``, as a span event or a log record, live or from files, becomes an evaluation of its call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import set_span_in_context

from otel_agentrec import ingest, read_nodes
from otel_agentrec.capture import evaluations
from otel_agentrec.capture.processors import AgentRecLogProcessor, AgentRecSpanProcessor
from otel_agentrec.capture.spans import LogView
from tests.capture.recording import events

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.output.messages": "[]"}
RESULT = {
    "gen_ai.evaluation.name": "relevance",
    "gen_ai.evaluation.score.value": 0.75,
    "gen_ai.evaluation.score.label": "pass",
    "gen_ai.evaluation.explanation": "on topic",
    "gen_ai.response.id": "r1",
}
AT = 1_767_225_600_123_000_000
SAID = {
    "name": "relevance",
    "score": 0.75,
    "label": "pass",
    "explanation": "on topic",
    "evaluatedAtEpochMs": AT // 1_000_000,
}


@pytest.fixture
def providers(tmp_path: Path) -> tuple[TracerProvider, LoggerProvider]:
    processor = AgentRecSpanProcessor(tmp_path)
    tracers, loggers = TracerProvider(shutdown_on_exit=False), LoggerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(processor)
    loggers.add_log_record_processor(AgentRecLogProcessor(processor))
    return tracers, loggers


def end(providers: tuple[TracerProvider, LoggerProvider]) -> None:
    for provider in providers:
        provider.shutdown()


def test_an_event_on_the_span(tmp_path: Path, providers: tuple[TracerProvider, LoggerProvider]) -> None:
    span = providers[0].get_tracer("agent").start_span("chat m", attributes=CHAT)
    span.add_event("gen_ai.evaluation.result", RESULT, timestamp=AT)
    span.end()
    end(providers)
    (record,) = read_nodes(tmp_path)
    assert record.evaluations == [SAID]


@pytest.mark.parametrize("when", ["open", "ended"])
def test_a_log_record_that_names_the_span(
    tmp_path: Path, providers: tuple[TracerProvider, LoggerProvider], when: str
) -> None:
    span = providers[0].get_tracer("agent").start_span("chat m", attributes=CHAT)
    if when == "ended":
        span.end()
    providers[1].get_logger("evaluator").emit(
        LogRecord(
            timestamp=AT,
            context=set_span_in_context(span),
            event_name="gen_ai.evaluation.result",
            attributes=RESULT,
        )
    )
    span.end()
    end(providers)
    (record,) = read_nodes(tmp_path)
    assert record.evaluations == [SAID]
    (event,) = events(tmp_path, "EVALUATED")
    assert not events(tmp_path, "LOG_RECORDED")
    assert "on topic" not in json.dumps(event), "an explanation is content"
    assert event["payload"]["attributes"].keys() == {"$c", "bytes"}, "what else was said is kept"


def otlp(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    def value(of: Any) -> dict[str, Any]:
        return {"doubleValue": of} if isinstance(of, float) else {"stringValue": of}

    return [{"key": key, "value": value(of)} for key, of in attributes.items()]


def test_both_forms_from_files_and_exported_twice(tmp_path: Path) -> None:
    ids = {"traceId": "ab" * 16, "spanId": "cd" * 8}
    span = {
        **ids,
        "name": "chat m",
        "startTimeUnixNano": str(AT),
        "endTimeUnixNano": str(AT + 5),
        "attributes": otlp(CHAT),
        "events": [{"name": "gen_ai.evaluation.result", "timeUnixNano": str(AT), "attributes": otlp(RESULT)}],
    }
    log = {
        **ids,
        "eventName": "gen_ai.evaluation.result",
        "timeUnixNano": str(AT + 1_000_000),
        "attributes": otlp({**RESULT, "gen_ai.evaluation.name": "tone"}),
    }
    traces, logs = tmp_path / "traces.jsonl", tmp_path / "logs.jsonl"
    traces.write_text(
        json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "a"}, "spans": [span]}]}]}) + "\n"
    )
    logs.write_text(
        json.dumps({"resourceLogs": [{"scopeLogs": [{"scope": {"name": "e"}, "logRecords": [log]}]}]}) + "\n"
    )
    for _ in range(2):
        ingest([traces, logs], tmp_path / "rec")
    (record,) = read_nodes(tmp_path / "rec")
    assert [(e["name"], e["evaluatedAtEpochMs"]) for e in record.evaluations] == [
        ("relevance", AT // 1_000_000),
        ("tone", AT // 1_000_000 + 1),
    ]


@pytest.mark.parametrize(
    "log",
    [
        LogView("ab" * 16, "cd" * 8, "gen_ai.choice", attributes=RESULT),
        LogView("ab" * 16, None, "gen_ai.evaluation.result", attributes=RESULT),
        LogView("ab" * 16, "cd" * 8, "gen_ai.evaluation.result", attributes={"gen_ai.evaluation.name": 5}),
        LogView("ab" * 16, "cd" * 8, "gen_ai.evaluation.result"),
    ],
    ids=["another event", "no span", "no name", "nothing"],
)
def test_what_can_not_be_placed_is_recorded_as_it_is(log: LogView) -> None:
    assert evaluations.of_log(log) is None
