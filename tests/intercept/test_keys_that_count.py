"""An effect of unknown outcome may be made again with its key, as long as the service still knows that key."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from otel_agentrec.intercept import declared
from otel_agentrec.intercept.recording_tools import RecordingTools
from otel_agentrec.intercept.unknown import Again, UnknownEffect

HOUR = 3600


@pytest.fixture(autouse=True)
def pay() -> Iterator[None]:
    declared.declare("pay", declared.Declared(True, "key", 23 * HOUR))
    yield
    declared.forget()


@pytest.mark.parametrize(
    ("age", "counts"),
    [(1, True), (22 * HOUR, True), (24 * HOUR, False), (-5, True), (-2 * HOUR, False)],
    ids=["just now", "within its time", "too old", "clocks differ a little", "the clock was set back"],
)
def test_a_key_counts_for_its_time(age: float, counts: bool) -> None:
    begun = int((time.time() - age) * 1000)
    nobody: Any = None  # a key needs no journal
    again = RecordingTools().settle(nobody, UnknownEffect("e", "pay", started_ms=begun, idempotency_key="k"))
    assert again is (Again.KEY if counts else None)
