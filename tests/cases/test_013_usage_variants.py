"""Token counts in every spelling and form; what is no count is unknown, and a real 0 stays 0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_agentrec.capture.dialects.tokens import take_usage
from otel_agentrec.journal.facts import Facts
from tests.cases.case import expected, ingested, lines

RAW = "gen_ai.response.raw"
"""An attribute that the case made up to carry a provider's payload; here its usage goes to the reader of such payloads."""


def test_each_spelling_is_read(tmp_path: Path) -> None:
    case = ingested("013", tmp_path)
    for model in expected("013")["model"]:
        record = case.record(model["span_id"])
        told = (record.input_tokens, record.output_tokens)
        if model["variant"].startswith("raw_usage"):
            raw = next(v for line in lines("013") if model["span_id"] in line for v in payloads(line, model["span_id"]))
            facts = Facts()
            take_usage(raw["usage"], facts)
            told = (facts.input_tokens, facts.output_tokens)
        assert told == (model["input_tokens"], model["output_tokens"]), model["variant"]
        assert record.model_id == model["model_id"], model["variant"]
        assert record.response_model == model.get("response_model")


def payloads(line: str, span_id: str) -> list[dict[str, object]]:
    spans = [s for r in json.loads(line)["resourceSpans"] for sc in r["scopeSpans"] for s in sc["spans"]]
    (span,) = [s for s in spans if s["spanId"] == span_id]
    return [json.loads(a["value"]["stringValue"]) for a in span["attributes"] if a["key"] == RAW]


@pytest.mark.parametrize("value", [None, -1, True, 12.5, "x", ""])
def test_what_is_no_count_is_unknown(value: object) -> None:
    facts = Facts()
    take_usage({"prompt_tokens": value, "completion_tokens": 0}, facts)
    assert (facts.input_tokens, facts.output_tokens) == (None, 0)
