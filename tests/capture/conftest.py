"""Each test of the live edge begins with a process that has swallowed nothing yet."""

from __future__ import annotations

import pytest

from otel_agentrec.capture import guard


@pytest.fixture(autouse=True)
def nothing_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard.PROCESS, "counters", guard.Counters())
    monkeypatch.setattr(guard.PROCESS, "notices", guard.Notices())
