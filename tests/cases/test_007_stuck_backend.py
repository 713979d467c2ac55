"""A backend that is stuck makes the SDK's own queue overflow: the recording does not share it, and what the wire lost is counted,
and shows in the numbers of what arrived."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from otel_agentrec import AgentRecSpanProcessor, read_nodes, verify
from otel_agentrec.journal.stamps import Stamp, stamp_of


class Stuck(SpanExporter):
    def __init__(self) -> None:
        self.freed = threading.Event()
        self.sent = 0
        self.stamps: list[Stamp | None] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.freed.wait(10)
        self.sent += len(spans)
        self.stamps += [stamp_of(span.attributes or {}) for span in spans]
        return SpanExportResult.SUCCESS


def test_all_is_recorded_though_the_exporter_is_stuck(tmp_path: Path) -> None:
    exporter = Stuck()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(AgentRecSpanProcessor(tmp_path / "rec"))
    batch = BatchSpanProcessor(exporter, max_queue_size=8, max_export_batch_size=4, schedule_delay_millis=20)
    provider.add_span_processor(batch)
    tracer = provider.get_tracer("demo")
    start = time.monotonic()
    for n in range(50):
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": f"n{n}"}
        with tracer.start_as_current_span("execute_tool t", attributes=attributes):
            pass
    took = time.monotonic() - start
    exporter.freed.set()
    provider.shutdown()
    assert took < 2
    assert exporter.sent < 50, "the queue did not overflow: this test shows nothing"
    assert [r.tool_call_id for r in read_nodes(tmp_path / "rec")] == [f"n{n}" for n in range(50)]
    assert verify(tmp_path / "rec").exit_code == 0


def test_what_a_full_queue_drops_is_counted_and_the_numbers_of_the_rest_show_the_gap(tmp_path: Path) -> None:
    exporter = Stuck()
    batch = BatchSpanProcessor(exporter, max_queue_size=8, max_export_batch_size=4, schedule_delay_millis=20)
    ours = AgentRecSpanProcessor(tmp_path / "rec", forward=[batch])
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ours)
    for n in range(50):
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": f"n{n}"}
        provider.get_tracer("demo").start_span("execute_tool t", attributes=attributes).end()
    exporter.freed.set()
    provider.shutdown()
    arrived = [stamp.seq for stamp in exporter.stamps if stamp is not None]
    recorded = [r.journal.seq for r in read_nodes(tmp_path / "rec") if r.journal is not None]
    assert len(recorded) == 50 and 0 < len(arrived) < 50
    assert ours.recorder.stats()["forward_unseen"] == 50 - len(arrived)
    assert set(arrived) < set(recorded), "each number that lacks is a span that did not arrive"
