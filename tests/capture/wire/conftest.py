"""A recorder of the wire that is told exchanges by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.wire.making import Wired, wired


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Wired]:
    yield from wired(tmp_path / "rec")
