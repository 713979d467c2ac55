"""The exporter that stamps: whatever the receiver does, the agent does not feel it, and every loss is counted and told."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult

from otel_agentrec import AgentRecSpanExporter, AgentRecSpanProcessor, read_nodes, verify
from otel_agentrec.capture import guard
from otel_agentrec.capture.forward import spanexporter
from otel_agentrec.cli.app import run
from otel_agentrec.journal.reader import Recording
from tests.capture.forward.sinks import GrpcSink, HttpSink, attributes, until
from tests.capture.forward.test_forward import CHAT, KEY, lines, provider

Out = pytest.CaptureFixture[str]


@pytest.fixture
def rec(tmp_path: Path) -> Path:
    return tmp_path / "rec"


def large(megabytes: int) -> dict[str, Any]:
    said = [{"role": "user", "parts": [{"type": "text", "content": "x" * (megabytes << 20)}]}]
    return {**CHAT, "gen_ai.input.messages": json.dumps(said)}


class Held(BatchSpanProcessor):
    """Exports when told to, not before."""

    def __init__(self, exporter: SpanExporter) -> None:
        super().__init__(exporter, schedule_delay_millis=3_600_000)


def both(
    rec: Path, exporter: SpanExporter, order: str, **settings: Any
) -> tuple[TracerProvider, AgentRecSpanProcessor]:
    """A recorded provider with an exporter: beside our processor, before or after it, or behind it."""
    if order == "behind":
        ours = AgentRecSpanProcessor(rec, forward=[Held(exporter)], **settings)
        return provider(ours), ours
    ours = AgentRecSpanProcessor(rec, **settings)
    processors: list[SpanProcessor] = [ours, Held(exporter)]
    return provider(*(processors if order == "after" else reversed(processors))), ours


@pytest.mark.parametrize("mode", ["written", "deferred"])
@pytest.mark.parametrize("order", ["before", "after", "behind"])
def test_each_span_arrives_with_its_stamp(rec: Path, sink: HttpSink, order: str, mode: str) -> None:
    exporter = AgentRecSpanExporter(HttpExporter(f"{sink.url}/v1/traces"))
    tracers, ours = both(rec, exporter, order, durability=mode)
    for n in range(5):
        tracers.get_tracer("app").start_span(f"chat {n}", attributes=CHAT).end()
    tracers.get_tracer("app").start_span("GET", attributes={"key": KEY}).end()
    tracers.force_flush()
    told = {s.name: attributes(s) for s in sink.spans}
    assert sorted(told) == ["GET", *(f"chat {n}" for n in range(5))]
    assert KEY not in str(told)
    for n in range(5):
        one = told[f"chat {n}"]
        line = lines(rec)[one["agentrec.stream"], one["agentrec.seq"]]
        assert (line["hash"], line["prevHash"]) == (one["agentrec.hash"], one["agentrec.prev_hash"])
    counted = ours.recorder.stats()
    assert counted["spans_sent"] == 6 and "spans_lost" not in counted
    assert counted["forwarded_unstamped" if order == "behind" else "spans_unstamped"] == 1
    tracers.shutdown()


def test_it_is_what_the_variables_ask_for(rec: Path, sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.url)
    tracers, _ = both(rec, AgentRecSpanExporter(), "after")
    tracers.get_tracer("app").start_span("chat", attributes=CHAT).end()
    tracers.shutdown()
    (told,) = sink.named("chat")
    assert told["agentrec.seq"] == 3


def test_over_grpc_batches_fit_and_what_is_too_large_goes_without_its_large_values(
    rec: Path, grpc_sink: GrpcSink, monkeypatch: pytest.MonkeyPatch, capfd: Out
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", grpc_sink.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    tracers, ours = both(rec, AgentRecSpanExporter(), "after")
    for n in range(7):
        tracers.get_tracer("app").start_span(f"chat {n}", attributes=large(1)).end()
    whole = large(5)
    tracers.get_tracer("app").start_span("too large", attributes=whole).end()
    began = time.monotonic()
    assert tracers.force_flush()  # the SDK says so whatever happens
    assert time.monotonic() - began < 8
    assert max(r.ByteSize() for r in grpc_sink.requests) <= 3 << 20
    assert sorted(s.name for s in grpc_sink.spans) == [*(f"chat {n}" for n in range(7)), "too large"]
    (told,) = grpc_sink.named("too large")
    assert told["agentrec.seq"] == max(told["agentrec.seq"] for s in grpc_sink.spans for told in [attributes(s)])
    for name, one in json.loads(told["agentrec.omitted"]).items():
        data = str(whole[name]).encode()
        assert name not in told and len(data) >= 4096
        assert one == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert {name for name, value in whole.items() if len(str(value)) < 4096} <= told.keys()
    counted = ours.recorder.stats()
    assert (counted["spans_sent"], counted["spans_reduced"]) == (8, 1) and "spans_lost" not in counted
    tracers.shutdown()
    assert capfd.readouterr().err == ""
    assert verify(rec).end == "proven_close" and len(list(read_nodes(rec))) == 8


def test_what_a_receiver_refuses_alone_goes_without_its_large_values(rec: Path, sink: HttpSink) -> None:
    sink.most = 100_000
    tracers, ours = both(rec, AgentRecSpanExporter(HttpExporter(f"{sink.url}/v1/traces")), "behind")
    tracers.get_tracer("app").start_span("large", attributes=large(1)).end()
    tracers.get_tracer("app").start_span("small", attributes=CHAT).end()
    tracers.shutdown()
    assert "agentrec.omitted" in sink.named("large")[0] and "agentrec.omitted" not in sink.named("small")[0]
    counted = ours.recorder.stats()
    assert counted["spans_reduced"] == 1 and "spans_lost" not in counted


def test_sixteen_megabytes_pass_over_http(rec: Path, sink: HttpSink) -> None:
    tracers, ours = both(rec, AgentRecSpanExporter(HttpExporter(f"{sink.url}/v1/traces")), "behind")
    tracers.get_tracer("app").start_span("large", attributes=large(16)).end()
    tracers.get_tracer("app").start_span("small", attributes=CHAT).end()
    tracers.shutdown()
    assert sorted(s.name for s in sink.spans) == ["agentrec.checkpoint", "large", "small"]
    assert ours.recorder.stats()["spans_sent"] == 3
    assert verify(rec).end == "proven_close"


@pytest.mark.parametrize("order", ["after", "behind"])
def test_nobody_there(rec: Path, order: str, monkeypatch: pytest.MonkeyPatch, capfd: Out) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    tracers, ours = both(rec, AgentRecSpanExporter(), order)
    began = time.monotonic()
    for n in range(100):
        tracers.get_tracer("app").start_span(f"chat {n}", attributes=CHAT).end()
    assert time.monotonic() - began < 20, "none of them waited for a time-out"
    tracers.shutdown()
    assert ours.recorder.stats()["spans_lost"] == 100 + (order == "behind")  # and the checkpoint
    (line,) = capfd.readouterr().err.splitlines()
    assert "spans did not reach the OTLP receiver, the first is event 3 of " in line
    assert verify(rec).end == "proven_close" and len(list(read_nodes(rec))) == 100
    if order == "behind":
        last = max(lines(rec).items())[1]["event"]
        assert last["payload"]["counters"]["spans_lost"] == 100
        assert run(["stats", str(rec)]) == 0
        assert "100 spans did not reach the OTLP receiver" in capfd.readouterr().out


def test_a_receiver_that_dies_midway_is_filled_up_by_export(
    rec: Path, sink: HttpSink, monkeypatch: pytest.MonkeyPatch, capfd: Out
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    dying = HttpSink()
    tracers, ours = both(rec, AgentRecSpanExporter(HttpExporter(f"{dying.url}/v1/traces")), "behind")
    tracers.get_tracer("app").start_span("first", attributes=CHAT).end()
    tracers.force_flush()
    dying.close()
    tracers.get_tracer("app").start_span("second", attributes=CHAT).end()
    tracers.shutdown()
    assert [s.name for s in dying.spans] == ["first"]
    assert ours.recorder.stats()["spans_lost"] == 2  # and the checkpoint
    for again in ([], ["--again"]):
        assert run(["export", str(rec), "--otlp", sink.url, *again]) == 0
    ids = {s.span_id for s in sink.spans}
    assert len(ids) == 2 and {s.span_id for s in dying.spans} < ids
    for span in sink.spans:
        told = attributes(span)
        assert lines(rec)[told["agentrec.stream"], told["agentrec.seq"]]["hash"] == told["agentrec.hash"]


def test_a_slow_receiver_does_not_slow_the_agent(rec: Path, sink: HttpSink) -> None:
    sink.delay = 1.0
    exporter = AgentRecSpanExporter(HttpExporter(f"{sink.url}/v1/traces"))
    ours = AgentRecSpanProcessor(rec, forward=[BatchSpanProcessor(exporter, schedule_delay_millis=1)])
    tracers = provider(ours)
    longest = 0.0
    for n in range(200):
        span = tracers.get_tracer("app").start_span(f"chat {n}", attributes=CHAT)
        began = time.monotonic()
        span.end()
        longest = max(longest, time.monotonic() - began)
        time.sleep(0.001)
    assert longest < 0.9
    tracers.shutdown()
    until(lambda: len(sink.spans) >= 201)
    assert len(list(read_nodes(rec))) == 200


@pytest.mark.parametrize("status", [401, 400, 503])
def test_a_receiver_that_refuses(
    rec: Path, sink: HttpSink, status: int, monkeypatch: pytest.MonkeyPatch, capfd: Out
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    sink.status = status
    tracers, ours = both(rec, AgentRecSpanExporter(HttpExporter(f"{sink.url}/v1/traces")), "after")
    for _ in range(2):
        tracers.get_tracer("app").start_span("chat", attributes=CHAT).end()
        tracers.force_flush()
    assert ours.recorder.stats()["spans_lost"] == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert status == 503 or str(status) in line


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_spans_that_a_receiver_rejects_of_a_batch_that_it_takes_are_counted(
    rec: Path, sink: HttpSink, grpc_sink: GrpcSink, protocol: str, capfd: Out
) -> None:
    inner: SpanExporter
    if protocol == "http":
        receiver, inner = sink, HttpExporter(f"{sink.url}/v1/traces")
    else:
        receiver, inner = grpc_sink, GrpcExporter(grpc_sink.url, insecure=True)  # type: ignore[assignment]
    receiver.rejects = 2
    tracers, ours = both(rec, AgentRecSpanExporter(inner), "after")
    for _ in range(5):
        tracers.get_tracer("app").start_span("chat", attributes=CHAT).end()
    tracers.force_flush()
    told = ours.recorder.stats()
    assert (told["spans_sent"], told["spans_lost"], len(receiver.requests)) == (3, 2, 1)
    assert "the receiver rejected some: too old" in capfd.readouterr().err


def test_a_receiver_that_refuses_everything_is_not_asked_for_each_span(rec: Path, sink: HttpSink) -> None:
    sink.status = 400
    tracers, ours = both(rec, AgentRecSpanExporter(HttpExporter(f"{sink.url}/v1/traces")), "after")
    for _ in range(500):
        tracers.get_tracer("app").start_span("chat", attributes=CHAT).end()
    tracers.force_flush()
    assert ours.recorder.stats()["spans_lost"] == 500 and len(sink.came) < 100


class Raising(SpanExporter):
    """Can't encode one of the spans."""

    def __init__(self) -> None:
        self.got: list[str] = []

    def export(self, spans: Any) -> SpanExportResult:
        names = [span.name for span in spans]
        if "bad" in names:
            raise UnicodeEncodeError("latin-1", "é", 0, 1, "no")
        self.got += names
        return SpanExportResult.SUCCESS


