"""Recordings that are sent to servers, and servers as new."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from otel_agentrec import ingest
from otel_agentrec.demo import stage
from tests.capture.forward.sinks import HttpSink
from tests.export.test_spans import SCENARIOS
from tests.servers import built
from tests.servers.collector import Collector
from tests.servers.jaeger import Jaeger
from tests.servers.kafka import Kafka

CARD, MAIL = "4111111111111111", "ola.nordmann@example.com"
"""In what the demo's user asks: personal data, which a recording keeps unless it has a rule of its own."""


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's run: an agent, two model calls, two tool calls, in one trace."""
    recording = tmp_path_factory.mktemp("demo") / "rec"
    stage.record(recording, stage.ANSWER, f"{stage.QUESTION} Card {CARD}, mail {MAIL}.", lambda piece: None)
    return recording


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many traces of many frameworks, some with errors."""
    recording = tmp_path_factory.mktemp("many") / "rec"
    for expected in SCENARIOS[::8]:
        name = expected.name.removesuffix(".expected.json")
        ingest(sorted(expected.parent.glob(f"{name}.*.jsonl")), recording)
    return recording


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One tool call whose span has just under the 16 MiB that the files let through: its result stands there twice."""
    place = tmp_path_factory.mktemp("large")
    facts = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "dump"}
    facts["gen_ai.tool.call.result"] = "".join(f"{number:07d} " for number in range(1_000_000))
    span = {
        "traceId": "ab" * 16,
        "spanId": "cd" * 8,
        "name": "execute_tool dump",
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001000000000",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in facts.items()],
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "large"}}]}
    (place / "spans.json").write_text(
        json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]})
    )
    ingest([place / "spans.json"], place / "rec")
    return place / "rec"


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Callable[..., Collector]]:
    """Starts a Collector: name of a file in ``collector-config/``, the variables it is given; ``directory`` may name its
    folder. All are stopped at the end."""
    with ExitStack() as held:

        def start(config: str, directory: str = "collector", **variables: str) -> Collector:
            one = Collector(tmp_path / directory, built.CONFIGS / config, **variables)
            held.callback(one.stop)
            one.start()
            return one

        yield start


@pytest.fixture
def jaeger(tmp_path: Path) -> Iterator[Jaeger]:
    one = Jaeger(tmp_path / "jaeger")
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    """Not started yet."""
    one = Kafka(tmp_path / "kafka")
    try:
        yield one
    finally:
        one.stop()


@pytest.fixture
def hosted() -> Iterator[HttpSink]:
    """Stands in for a hosted backend such as Langfuse; ``came`` keeps what came, byte for byte."""
    sink = HttpSink()
    yield sink
    sink.close()
