"""What it costs to hand spans on with their stamps: beside recording them, and beside handing them on as they are."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from benchmarks.recording import Nowhere, each, foreign_spans, model_spans

ROWS = ("forwarded 6 KB", "forwarded foreign")


def rows(quick: bool) -> Iterator[tuple[str, float]]:
    from otel_agentrec import AgentRecSpanProcessor

    class Drop(SpanProcessor):
        """Takes spans and does nothing."""

    with tempfile.TemporaryDirectory() as scratch:
        batch = BatchSpanProcessor(Nowhere(), max_queue_size=100_000, schedule_delay_millis=50)
        alone = AgentRecSpanProcessor(str(Path(scratch) / "alone"), sessions=False)
        forwarding = AgentRecSpanProcessor(str(Path(scratch) / "forwarding"), sessions=False, forward=[Drop()])
        taken: dict[str, list[float]] = {}
        for turn in range(4 if quick else 12):
            for name, seconds in (
                ("batch", each(batch.on_end, foreign_spans(None))),
                ("foreign", each(forwarding.on_end, foreign_spans(forwarding))),
                ("alone", each(alone.on_end, model_spans(6_000, turn, alone))),
                ("forwarded", each(forwarding.on_end, model_spans(6_000, turn, forwarding))),
            ):
                taken.setdefault(name, []).append(seconds)
        cost = {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}
        yield ROWS[0], cost["forwarded"] / cost["alone"]
        yield ROWS[1], cost["foreign"] / cost["batch"]
        alone.shutdown()
        forwarding.shutdown()
        batch.shutdown()
