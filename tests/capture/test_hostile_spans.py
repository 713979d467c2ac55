"""A span that holds the worst a program can put into it costs only itself: its neighbours are recorded, the agent goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec import AgentRecSpanProcessor, read_nodes, verify
from otel_agentrec.cli.filters import Filter, pattern
from otel_agentrec.cli.timeline import turns
from otel_agentrec.cli.wording import asked, said
from otel_agentrec.journal.normal import denormalise


class Bad:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def cycle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


HOSTILE: dict[str, Any] = {
    "a cycle": cycle,
    "10,000 levels": lambda: nested(10_000),
    "10,000 levels as text": lambda: "[" * 10_000 + "]" * 10_000,
    "50 MB": lambda: "x" * 50_000_000,
    "NUL": lambda: "a\0b",
    "lone surrogates": lambda: "\ud800\udfff\ud800",
    "NaN": lambda: float("nan"),
    "infinity": lambda: [float("inf"), -0.0],
    "a huge number": lambda: 10**5_000,
    "no text form": Bad,
    "keys that are no text": lambda: {1: {None: b"\xff"}},
    "raw bytes": lambda: b"\xff\xfe\0",
    "looks like a reference": lambda: '{"$c":"' + "0" * 64 + '","bytes":1}',
    "line breaks": lambda: "a\nb\r\n\u2028{}",
}
PLACES = [
    "gen_ai.tool.call.result",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.name",
    "gen_ai.conversation.id",
    "other",
]


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[TracerProvider]:
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(AgentRecSpanProcessor(tmp_path / "rec"))
    yield made
    made.shutdown()


def tool(provider: TracerProvider, call_id: str, attributes: dict[str, Any]) -> None:
    says = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": call_id}
    provider.get_tracer("demo").start_span("execute_tool t", attributes={**says, **attributes}).end()


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_value_costs_only_its_span(provider: TracerProvider, tmp_path: Path, what: str) -> None:
    tool(provider, "before", {})
    made = 0
    for n, place in enumerate(PLACES if what != "50 MB" else PLACES[:1]):
        try:
            tool(provider, f"hostile {n}", {place: HOSTILE[what]()})
            made += 1
        except (RecursionError, RuntimeError):  # the SDK's own start_span refuses some: then there is no span
            assert what in ("a cycle", "10,000 levels", "no text form")
    tool(provider, "after", {})
    provider.shutdown()
    found = [r.tool_call_id for r in read_nodes(tmp_path / "rec")]
    assert {"before", "after"} <= set(found) and len(found) == len(set(found))
    report = verify(tmp_path / "rec")
    assert report.exit_code == 0, report.to_json()
    assert len(found) == 2 + made, "a hostile span is recorded too, as far as it can be"


def test_half_a_character_hides_no_words(tmp_path: Path) -> None:
    half = "hello \ud83d there"
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": half}]}])
    provider = TracerProvider()
    provider.add_span_processor(AgentRecSpanProcessor(tmp_path / "rec"))
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m"}
    with provider.get_tracer("t").start_as_current_span("chat m") as span:
        span.set_attributes(attributes | {"gen_ai.input.messages": messages, "gen_ai.output.messages": messages})
    provider.shutdown()
    (node,) = read_nodes(tmp_path / "rec")
    legible = "hello \ufffd there"
    assert node.output_text == legible
    assert asked(node, 80) == f"user: {legible}" and said(node, 80) == legible
    assert Filter(grep=pattern("hello . there")).fits(node)
    ((part,),) = (message["parts"] for message in node.inputs["messages"])
    assert denormalise(part["content"]) == half  # the exact text stays
    (turn,) = turns([node], lambda record: record)
    assert turn.question == legible
