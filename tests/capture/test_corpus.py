"""Real telemetry of official instrumentations gives exactly the records that it can give.

Each expected fact is null where the telemetry does not hold it; such facts are not compared.
"""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import ingest, read_nodes
from tests.capture.replaying import replay

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
SCENARIOS = sorted(CORPUS.glob("*/*.expected.json"))

Json = Any


def records_of(expected: Path, out: Path) -> list[dict[str, Json]]:
    name = expected.name.removesuffix(".expected.json")
    paths = sorted(p for p in expected.parent.glob(f"{name}.*.jsonl"))
    if not paths:
        return []
    report = ingest(paths, out)
    assert report.quarantined_count == 0
    return [record.to_json() for record in read_nodes(out)]


def last_user_text(record: dict[str, Json]) -> str:
    """Of the last message of a user that has a text: some APIs put results of tools into messages of the user."""
    users = [m for m in record["inputs"]["messages"] or () if m["role"] == "user"]
    texts = ["".join(p["content"] for p in m["parts"] if p["type"] == "text") for m in users]
    return next(text for text in reversed(texts) if text)


def calls(record: dict[str, Json], want: dict[str, Json]) -> list[dict[str, Json]]:
    """The tool calls of a record, with the keys that the telemetry tells."""
    told = {key for call in want["toolCalls"] or () for key in call} or {"id", "name", "arguments"}
    return [{key: value for key, value in call.items() if key in told} for call in record["toolCalls"] or ()]


def model_facts(record: dict[str, Json], want: dict[str, Json]) -> dict[str, tuple[Json, Json]]:
    """What was found and what is right, by name."""
    told: dict[str, tuple[Json, Json]] = {
        "responseId": (record["responseId"], want["responseId"]),
        "provider": (record["provider"], want["provider"]),
        "retryCount": (record["retryCount"], want["retryCount"]),
        "outputText": (record["outputText"], want["outputText"]),
        "reasoningText": (record["reasoningText"], want["reasoningText"]),
        "toolCalls": (calls(record, want), want["toolCalls"]),
    }
    if want["model"]:
        named = (record["modelId"] or "").rsplit("/", 1)[-1]  # some put the provider in front
        told["modelId"] = (named, named if named in want["model"] else want["model"])
    for name in ("inputTokens", "outputTokens"):
        told[name] = (record[name], record[name] if record[name] in want[name] else next(iter(want[name]), None))
    if want["lastUserText"] is not None:
        told["lastUserText"] = (last_user_text(record), want["lastUserText"])
    return told


def named(name: str, want: str | None) -> str | None:
    """A model calls the tools of a server by a name with the server's in front."""
    return want if want is not None and name.endswith(f"__{want}") else name


def unwrapped(result: Json, want: Json) -> Json:
    """ADK gives a result that is no object as ``{"result": …}``."""
    return want if result == {"result": want} else result


def tool_facts(record: dict[str, Json], want: dict[str, Json]) -> dict[str, tuple[Json, Json]]:
    return {
        "toolName": (named(record["toolName"], want["toolName"]), want["toolName"]),
        "toolCallId": (record["toolCallId"], want["toolCallId"]),
        "arguments": (record["inputs"]["arguments"], want["arguments"]),
        "result": (unwrapped(record["outputs"], want["result"]), None if want["error"] else want["result"]),
    }


def in_cause_order(wanted: list[dict[str, Json]], records: list[dict[str, Json]]) -> bool:
    """A model call comes after all nodes before it, a tool after the call that asked for it; tools in any order."""
    place = {s: i for i, r in enumerate(records) for s in (r["spanId"], *r["mergedSpanIds"])}
    after = last = -1
    for node in wanted:
        at = next(place[s] for s in node["spanIds"] if s in place)
        if at < (last if node["type"] == "MODEL" else after):
            return False
        last = max(last, at)
        after = at if node["type"] == "MODEL" else after
    return True


