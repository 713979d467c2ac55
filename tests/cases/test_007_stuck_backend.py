"""A backend that is stuck makes the SDK's own queue overflow: the recording does not share it.

(What the wire lost, told by the recording's stamps, is the export room's half.)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from otel_agentrec import AgentRecSpanProcessor, read_nodes, verify


class Stuck(SpanExporter):
    def __init__(self) -> None:
        self.freed = threading.Event()
        self.sent = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.freed.wait(10)
        self.sent += len(spans)
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
