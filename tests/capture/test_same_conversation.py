"""The same conversation, told by two instrumentations in two conventions, gives the same records.

Compared is all that both of them tell, but for where a record comes from and when it was.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.capture.dialects import raw

from .test_corpus import CORPUS, records_of

Json = Any

PROVENANCE = frozenset(
    [
        "dialect",
        "attributes",
        "recordId",
        "runId",
        "turnId",
        "traceId",
        "spanId",
        "parentSpanId",
        "nodeId",
        "journal",
        "keys",
        "mergedSpanIds",
        "startedAtEpochMs",
        "capturedAtEpochMs",
        "durationMs",
    ]
)
ONE, OTHER = CORPUS / "oi-openai", CORPUS / "otel-genai-openai-span"
SCENARIOS = sorted({p.name for p in ONE.glob("*.expected.json")} & {p.name for p in OTHER.glob("*.expected.json")})


def told(record: dict[str, Json]) -> dict[str, Json]:
    """What a record tells of the call; a provider's raw answer as the messages in it, parameters one by one."""
    out = {key: value for key, value in record.items() if key not in PROVENANCE and key != "inputs"}
    out.update((f"inputs.{key}", value) for key, value in record["inputs"].items() if key != "parameters")
    out.update((f"parameters.{key}", value) for key, value in (record["inputs"].get("parameters") or {}).items())
    answer = raw.said(record["outputs"]) if isinstance(record["outputs"], dict) else None
    if answer is not None:
        out["outputs"] = [{**m, "parts": [with_parsed_arguments(p) for p in m["parts"]]} for m in answer.messages]
    return {key: value for key, value in out.items() if value is not None}


def with_parsed_arguments(part: Json) -> Json:
    return {**part, "arguments": json.loads(part["arguments"])} if part["type"] == "tool_call" else part


def differences(one: dict[str, Json], other: dict[str, Json]) -> dict[str, Json]:
    return {key: (one[key], other[key]) for key in one.keys() & other.keys() if one[key] != other[key]}


def by_session(records: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """Agents that run at once have no order among them."""
    return sorted(records, key=lambda r: (r["sessionId"] or "", r["step"] or 0, r["nodeType"], str(r["outputs"])))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda name: name.partition(".")[0])
def test_openinference_and_the_genai_conventions_agree(scenario: str, tmp_path: Path) -> None:
    ours, theirs = records_of(ONE / scenario, tmp_path / "one"), records_of(OTHER / scenario, tmp_path / "other")
    if "concurrent" in scenario:
        ours, theirs = by_session(ours), by_session(theirs)
    assert len(ours) == len(theirs)
    for one, other in zip(map(told, ours), map(told, theirs), strict=True):
        wrong = differences(one, other)
        if one["nodeType"] == "TOOL":
            arguments, called = wrong.pop("inputs.arguments", ({}, {}))
            assert arguments.items() >= called.items(), "a decorator of OpenInference fills in the defaults"
        if "stream_closed_early" in scenario:
            assert wrong.pop("finishReasons") == ([], ["error"]), "the one leaves out what the other makes up"
        if "reasoning" in scenario:
            assert wrong.pop("outputs")[0][0]["parts"][0]["type"] == "reasoning", (
                "the official one has none of the chat API"
            )
        assert wrong == {}


def test_what_is_compared() -> None:
    assert len(SCENARIOS) >= 10