@pytest.mark.parametrize("expected", SCENARIOS, ids=lambda p: f"{p.parent.name}/{p.name.partition('.')[0]}")
def test_every_record_with_every_fact_and_no_other(expected: Path, tmp_path: Path) -> None:
    right = json.loads(expected.read_text())
    wanted = [node for node in right["nodes"] if node["spanIds"]]
    records = records_of(expected, tmp_path / "rec")
    by_span = {r["spanId"]: r for r in records if r["spanId"]}
    extra = set(by_span) - {s for node in wanted for s in node["spanIds"]} - set(right["alsoAllowedSpanIds"])
    assert not extra
    for want in wanted:
        record = next(by_span[s] for s in want["spanIds"] if s in by_span)
        assert record["nodeType"] == want["type"]
        facts = (model_facts if want["type"] == "MODEL" else tool_facts)(record, want)
        facts["error"] = (record["status"] == "error", want["error"])
        facts["sessionId"] = (record["sessionId"], want["sessionId"])
        wrong = {name: pair for name, pair in facts.items() if pair[1] is not None and pair[0] != pair[1]}
        assert not wrong, want["spanIds"]
    if len(wanted) < 4 or not expected.name.startswith(("s6", "s8")):  # in those, several agents run at once
        assert in_cause_order(wanted, records)


@pytest.mark.parametrize("configuration", sorted(p.name for p in CORPUS.iterdir()))
def test_the_corpus_is_there(configuration: str) -> None:
    assert any(p.parent.name == configuration for p in SCENARIOS)


@pytest.mark.parametrize("configuration", sorted(p.name for p in CORPUS.iterdir()))
def test_live_capture_records_the_same(configuration: str, tmp_path: Path) -> None:
    """The same spans and log records through the processors. Only a live recorder knows where foreign spans were in between,
    and which of two tools that began in the same moment ended first."""
    for expected in (p for p in SCENARIOS if p.parent.name == configuration):
        files = sorted(expected.parent.glob(f"{expected.name.removesuffix('.expected.json')}.*.jsonl"))
        live, ingested = tmp_path / expected.stem, tmp_path / f"{expected.stem}.ingested"
        counts = replay(files, live)
        assert (counts["swallowed"], counts["dropped"], counts["open"]) == (0, 0, 0)
        ingest(files, ingested)
        assert records_of_recording(live) == records_of_recording(ingested), expected.name


def records_of_recording(path: Path) -> list[dict[str, Json]]:
    """The records without what differs from recording to recording (their place in the journal, their keys, which are made
    under a secret of its own), and without the flag that names spans which only files lack."""
    records = [record.to_json() for record in read_nodes(path)] if path.exists() else []
    for record in records:
        del record["journal"], record["keys"]
        record["flags"] = [flag for flag in record["flags"] if flag != "root_missing"]
    return [record for _, begun in groupby(records, _began) for record in sorted(begun, key=itemgetter("recordId"))]


def _began(record: dict[str, Json]) -> tuple[str, int]:
    return record["nodeType"], record["startedAtEpochMs"]


def test_an_answer_is_stored_once_although_the_next_call_repeats_it(tmp_path: Path) -> None:
    report = ingest(CORPUS / "otel-genai-openai-span" / "s11l_responses_loop.traces.jsonl", tmp_path)
    events = [json.loads(line)["event"] for line in (tmp_path / f"{report.stream}.jsonl").read_text().splitlines()]
    first, second = (e for e in events if e["payload"].get("type") == "MODEL")
    runs = [item[:3] for item in second["payload"]["facts"]["messages"]["$list"] if isinstance(item, list)]
    assert runs == [[first["seq"], 0, 1], [first["seq"], 0, 1]], "its input is the question and the answer of the first"


def test_a_closed_stream_is_partial(tmp_path: Path) -> None:
    (record,) = records_of(CORPUS / "otel-genai-openai-span" / "s12_stream_closed_early.expected.json", tmp_path)
    assert (record["status"], record["streamed"], record["finishReasons"]) == ("partial", True, ["error"])
    assert record["outputText"]
    assert record["outputTokens"] is None
