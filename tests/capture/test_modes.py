"""However an instrumentation is asked for content (on spans, in events, both, or through the completion hook), the records of
the same conversation are the same."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import _logs, trace
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Sampler
from opentelemetry.util import _importlib_metadata

from otel_agentrec import configure, ingest, read_nodes
from otel_agentrec.audit.verify import verify
from otel_agentrec.demo.script import Call, Turn
from otel_agentrec.demo.server import ScriptedServer
from tests.capture.recording import contents, events
from tests.test_project import PYPROJECT

openai = pytest.importorskip("openai")
genai = pytest.importorskip("opentelemetry.instrumentation.genai.openai")

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
EMIT = "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT"
HOOK = "OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK"
MODES = {
    "on spans": {CAPTURE: "SPAN_ONLY"},
    "in events": {CAPTURE: "EVENT_ONLY"},
    "on spans and in events": {CAPTURE: "SPAN_AND_EVENT"},
    "through the hook": {CAPTURE: "NO_CONTENT", HOOK: "agentrec"},
    "through the hook, with an event": {CAPTURE: "NO_CONTENT", HOOK: "agentrec", EMIT: "true"},
    "in all ways": {CAPTURE: "SPAN_AND_EVENT", HOOK: "agentrec"},
}
IDS_AND_TIMES = {
    "recordId", "nodeId", "runId", "turnId", "traceId", "spanId", "parentSpanId", "startedAtEpochMs", "capturedAtEpochMs",
    "durationMs", "journal", "responseId",
}  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
TURNS = [
    Turn(tool_calls=[Call("weather", {"city": "Zürich"}, id="call_1"), Call("weather", {"city": "東京"}, id="call_2")]),
    Turn("Sunny, then rain ☔."),
    Turn("Streamed."),
    Turn("Answered."),
    Turn(status=400),
]


def conversation(base_url: str) -> None:
    """A call with tools and its second half, a streamed one, one through Responses, one that fails."""
    client = openai.OpenAI(base_url=base_url, api_key="none", max_retries=0)
    messages: list[Any] = [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Weather? 🌦"}]
    answer = client.chat.completions.create(model="gpt-5", messages=messages, tools=TOOLS).choices[0].message
    messages.append(answer.model_dump(exclude_none=True))
    messages += [{"role": "tool", "tool_call_id": call.id, "content": f"{call.id}: ok"} for call in answer.tool_calls]
    client.chat.completions.create(model="gpt-5", messages=messages, tools=TOOLS)
    for _ in client.chat.completions.create(model="gpt-5", messages=messages[:2], stream=True):
        pass
    client.responses.create(model="gpt-5", instructions="Be brief.", input="Hello?")
    with contextlib.suppress(openai.BadRequestError):
        client.chat.completions.create(model="gpt-5", messages=messages[:2])


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Our entry points are found though the package may not be installed."""
    dist = tmp_path / "site" / "agentrec_under_test-0.dist-info"
    dist.mkdir(parents=True)
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: agentrec-under-test\nVersion: 0\n")
    groups = PYPROJECT["project"]["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups.items()]
    (dist / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(dist.parent))
    _importlib_metadata._original_entry_points_cached.cache_clear()
    yield
    _importlib_metadata._original_entry_points_cached.cache_clear()


def traces_of(path: Path) -> Path:
    """The spans of a recording's program as OTLP, beside the recording."""
    return path.with_name(f"{path.name}.traces.bin")


def logs_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.logs.bin")


Recorded = Callable[..., tuple[Path, list[dict[str, Any]]]]


@pytest.fixture
def recorded(
    otel_globals: None, installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Recorded]:
    """Have the conversation in a mode; -> where it was recorded, and the records."""

    def record(mode: str, *, sampler: Sampler | None = None, **settings: Any) -> tuple[Path, list[dict[str, Any]]]:
        path = tmp_path / mode.replace(" ", "-")
        for name in (CAPTURE, EMIT, HOOK):
            monkeypatch.delenv(name, raising=False)
        for name, value in MODES[mode].items():
            monkeypatch.setenv(name, value)
        spans, logs = TracerProvider(sampler=sampler, shutdown_on_exit=False), LoggerProvider(shutdown_on_exit=False)
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", spans)
        monkeypatch.setattr(_logs._internal, "_LOGGER_PROVIDER", logs)
        exported = InMemorySpanExporter(), InMemoryLogRecordExporter()
        spans.add_span_processor(SimpleSpanProcessor(exported[0]))
        logs.add_log_record_processor(SimpleLogRecordProcessor(exported[1]))
        instrumentor = genai.OpenAIInstrumentor()
        with configure(path, **settings) as recorder, ScriptedServer(TURNS) as server:
            instrumentor.instrument()
            try:
                conversation(server.base_url)
            finally:
                instrumentor.uninstrument()
            assert recorder.stats()["swallowed"] == 0
        assert verify(path).is_valid
        files = traces_of(path), logs_of(path)
        files[0].write_bytes(encode_spans(exported[0].get_finished_spans()).SerializeToString())
        files[1].write_bytes(encode_logs(exported[1].get_finished_logs()).SerializeToString())
        return path, [one.to_json() for one in read_nodes(path)]

    yield record


def alike(records: list[dict[str, Any]]) -> str:
    """The records without ids and times, also those among the attributes."""
    kept = [{key: value for key, value in one.items() if key not in IDS_AND_TIMES} for one in records]
    for one in kept:
        told = one["attributes"] or {}
        one["attributes"] = {
            k: v for k, v in told.items() if k not in ("server.port", "gen_ai.response.time_to_first_chunk")
        }
    return json.dumps(kept, ensure_ascii=False, indent=1, sort_keys=True)


def test_the_records_are_the_same_in_every_mode(recorded: Recorded) -> None:
    _, expected = recorded("on spans")
    assert [(one["nodeType"], one["status"]) for one in expected] == [
        ("MODEL", "ok"), ("TOOL", "ok"), ("TOOL", "ok"), ("MODEL", "ok"), ("MODEL", "ok"), ("MODEL", "ok"),
        ("MODEL", "error"),
    ]  # fmt: skip
    assert expected[5]["inputs"]["systemInstructions"] == [{"type": "text", "content": "Be brief."}]
    for mode in MODES:
        if mode != "on spans":
            assert alike(recorded(mode)[1]) == alike(expected), mode


@pytest.mark.parametrize("mode", ["on spans", "in events", "on spans and in events"])
def test_ingested_they_are_the_same_as_live(recorded: Recorded, tmp_path: Path, mode: str) -> None:
    path, expected = recorded(mode)
    files = [file for file in (logs_of(path), traces_of(path)) if file.stat().st_size]
    report = ingest(files, tmp_path / "ingested")
    assert report.logs_recorded == report.quarantined_count == 0
    records = [one.to_json() for one in read_nodes(tmp_path / "ingested")]
    assert alike(records) == alike(expected)
    for one in (*records, *expected):
        del one["journal"]
    assert records == expected, "also their ids and times"


@pytest.mark.parametrize("has_event", [False, True])
def test_the_hook_tells_of_traces_that_are_not_sampled(recorded: Recorded, has_event: bool) -> None:
    _, expected = recorded("on spans")
    path, records = recorded("through the hook, with an event" if has_event else "through the hook", sampler=ALWAYS_OFF)
    for one, other in zip(records, expected, strict=True):
        assert one["inputs"].keys() == other["inputs"].keys()
        for key in ("messages", "systemInstructions", "tools", "arguments"):
            assert one["inputs"].get(key) == other["inputs"].get(key)
        for key in ("nodeType", "outputs", "outputText", "toolCalls"):
            assert one[key] == other[key]
        if one["nodeType"] == "MODEL":
            assert (one["modelId"], one["inputTokens"]) == (
                (other["modelId"], other["inputTokens"]) if has_event else (None, None)
            )
    assert records[-1]["status"] == ("error" if has_event else "interrupted"), "a call without an answer is not ok"
    assert events(path, "LOG_RECORDED") == [], "the event says nothing that the hook did not"


def test_content_off_wins_over_the_hook(recorded: Recorded) -> None:
    path, records = recorded("through the hook", content="off")
    assert {one["outputText"] for one in records} == {None}
    assert contents(path) == ""
