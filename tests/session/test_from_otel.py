"""Sessions for free: what calls that name their conversation become, from real telemetry of many instrumentations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import ingest
from otel_agentrec.audit.verify import verify
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.fold import View, fold
from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.nodes.text import parsed
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.session.agent import AGENT
from otel_agentrec.session.log import SessionLog
from otel_agentrec.session.overview import open_session, overview
from otel_agentrec.session.policy import of_lane
from tests.capture.replaying import replay

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
Json = Any


def files_of(expected: Path) -> list[Path]:
    return sorted(expected.parent.glob(f"{expected.name.removesuffix('.expected.json')}.*.jsonl"))


def names_a_session(expected: Path) -> bool:
    return any(node.get("sessionId") for node in json.loads(expected.read_text())["nodes"]) and bool(files_of(expected))


SCENARIOS = [path for path in sorted(CORPUS.glob("*/*.expected.json")) if names_a_session(path)]
each_scenario = pytest.mark.parametrize(
    "expected", SCENARIOS, ids=lambda p: f"{p.parent.name}/{p.name.partition('.')[0]}"
)


def said(messages: list[Json]) -> list[Json]:
    """Messages as what was said, called and given back, however they are parted; instructions are not among them."""
    out: list[Json] = []
    for message in messages:
        role = message["role"]
        if role in ("system", "developer"):
            continue
        text = "".join(p["content"] for p in message["parts"] if p["type"] == "text").strip()
        if text:
            out.append((role, text))
        for part in message["parts"]:
            if part["type"] == "tool_call":
                out.append(("call", part.get("id"), part["name"], parsed(part.get("arguments"))))
            elif part["type"] == "tool_call_response":
                out.append(("result", part.get("id"), parsed(part.get("response", part.get("result")))))
    return out


def whole(record: NodeIoRecord) -> list[Json]:
    """The last request's messages and the reply to it."""
    calls = [("call", c["id"], c["name"], c["arguments"]) for c in record.tool_calls or ()]
    text = (record.output_text or "").strip()
    return [*said(record.inputs["messages"]), *([("assistant", text)] if text else []), *calls]


def last_of_each_lane(recording: Path) -> dict[tuple[str, str], NodeIoRecord]:
    """(session, agent's path) -> the last model call whose messages are known."""
    view = fold(Recording(recording))
    found: dict[tuple[str, str], tuple[int, NodeIoRecord]] = {}
    for s, record in view.calls():
        known = record.node_type is NodeType.MODEL and isinstance(record.inputs["messages"], list)
        if known and record.session_id:
            key = record.session_id, view.lane(s).text
            found[key] = max(found.get(key, (-1, record)), (_when(view, s), record), key=lambda pair: pair[0])
    return {key: record for key, (_, record) in found.items()}


def _when(view: View, s: Span) -> int:
    return s.end or s.start or 0


def histories(log: SessionLog) -> list[list[Json]]:
    """What a model would be given next, of each lane."""
    lanes = {str(e.payload["lane"]) for e in log.events() if e.payload.get("lane")}
    told = [said(log.project(of_lane(AGENT, lane))) for lane in sorted(lanes)]
    return [said_by(one) for one in told or [said(log.project(AGENT))]]


def check(recording: Path) -> None:
    """The projection of each lane is its last request with the reply; no message stands in a session twice.

    Lanes are compared by what they hold: an agent whose span has not ended may not have told its name yet.
    """
    right = last_of_each_lane(recording)
    sessions = {o.id: open_session(recording, o.id) for o in overview(recording)}
    assert set(sessions) == {session for session, _ in right}
    for id, log in sessions.items():
        wanted = [said_by(whole(record)) for (session, _), record in right.items() if session == id]
        assert sorted(histories(log), key=repr) == sorted(wanted, key=repr), id
        events = list(log.events())
        if not any(e.type == "CONTEXT_REPLACED" for e in events):
            kinds = ("USER_MESSAGE_APPENDED", "AGENT_REPLY_APPENDED", "TOOL_CALLED", "TOOL_RESULT_APPENDED")
            assert sum(e.type in kinds for e in events) == sum(map(len, wanted)), "each piece is one event"


def said_by(pieces: list[Json]) -> list[Json]:
    """Without what a projection makes up for calls that have no result, or were not answered."""
    return [p for p in pieces if not (p[0] == "result" and str(p[2]).startswith("interrupted"))]


@each_scenario
def test_a_session_is_the_last_request_with_its_reply(expected: Path, tmp_path: Path) -> None:
    ingest(files_of(expected), tmp_path / "rec")
    check(tmp_path / "rec")
    assert verify(tmp_path / "rec").is_valid


@each_scenario
def test_live_capture_makes_the_same(expected: Path, tmp_path: Path) -> None:
    counts = replay(files_of(expected), tmp_path / "rec")
    assert (counts["swallowed"], counts.get("sessions_behind", 0)) == (0, 0)
    check(tmp_path / "rec")
    assert verify(tmp_path / "rec").is_valid


@each_scenario
def test_what_comes_a_second_time_adds_no_message(expected: Path, tmp_path: Path) -> None:
    ingest(files_of(expected), tmp_path / "rec")
    before = {o.id: o.messages for o in overview(tmp_path / "rec")}
    ingest(files_of(expected), tmp_path / "rec")
    assert {o.id: o.messages for o in overview(tmp_path / "rec")} == before


def traces(files: list[Path], into: Path) -> Iterator[Path]:
    """The same telemetry, one file for each trace, the earliest first."""
    by_trace: dict[str, list[tuple[int, str]]] = {}
    for file in files:
        for line in file.read_text().splitlines():
            batch = json.loads(line)
            for kind, inner, many in (
                ("resourceSpans", "scopeSpans", "spans"),
                ("resourceLogs", "scopeLogs", "logRecords"),
            ):
                for resource in batch.get(kind, ()):
                    for scope in resource[inner]:
                        for item in scope[many]:
                            time = int(item.get("startTimeUnixNano") or item.get("timeUnixNano") or 0)
                            one = {kind: [{**resource, inner: [{**scope, many: [item]}]}]}
                            by_trace.setdefault(item.get("traceId", ""), []).append((time, json.dumps(one)))
    for n, lines in enumerate(sorted(by_trace.values(), key=min)):
        path = into / f"{n}.jsonl"
        path.write_text("\n".join(line for _, line in lines) + "\n")
        yield path


@each_scenario
def test_each_trace_in_a_process_of_its_own_makes_the_same(expected: Path, tmp_path: Path) -> None:
    """A process begins with nothing but the stream."""
    if "event" in expected.parent.name or "old-content" in expected.parent.name:
        pytest.skip("its log records name no trace")
    for path in traces(files_of(expected), tmp_path):
        ingest(path, tmp_path / "rec")
    check(tmp_path / "rec")
