"""Work that never comes to an end is left behind, also where no thread can be started any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from otel_agentrec import AgentRecSpanExporter, AgentRecSpanProcessor, verify
from otel_agentrec.capture.forward import outlets, sealed
from otel_agentrec.capture.forward.aside import Aside
from tests.capture.forward.test_forward import CHAT, provider


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """Set when the test is over."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def at_the_end(monkeypatch: pytest.MonkeyPatch) -> Any:
    """From now on as at the end of an interpreter."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    return lambda: monkeypatch.setattr(threading.Thread, "start", start)


def test_its_result_is_that_of_the_work(at_the_end: Any) -> None:
    aside = Aside()
    assert aside.within(5, lambda: threading.current_thread().name) == "otel-agentrec-aside"
    assert aside.within(5, lambda: 1 // 0) is None
    at_the_end()
    assert aside.within(5, lambda: "the same thread again") == "the same thread again"


def test_what_hangs_is_left_behind(never: threading.Event, at_the_end: Any) -> None:
    aside = Aside()
    assert aside.within(0.05, never.wait) is None
    assert aside.within(5, lambda: "another thread") == "another thread"
    at_the_end()
    assert aside.within(0.05, never.wait) is None
    assert aside.within(5, lambda: threading.current_thread() is threading.main_thread()) is True


class HangingSpans(SpanExporter):
    def __init__(self, never: threading.Event) -> None:
        self._never = never

    def export(self, spans: Any) -> SpanExportResult:
        self._never.wait()
        return SpanExportResult.SUCCESS


class HangingEvents(InMemoryLogRecordExporter):
    def __init__(self, never: threading.Event) -> None:
        super().__init__()
        self._never = never

    def export(self, batch: Any) -> LogRecordExportResult:
        self._never.wait()
        return LogRecordExportResult.SUCCESS

    def shutdown(self) -> None:
        pass


@pytest.mark.parametrize("what", ["spans", "events"])
def test_a_recording_ends_whatever_hangs_behind_it(
    tmp_path: Path, never: threading.Event, what: str, at_the_end: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlets, "PATIENCE", 0.2)
    monkeypatch.setattr(sealed, "_wanted_of_all", False)
    if what == "spans":
        inner = BatchSpanProcessor(AgentRecSpanExporter(HangingSpans(never)), schedule_delay_millis=3_600_000)
        ours = AgentRecSpanProcessor(tmp_path / "rec", forward=[inner])
    else:
        ours = AgentRecSpanProcessor(tmp_path / "rec", events=HangingEvents(never))
    provider(ours).get_tracer("app").start_span("chat m", attributes=CHAT).end()
    at_the_end()
    began = time.monotonic()
    ours.recorder.shutdown()
    assert time.monotonic() - began < 3
    assert verify(tmp_path / "rec").exit_code == 0
