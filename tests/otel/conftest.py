"""No test here is recorded by the recorder of another one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from otel_agentrec import otel
from otel_agentrec.capture import recorder


@pytest.fixture(autouse=True)
def nobody_records_yet() -> Iterator[None]:
    otel._said.clear()
    for one in list(recorder.RECORDERS):
        one.shutdown()
    yield
    for one in list(recorder.RECORDERS):
        one.shutdown()
