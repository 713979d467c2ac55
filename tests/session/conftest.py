"""What the tests of sessions share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.postgres import Postgres, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for all tests of this process."""
    with running() as server:
        yield server