def test_what_an_exporter_raises_costs_only_the_span_that_it_is_about(rec: Path, capfd: Out) -> None:
    inner = Raising()
    tracers, ours = both(rec, AgentRecSpanExporter(inner), "after")
    for name in ("a", "b", "bad", "c", "d"):
        tracers.get_tracer("app").start_span(name, attributes=CHAT).end()
    tracers.force_flush()
    told = ours.recorder.stats()
    assert inner.got == ["a", "b", "c", "d"] and (told["spans_sent"], told["spans_lost"]) == (4, 1)
    assert "UnicodeEncodeError" in capfd.readouterr().err


def test_without_a_recorder_spans_go_out_without_their_secrets(sink: HttpSink) -> None:
    exporter = AgentRecSpanExporter(HttpExporter(f"{sink.url}/v1/traces"))
    tracers = provider(SimpleSpanProcessor(exporter))
    tracers.get_tracer("app").start_span("chat", attributes={**CHAT, "api_key": KEY}).end()
    (told,) = sink.named("chat")
    assert "agentrec.hash" not in told and KEY not in str(told)
    assert guard.PROCESS.counters.counts["spans_unstamped"] == 1


def test_a_protocol_that_is_not_known_is_said_and_spans_go_out(
    sink: HttpSink, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "pigeon")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.url)
    tracers = provider(SimpleSpanProcessor(AgentRecSpanExporter()))
    tracers.get_tracer("app").start_span("chat", attributes=CHAT).end()
    assert len(sink.named("chat")) == 1
    assert "OTEL_EXPORTER_OTLP_PROTOCOL=pigeon can't be used" in capsys.readouterr().err


def test_sizes_are_told_closely_enough(rec: Path) -> None:
    tracers = provider()
    for attributes_ in (CHAT, large(1), {"a": ["x" * 50, "ü" * 50], "n": 1, "nested": {"k": ["v"] * 20}}):  # type: ignore[list-item]
        span = tracers.get_tracer("app").start_span("s", attributes=attributes_)  # type: ignore[arg-type]
        span.add_event("e", {"text": "y" * 1000})
        span.end()
        exact = spanexporter._exact(span)  # type: ignore[arg-type]
        assert exact <= spanexporter._size(span) + 300 <= 1.1 * exact + 2_000  # type: ignore[arg-type]


def test_grpc_from_its_class_too(rec: Path, grpc_sink: GrpcSink) -> None:
    exporter = AgentRecSpanExporter(GrpcExporter(grpc_sink.url, insecure=True), most_bytes=2_000)
    tracers, _ = both(rec, exporter, "after")
    for _ in range(4):
        tracers.get_tracer("app").start_span("chat", attributes=CHAT).end()
    tracers.shutdown()
    assert len(grpc_sink.spans) == 4 and len(grpc_sink.requests) > 1
    assert len(Recording(rec).streams()) == 1
