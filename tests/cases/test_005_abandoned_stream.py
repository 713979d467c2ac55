"""A model's stream is left after its first chunk (a break, a closed response, a dropped object): its span is never ended.

Seen by users of streaming clients who stop reading early; the request was paid for and part of the answer was shown.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, Tracer

from otel_agentrec import AgentRecSpanProcessor, read_nodes, verify
from otel_agentrec.nodes.sinks import InMemoryIoCaptureSink

ASKED = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "demo-large",
    "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]),
}


class Stream:
    """An answer in three chunks whose span ends only when it was read to its end, as in many instrumentations."""

    def __init__(self, tracer: Tracer) -> None:
        self.n = 0
        self.span: Span = tracer.start_span("chat demo-large", attributes=ASKED)

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if self.n == 3:
            self.span.end()
            raise StopIteration
        self.n += 1
        self.span.add_event("gen_ai.choice.delta", {"content": f"tok{self.n} "})
        return self.n


class Agent:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.sink = InMemoryIoCaptureSink()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(AgentRecSpanProcessor(path, sinks=[self.sink]))
        self.tracer = self.provider.get_tracer("demo")


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "rec")


@pytest.mark.parametrize("dropped", [True, False], ids=["dropped", "kept"])
def test_one_record_with_the_question_and_the_text_so_far(agent: Agent, dropped: bool) -> None:
    stream = Stream(agent.tracer)
    for _ in stream:
        break
    if dropped:
        del stream
        gc.collect()
    agent.provider.force_flush()
    agent.provider.shutdown()
    (node,) = read_nodes(agent.path)
    assert (node.status, node.output_text, node.model_id, node.input_tokens) == ("partial", "tok1 ", "demo-large", None)
    assert node.inputs["messages"][0]["parts"] == [{"type": "text", "content": "hi"}]
    assert [n.output_text for n in agent.sink.records()] == ["tok1 "]
    assert verify(agent.path).is_valid


def test_a_stream_that_ends_after_all_has_one_record_and_it_is_whole(agent: Agent) -> None:
    stream = Stream(agent.tracer)
    next(stream)
    agent.provider.shutdown()
    assert len(list(stream)) == 2
    (node,) = read_nodes(agent.path)
    assert (node.status, node.output_text) == ("ok", "tok1 tok2 tok3 ")


def test_a_stream_left_before_its_first_chunk_is_interrupted(agent: Agent) -> None:
    Stream(agent.tracer)
    gc.collect()
    agent.provider.shutdown()
    (node,) = read_nodes(agent.path)
    assert (node.status, node.output_text) == ("interrupted", None)
