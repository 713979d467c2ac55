"""Log records wait for their span."""

from __future__ import annotations

from typing import Any

from otel_agentrec.capture import spill
from otel_agentrec.capture.spans import LogView
from otel_agentrec.capture.spill import LogSpill


def test_records_come_back_by_span_in_their_order(monkeypatch: Any) -> None:
    monkeypatch.setattr(spill, "IN_MEMORY", 100)
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    told = [LogView("t", str(n % 3), f"e{n}", body={"text": "x" * 50, "b": b"\xff"}) for n in range(30)]
    with LogSpill() as held:
        for log in told:
            held.add(log)
        held.add(LogView("t", "odd", "deep", body=deep))
        assert held.of("t", "1") == [log for log in told if log.span_id == "1"]
        assert held.of("t", "0") == [log for log in told if log.span_id == "0"]
        assert [log.event_name for log in held.of("t", "odd")] == ["deep"]
        assert held.of("t", "9") == []


def test_a_record_that_was_exported_twice_counts_once() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    told = [LogView("t", "s", "gen_ai.user.message", at, body={"content": "again"}) for at in (1, 2, 1, None, None)]
    with LogSpill() as held:
        for log in [*told, LogView("t", "deep", "deep", 1, body=deep), LogView("t", "deep", "deep", 1, body=[deep])]:
            held.add(log)
        assert [log.observed_ns for log in held.of("t", "s")] == [1, 2, None, None]
        assert len(held.of("t", "deep")) == 2, "values too deep to compare are kept"
