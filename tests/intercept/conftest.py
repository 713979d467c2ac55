"""The points are on during a test of this folder that asks for them, and nobody answers or watches afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from otel_agentrec.intercept import install
from otel_agentrec.intercept.active import using
from tests.intercept.wire import Watcher


@pytest.fixture
def points() -> Iterator[None]:
    install.install()
    yield
    install.uninstall()


@pytest.fixture
def watcher(points: None) -> Iterator[Watcher]:
    watching = Watcher()
    with using(wire=watching):
        yield watching
