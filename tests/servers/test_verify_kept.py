"""A program forwards while it runs, through a real Collector, to a file and to Jaeger: what they kept verifies, and tells on
whoever writes the recording anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_agentrec import AgentRecSpanProcessor, ingest, read_nodes, verify
from tests.export.kept.test_forwarded import CHAT, write_anew
from tests.servers import built
from tests.servers.collector import Collector
from tests.servers.jaeger import Jaeger
from tests.servers.program import get

pytestmark = pytest.mark.servers

EVIDENCE = Path("evidence") / "otlp.jsonl"
Start = Callable[..., Collector]


def run_agent(recording: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent of four model calls, with forwarded spans, checkpoints and events."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    forward = [BatchSpanProcessor(OTLPSpanExporter())]
    provider = TracerProvider(resource=Resource({"service.name": "clerk"}), shutdown_on_exit=False)
    provider.add_span_processor(AgentRecSpanProcessor(recording, forward=forward, events="otlp", sessions=False))
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("invoke_agent clerk", attributes={"gen_ai.operation.name": "invoke_agent"}):
        for n in range(4):
            tracer.start_span("chat gpt-5", attributes={**CHAT, "gen_ai.usage.output_tokens": n}).end()
    provider.shutdown()


def test_live_through_a_collector_to_a_file_and_to_jaeger(
    collector: Start, jaeger: Jaeger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, answer, older = tmp_path / "rec", tmp_path / "jaeger.json", tmp_path / "older.json"
    one = collector("redaction.yaml", JAEGER_OTLP=jaeger.otlp_url)
    run_agent(recording, one.http_url, monkeypatch)
    jaeger.wait_for("clerk", 6)  # with the checkpoint
    one.stop()
    evidence = one.directory / EVIDENCE
    answer.write_bytes(jaeger.answer("clerk"))
    older.write_bytes(get(f"{jaeger.query_url}/api/traces?service=clerk"))

    events = verify(evidence)
    assert (events.exit_code, events.end, events.events) == (0, "proven_close", verify(recording).events)
    for kept in (evidence, answer, older):
        report = verify(recording, against=kept, level="anchored")
        assert (report.exit_code, report.level) == (0, "anchored")
        assert report.against is not None
        assert (report.against["nodes"], report.against["witnessed"], report.against["checkpoints"]) == (4, 4, 1)

    for kept in (answer, older):
        ingest(kept, tmp_path / kept.stem)
        assert [r.record_id for r in read_nodes(tmp_path / kept.stem)] == [r.record_id for r in read_nodes(recording)]

    data = evidence.read_bytes()
    (tmp_path / "half.jsonl").write_bytes(data + data[: data.index(b"\n") // 2])
    assert verify(tmp_path / "half.jsonl").exit_code == 0

    (stream,) = [p for p in recording.glob("2*.jsonl") if not p.name.endswith(".content.jsonl")]
    write_anew(stream)
    for kept in (evidence, answer, older):
        report = verify(recording, against=kept)
        assert report.exit_code == 4
        assert report.against is not None
        assert {(d["kind"], d["what"], d["stream"]) for d in report.against["differences"]} == {
            ("history_rewritten", "hash", stream.stem)
        }


def test_a_file_of_protobuf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (built.CONFIGS / "evidence-file.yaml").read_text("utf-8")
    config = tmp_path / "proto.yaml"
    config.write_text(text.replace("    append: true", "    format: proto\n    append: true"), encoding="utf-8")
    one = Collector(tmp_path / "collector", config)
    one.start()
    try:
        run_agent(tmp_path / "rec", one.http_url, monkeypatch)
    finally:
        one.stop()
    kept = one.directory / EVIDENCE
    assert kept.read_bytes()[:1] == b"\0", "a length, then a message"
    assert verify(kept).exit_code == 0
    assert verify(tmp_path / "rec", against=kept, level="anchored").exit_code == 0


def test_a_changed_byte_of_an_event_is_named(collector: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = collector("evidence-file.yaml")
    run_agent(tmp_path / "rec", one.http_url, monkeypatch)
    one.stop()
    lines = (one.directory / EVIDENCE).read_bytes().splitlines(keepends=True)
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(b"".join(line.replace(b'\\"outputTokens\\":2', b'\\"outputTokens\\":3') for line in lines))
    report = verify(changed)
    assert (report.exit_code, report.kind) == (1, "hash_mismatch")
    (stream,) = [p for p in (tmp_path / "rec").glob("2*.jsonl") if not p.name.endswith(".content.jsonl")]
    seq = next(n for n, line in enumerate(stream.read_bytes().splitlines()) if b'"outputTokens":2' in line)
    assert (report.file, report.seq) == (stream.stem, seq)
    assert json.loads(stream.read_bytes().splitlines()[seq])["hash"] == report.expected
