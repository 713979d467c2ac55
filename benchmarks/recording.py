"""What recording costs the program: ``on_end`` against the SDK's batch processor, and against the work itself."""

from __future__ import annotations

import gc
import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from benchmarks.samples import chat, message
from benchmarks.spans import FOREIGN, HeldBack, foreign_call, model_call, provider

ROWS = (
    "on_end foreign",
    "on_end unknown scope",
    "on_end deferred 6 KB",
    "on_end written 1 KB",
    "on_end written 6 KB",
    "written 6 KB over its parts",
    "redaction 6 KB",
    "records per second",
)
SPANS = 400


class Nowhere(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def each(function: Callable[[Any], object], spans: HeldBack) -> float:
    """CPU seconds per span that this thread spends."""
    gc.collect()
    gc.disable()
    try:
        start = time.thread_time()
        for span in spans.ended:
            function(span)
        return (time.thread_time() - start) / len(spans.ended)
    finally:
        gc.enable()


def model_spans(size: int, seed: int, ours: SpanProcessor | None) -> HeldBack:
    """Ended model spans with 12 messages of their own each, about ``size`` bytes together."""
    held = HeldBack(ours)
    tracers = provider(held)
    for n in range(SPANS):
        at = (seed * SPANS + n) * 100
        messages = [message("user", size // 13, at + i) for i in range(12)]
        model_call(tracers, messages, message("assistant", size // 13, at + 12), conversation=f"c{at}")
    return held


def foreign_spans(ours: SpanProcessor | None, scope: str = FOREIGN) -> HeldBack:
    held = HeldBack(ours)
    tracers = provider(held)
    for _ in range(SPANS):
        foreign_call(tracers, scope)
    return held


def parts(where: int) -> Callable[[ReadableSpan], None]:
    """The work that can't be avoided: parse the messages, write them as JSON, hash, hand to the kernel."""

    def work(span: ReadableSpan) -> None:
        facts = dict(span.attributes or {})
        for name in ("gen_ai.input.messages", "gen_ai.output.messages"):
            facts[name] = orjson.loads(facts[name])  # type: ignore[assignment, arg-type]
        line = orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)
        os.write(where, line + hashlib.sha256(line).hexdigest().encode() + b"\n")

    return work


def rows(quick: bool) -> Iterator[tuple[str, float]]:
    from otel_agentrec import AgentRecSpanProcessor

    rounds = 5 if quick else 15
    with tempfile.TemporaryDirectory() as scratch:
        batch = BatchSpanProcessor(Nowhere(), max_queue_size=100_000, schedule_delay_millis=50)
        ours = AgentRecSpanProcessor(str(Path(scratch) / "recording"))
        open_gate = AgentRecSpanProcessor(str(Path(scratch) / "unredacted"), redact="off")
        later = AgentRecSpanProcessor(str(Path(scratch) / "deferred"), durability="deferred", queue="1000000")
        plain = os.open(Path(scratch) / "plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        taken: dict[str, list[float]] = {}

        def note(name: str, seconds: float) -> None:
            taken.setdefault(name, []).append(seconds)

        for turn in range(rounds + 1):
            note("batch", each(batch.on_end, foreign_spans(None)))
            note("foreign", each(ours.on_end, foreign_spans(ours)))
            note("unknown", each(ours.on_end, foreign_spans(ours, "somebody.elses.app")))
            note("deferred", each(later.on_end, model_spans(6_000, turn, later)))
            later.force_flush()
            note("1 KB", each(ours.on_end, model_spans(1_000, turn, ours)))
            spans = model_spans(6_000, turn, ours)
            note("6 KB", each(ours.on_end, spans))
            note("6 KB, redaction off", each(open_gate.on_end, model_spans(6_000, turn, open_gate)))
            note("parts", each(parts(plain), spans))
        cost = {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}
        yield "on_end foreign", cost["foreign"] / cost["batch"]
        yield "on_end unknown scope", cost["unknown"] / cost["batch"]
        yield "on_end deferred 6 KB", cost["deferred"] / cost["batch"]
        yield "on_end written 1 KB", cost["1 KB"] / cost["batch"]
        yield "on_end written 6 KB", cost["6 KB"] / cost["batch"]
        yield "written 6 KB over its parts", cost["6 KB"] / cost["parts"]
        yield "redaction 6 KB", cost["6 KB"] / cost["6 KB, redaction off"]
        yield "records per second", sustained(ours, 2.0 if quick else 10.0)
        ours.shutdown()
        open_gate.shutdown()
        later.shutdown()
        batch.shutdown()
        os.close(plain)


def sustained(ours: SpanProcessor, seconds: float) -> float:
    """Model calls per second of wall time that one thread gets through, spans made and recorded, 6 KB each."""
    tracers = provider(ours)
    calls = [(chat(12, 460), message("assistant", 460, n)) for n in range(50)]
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for messages, reply in calls:
            model_call(tracers, messages, reply, conversation=f"s{done}")
        done += len(calls)
    return done / (time.perf_counter() - start)
