"""What a program really sends while it runs: kept as a Collector keeps it, it is whole, and agrees with the recording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_agentrec import AgentRecSpanProcessor, verify

from ...capture.forward.sinks import HttpSink
from ...journal.build import GENESIS, seal

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5", "gen_ai.conversation.id": "chat-1"}


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    sink = HttpSink()
    yield sink
    sink.close()


def frames(requests: list[Any]) -> bytes:
    """As the Collector's file exporter writes protobuf: each message after its length."""
    messages = [request.SerializeToString() for request in requests]
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


@pytest.fixture
def sent(sink: HttpSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    """A recording, the file with its spans, the file with its events."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.url)
    forward = [BatchSpanProcessor(OTLPSpanExporter())]
    ours = AgentRecSpanProcessor(tmp_path / "rec", forward=forward, events="otlp")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ours)
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("invoke_agent clerk", attributes={"gen_ai.operation.name": "invoke_agent"}):
        for n in range(4):
            with (
                tracer.start_as_current_span("GET /"),
                tracer.start_as_current_span("chat gpt-5", attributes=CHAT) as span,
            ):
                span.set_attribute("gen_ai.usage.output_tokens", n)
    provider.shutdown()
    (tmp_path / "spans").write_bytes(frames(sink.requests))
    (tmp_path / "events").write_bytes(frames(sink.log_requests))
    return tmp_path / "rec", tmp_path / "spans", tmp_path / "events"


def test_the_events_are_whole(sent: tuple[Path, Path, Path]) -> None:
    recording, _, events = sent
    report, own = verify(events), verify(recording)
    reports = {r.file: r for r in report.streams or ()}
    (process,) = [r for r in own.streams or () if not (r.file or "").startswith("sessions/")]
    found = reports[str(process.file).removesuffix(".jsonl")]
    assert (found.exit_code, found.end, found.events) == (0, "proven_close", process.events)
    assert report.is_valid


def test_the_recording_agrees_with_both(sent: tuple[Path, Path, Path]) -> None:
    recording, spans, events = sent
    own = verify(recording)
    report = verify(recording, against=[spans, events])
    assert (report.exit_code, report.kind) == (own.exit_code, own.kind)
    told = report.against
    assert told is not None
    assert told["differences"] == []
    assert (told["nodes"], told["witnessed"], told["covered"]) == (4, 4, 4)
    assert told["checkpoints"] >= 1
    assert told["foreign"] == 4, "the HTTP spans"


def write_anew(stream: Path) -> None:
    """Another number of tokens in one call, and every line sealed again; the index is left as it is."""
    prev, out = GENESIS, []
    for line in stream.read_bytes().splitlines():
        sealed, prev = seal(prev, line[9:-153].replace(b'"outputTokens":2', b'"outputTokens":3'))
        out.append(sealed)
    assert b"".join(out) != stream.read_bytes()
    stream.write_bytes(b"".join(out))


def test_a_line_that_was_written_anew_is_contradicted(sent: tuple[Path, Path, Path]) -> None:
    recording, spans, events = sent
    (path,) = [p for p in recording.glob("2*.jsonl") if not p.name.endswith(".content.jsonl")]
    write_anew(path)
    for kept in (spans, events):
        report = verify(recording, against=kept)
        assert report.exit_code == 4
        assert report.against is not None
        assert report.against["differences"][0]["what"] == "hash"
