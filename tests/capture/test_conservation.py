"""Nothing that messages, arguments and results of real telemetry say is lost on the way to the records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.capture.dialects import read
from otel_agentrec.capture.dialects.values import loaded
from otel_agentrec.capture.otlp import OtlpFile
from otel_agentrec.capture.spans import SpanView
from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.text import parsed

from .test_corpus import SCENARIOS, records_of

Json = Any

SAID = (
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
    "llm.input_messages.",
    "llm.output_messages.",
    "input.value",
    "output.value",
    "events",
    "tool_arguments",
    "tool_response",
    "ai.prompt.messages",
    "ai.response.text",
    "ai.response.reasoning",
    "ai.response.toolCalls",
    "ai.toolCall.args",
    "ai.toolCall.result",
    "langfuse.observation.input",
    "langfuse.observation.output",
    "gen_ai.prompt.",
    "gen_ai.completion.",
    "traceloop.entity.input",
    "traceloop.entity.output",
    "anthropic.tool_result.content",
    "raw_input",
    "response",
)
ENUMS = ("type", "kind", "role", "finish_reason", "status", "mime_type", "object", "event.name", "gen_ai.system")
"""Keys whose values are words of a convention; they may be said in another way."""


def leaves(value: Json) -> Iterator[str]:
    """All strings in a value, JSON text read as what it says."""
    value = loaded(value)
    if isinstance(value, str) and value[:1] == value[-1:] == '"' and len(value) > 1:
        value = parsed(value)  # some frameworks write every result as JSON
    if isinstance(value, str):
        yield value.rpartition(";base64,")[2]  # a data URL is taken apart
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in ENUMS:
                yield from leaves(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from leaves(inner)


def said(span: SpanView, kind: str) -> Iterator[str]:
    for key, value in span.attributes.items():
        request = key == "input.value" and kind == Kind.MODEL  # once more what the messages say, in the words of an API
        if key.startswith(SAID) and not key.endswith(ENUMS) and not request and value != "null":
            yield from leaves(value)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda p: f"{p.parent.name}/{p.name.partition('.')[0]}")
def test_every_word_stands_in_a_record(scenario: Path, tmp_path: Path) -> None:
    records = records_of(scenario, tmp_path / "rec")
    kept = set(leaves(records))
    inside = "\n".join(kept)
    for path in scenario.parent.glob(f"{scenario.name.partition('.')[0]}.traces.jsonl"):
        for batch in OtlpFile(path).batches():
            for span in batch.spans:
                reading = read(span)
                if reading is not None and reading[0] in (Kind.MODEL, Kind.TOOL):
                    lost = {text for text in said(span, reading[0]) if text not in kept and text not in inside}
                    assert not lost, span.name
