"""Metrics of recording itself: seen by the real SDK, whenever it is set up, and no burden where nobody looks."""

from __future__ import annotations

import gc
import os
import timeit
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import metrics as api
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture import metrics
from otel_agentrec.capture.processors import AgentRecSpanProcessor
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.settings import Settings

COUNTED = ("records", "dropped", "swallowed", "late", "evicted", "bytes")
NAMES = (*COUNTED, "forwarded", "spans.sent", "spans.lost", "events.sent", "events.lost")
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.output.messages": "[]"}


@pytest.fixture(autouse=True)
def counts_of_its_own(otel_globals: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No instruments yet, and nothing counted."""
    from opentelemetry.metrics import _internal as inner

    monkeypatch.setattr(inner, "_PROXY_METER_PROVIDER", inner._ProxyMeterProvider())
    monkeypatch.setattr(metrics, "_made_by", None)
    monkeypatch.setattr(metrics, "timing", False)
    monkeypatch.setattr(metrics, "_watched", {})
    gc.collect()  # recorders of earlier tests retire now, not in the middle of this one
    metrics._retired.clear()
    metrics._waiting.clear()
    monkeypatch.setitem(metrics.PROCESS.counters.counts, "swallowed", 0)
    yield
    metrics._retired.clear()
    metrics._waiting.clear()


def sdk() -> InMemoryMetricReader:
    """The SDK as a program sets it up."""
    reader = InMemoryMetricReader()
    api.set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))
    return reader


def collected(reader: InMemoryMetricReader) -> dict[str, Any]:
    """Metric name -> metric, of our meter."""
    data = reader.get_metrics_data()
    scopes = [s for r in (data.resource_metrics if data else ()) for s in r.scope_metrics]
    return {m.name: m for s in scopes if s.scope.name == metrics.METER for m in s.metrics}


def values(reader: InMemoryMetricReader) -> dict[str, int]:
    found = collected(reader)
    return {name: found[f"agentrec.{name}"].data.data_points[0].value for name in NAMES}


def durations(reader: InMemoryMetricReader) -> Any:
    found = collected(reader).get(metrics.WRITE_DURATION)
    return None if found is None else found.data.data_points[0]


def work(processor: AgentRecSpanProcessor, calls: int = 1) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    for _ in range(calls):
        provider.get_tracer("agent").start_span("chat m", attributes=CHAT).end()
    return provider


@pytest.mark.parametrize("first", ["sdk", "recorder"])
def test_names_units_and_values(tmp_path: Path, first: str) -> None:
    reader = sdk() if first == "sdk" else None
    processor = AgentRecSpanProcessor(tmp_path)
    if reader is None:
        reader = sdk()
    work(processor, 3)
    stats = processor.recorder.stats()
    found = collected(reader)
    assert sorted(found) == sorted([*(f"agentrec.{name}" for name in NAMES), "agentrec.write.duration"])
    assert {name: found[f"agentrec.{name}"].unit for name in NAMES} == {
        "records": "{record}",
        "dropped": "{record}",
        "swallowed": "{exception}",
        "late": "{record}",
        "evicted": "{span}",
        "bytes": "By",
        "forwarded": "{span}",
        "spans.sent": "{span}",
        "spans.lost": "{span}",
        "events.sent": "{record}",
        "events.lost": "{record}",
    }
    assert all(m.description and m.data.is_monotonic for n, m in found.items() if n != metrics.WRITE_DURATION)
    told = {name: m.data.data_points[0].value for name, m in found.items() if n_is_counter(name)}
    assert told == {f"agentrec.{name}": stats.get(name, 0) for name in NAMES}
    assert told["agentrec.records"] >= 6 and told["agentrec.bytes"] > 1_000
    point = found["agentrec.write.duration"].data.data_points[0]
    assert found["agentrec.write.duration"].unit == "s"
    assert point.count == stats["records"], "every write was timed"
    assert 0 < point.sum < 10
    assert point.explicit_bounds[0] == 1e-05


def n_is_counter(name: str) -> bool:
    return name != metrics.WRITE_DURATION


def test_what_went_wrong_is_counted(tmp_path: Path) -> None:
    class Bad:
        def capture(self, record: object) -> None:
            raise ValueError("no")

        def close(self) -> None: ...

    reader = sdk()
    processor = AgentRecSpanProcessor(tmp_path, sinks=[Bad()])
    provider = work(processor)
    processor.recorder._journal.drop(4, "test")
    provider.shutdown()
    provider.get_tracer("agent").start_span("chat m", attributes=CHAT).end()
    found = values(reader)
    assert (found["dropped"], found["swallowed"] >= 1, found["late"] >= 1) == (4, True, True)


def test_a_counter_never_falls_though_recorders_go(tmp_path: Path) -> None:
    reader = sdk()
    with Recorder(Settings.load(path=tmp_path / "a")) as recorder:
        work(AgentRecSpanProcessor(recorder=recorder))
    before = values(reader)["records"]
    assert before
    del recorder
    gc.collect()
    assert values(reader)["records"] == before
    assert not metrics._watched
    with Recorder(Settings.load(path=tmp_path / "b")) as other:
        work(AgentRecSpanProcessor(recorder=other))
        assert values(reader)["records"] > before


def test_several_recorders_are_one_sum_and_make_their_instruments_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader = sdk()
    recorders = [Recorder(Settings.load(path=tmp_path / name)) for name in "abc"]
    for recorder in recorders:
        work(AgentRecSpanProcessor(recorder=recorder))
    assert values(reader)["records"] == sum(r.stats()["records"] for r in recorders)
    assert not caplog.records, "the SDK warns of instruments that are made twice"


def test_each_reader_gets_every_duration(tmp_path: Path) -> None:
    one, other = InMemoryMetricReader(), InMemoryMetricReader()
    api.set_meter_provider(MeterProvider([one, other], shutdown_on_exit=False))
    processor = AgentRecSpanProcessor(tmp_path)
    work(processor)
    assert durations(one).count == durations(other).count == processor.recorder.stats()["records"]


def test_without_an_sdk_nothing_is_timed_and_it_costs_nothing(tmp_path: Path) -> None:
    processor = AgentRecSpanProcessor(tmp_path)
    work(processor, 5)
    assert not metrics.timing
    assert not metrics._waiting

    def writing() -> None:  # what a write does beside writing
        begun = 1 if metrics.timing else 0
        if begun:
            metrics.wrote(begun)

    assert min(timeit.repeat(writing, number=10_000, repeat=5)) / 10_000 < 2e-6, "0.1 µs on a quiet machine"


def test_an_sdk_that_is_off_is_no_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    reader = sdk()
    work(AgentRecSpanProcessor(tmp_path))
    assert not collected(reader)
    assert not metrics.timing


def test_durations_that_nobody_collects_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = sdk()
    AgentRecSpanProcessor(tmp_path)
    for n in range(metrics.MOST + 10):
        metrics.wrote(n)
    assert durations(reader).count == metrics.MOST


def test_a_broken_counter_reaches_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = sdk()
    work(AgentRecSpanProcessor(tmp_path))

    def broken(name: str) -> int:
        raise RuntimeError(name)

    monkeypatch.setattr(metrics, "_total", broken)
    assert "agentrec.records" not in collected(reader)
    assert metrics.PROCESS.counters.counts["swallowed"] >= 1


def test_a_meter_provider_that_raises_does_not_stop_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no meters")

    api.set_meter_provider(MeterProvider(shutdown_on_exit=False))
    monkeypatch.setattr(MeterProvider, "get_meter", broken)
    processor = AgentRecSpanProcessor(tmp_path)
    work(processor)
    stats = processor.recorder.stats()
    assert (stats["nodes"], stats["swallowed.metrics"]) == (1, 1)


def test_collecting_is_not_recorded(tmp_path: Path) -> None:
    """Neither a collection nor the export of metrics by a program that traces itself comes back as events."""
    reader = sdk()
    processor = AgentRecSpanProcessor(tmp_path)
    provider = work(processor)
    before = values(reader)
    for _ in range(3):
        with provider.get_tracer("opentelemetry.instrumentation.requests").start_as_current_span("POST"):
            assert values(reader) == before


def test_a_span_collected_inside_a_measurement_does_not_block(tmp_path: Path) -> None:
    """The SDK holds a lock while it adds a measurement; a span that ends there must still be written."""
    reader = sdk()
    processor = AgentRecSpanProcessor(tmp_path)
    provider = work(processor)
    tracer = provider.get_tracer("agent")

    class Callback:
        def __call__(self, options: object) -> list[api.Observation]:
            tracer.start_span("chat m", attributes=CHAT).end()
            return [api.Observation(1)]

    api.get_meter("app").create_observable_gauge("app", [Callback()])
    before = processor.recorder.stats()["nodes"]
    collected(reader)
    assert processor.recorder.stats()["nodes"] == before + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_counts_from_nothing(tmp_path: Path) -> None:
    reader = sdk()
    processor = AgentRecSpanProcessor(tmp_path)
    work(processor, 2)
    assert values(reader)["records"] > 0
    pid = os.fork()
    if pid == 0:
        ok = False
        try:
            ok = metrics._total("records") == 0 and not metrics._waiting
        finally:
            os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
