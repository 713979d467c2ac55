"""Forwarded into this package's own receiver: what arrives reads as what was recorded, and our own bookkeeping as nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_agentrec import AgentRecSpanExporter, AgentRecSpanProcessor, read_nodes, verify
from otel_agentrec.capture.received import Receiver
from otel_agentrec.capture.serving import Access, Servers
from otel_agentrec.settings import Settings
from tests.capture.forward.test_forward import CHAT, TOOL
from tests.capture.recording import types

pytest.importorskip("uvicorn")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Servers]:
    receiver = Receiver(tmp_path / "far", Settings.load())
    servers = Servers(receiver, "127.0.0.1", 0, 0, Access())
    yield servers
    servers.stop()


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_same_records_are_there(
    tmp_path: Path, served: Servers, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    port = served.port if protocol == "http/protobuf" else served.grpc_port
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    forward = [BatchSpanProcessor(AgentRecSpanExporter())]
    provider = TracerProvider(shutdown_on_exit=False)
    ours = AgentRecSpanProcessor(near, forward=forward, events="otlp")
    provider.add_span_processor(ours)
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
        tracer.start_span("chat m", attributes=CHAT).end()
        tracer.start_span("weather", attributes=TOOL).end()
    provider.shutdown()
    counted = ours.recorder.stats()
    served.stop()
    assert counted["events_sent"] == len(types(near)) + 3  # opened, provider, sealed
    assert [r.record_id for r in read_nodes(far)] == [r.record_id for r in read_nodes(near)]
    for one, other in zip(read_nodes(near), read_nodes(far), strict=True):
        assert (one.inputs, one.outputs, one.input_tokens) == (other.inputs, other.outputs, other.input_tokens)
    assert types(far) == ["NODE_RECORDED", "NODE_RECORDED", "RUN_ENDED"], "no checkpoint, no event record"
    assert verify(far).exit_code == 0
