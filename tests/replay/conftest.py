"""Every test begins as a new process would: nothing records, nothing answers, no tool is declared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from otel_agentrec.capture.recorders import open_recorders
from otel_agentrec.intercept import declared, stopped
from otel_agentrec.intercept.install import uninstall


@pytest.fixture(autouse=True)
def as_new(otel_globals: None) -> Iterator[None]:
    yield
    declared.forget()
    stopped.STOPPED.clear()
    for left in open_recorders():
        left.shutdown()
    uninstall()
