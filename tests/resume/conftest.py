"""Every test starts as a new process would: no attempt, no run that was stopped, no declared tools, nothing recording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_agentrec import Recorder, configure
from otel_agentrec.capture.recorders import open_recorders
from otel_agentrec.intercept import declared, stopped
from otel_agentrec.resume import attempt


@pytest.fixture(autouse=True)
def as_new() -> Iterator[None]:
    yield
    attempt.forget_attempts()
    declared.forget()
    stopped.STOPPED.clear()
    for left in open_recorders():
        left.shutdown()


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    with configure(tmp_path / "rec") as made:
        yield made
