"""Receivers for the tests of what goes out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.capture.forward.sinks import GrpcSink, HttpSink


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    sink = HttpSink()
    yield sink
    sink.close()


@pytest.fixture
def grpc_sink() -> Iterator[GrpcSink]:
    sink = GrpcSink()
    yield sink
    sink.close()
