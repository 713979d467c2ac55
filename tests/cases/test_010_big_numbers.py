"""Ids beyond 2**53: viewers that go through doubles round them, and the agent then asks for a neighbour's record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.nodes.read import read_nodes

from .case import expected, ingested

TOOLS = expected("010")["tool"]


def exact(told: Any) -> Any:
    """``int:<digits>`` of the expectation as the integer."""
    if isinstance(told, dict):
        return {key: exact(value) for key, value in told.items()}
    return int(told[4:]) if isinstance(told, str) and told.startswith("int:") else told


@pytest.mark.parametrize("want", TOOLS, ids=lambda w: w["span_id"])
def test_text_is_kept_byte_for_byte_and_integers_exact(tmp_path: Path, want: dict[str, Any]) -> None:
    case = ingested("010", tmp_path)
    record, facts = case.record(want["span_id"]), case.payloads[want["span_id"]]["facts"]
    if "arguments_raw" in want:
        assert facts["arguments"] == want["arguments_raw"]
    if "result_raw" in want:
        assert facts["result"] == want["result_raw"]
    if "arguments" in want:
        assert record.inputs["arguments"] == exact(want["arguments"])
    if "attribute_demo.i64" in want:
        assert record.attributes == {"demo.i64": exact(want["attribute_demo.i64"])}


def test_a_number_beyond_a_double_stays_text_and_a_string_a_string(tmp_path: Path) -> None:
    record = ingested("010", tmp_path).record("148f0746f839f3a1")
    assert record.inputs["arguments"] == {"order_id": 18446744073709551617, "amount": 0.1, "rate": "1E400"}
    assert record.outputs == "9007199254740993"


def test_a_strict_reader_sees_the_same_recording(tmp_path: Path) -> None:
    def refuse(token: str) -> Any:
        raise AssertionError(f"{token} is no JSON")

    def no_rounding(digits: str) -> int:
        assert abs(int(digits)) < 2**53, "a reader with doubles would round this"
        return int(digits)

    case = ingested("010", tmp_path)
    for path in (tmp_path / "rec").glob("*.jsonl"):
        for line in path.read_text().splitlines():
            json.loads(line, parse_constant=refuse, parse_int=no_rounding)
    assert case.verified.is_valid
    assert [r.to_json() for r in read_nodes(tmp_path / "rec")] == [r.to_json() for r in case.records]
