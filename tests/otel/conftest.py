"""No test here is recorded by the recorder of another one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from otel_agentrec import otel
from otel_agentrec.capture import guard, recorder


@pytest.fixture(autouse=True)
def nobody_records_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(guard.PROCESS, "counters", guard.Counters())
    monkeypatch.setattr(guard.PROCESS, "notices", guard.Notices())
    otel._said.clear()
    for one in list(recorder.RECORDERS):
        one.shutdown()
    yield
    for one in list(recorder.RECORDERS):
        one.shutdown()
