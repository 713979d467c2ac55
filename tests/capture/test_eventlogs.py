"""Event logs of sessions (ToyAgent's) become session streams of a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import IngestReport, ingest, verify
from otel_agentrec.errors import UsageError
from otel_agentrec.journal.chain import GENESIS, HashChainedEventLog, seal
from otel_agentrec.journal.events import Event
from otel_agentrec.journal.reader import Recording, read_events

Json = Any
NAMED = 1_728_380_000_000
TALK: list[dict[str, Json]] = [
    {"seq": 1, "ts": NAMED, "type": "SESSION_STARTED", "payload": {"scenario": "step22"}},
    {"seq": 2, "ts": NAMED + 1, "type": "USER_MESSAGE_APPENDED", "payload": {"content": "我叫阿星"}},
    {"seq": 3, "type": "AGENT_REPLY_APPENDED", "payload": {"content": "你好，阿星！…"}},
    {"seq": 4, "type": "TURN_COMPLETED", "payload": {"events": 3}},
    {"seq": 5, "type": "USER_MESSAGE_APPENDED", "payload": {"content": "我叫什么名字？"}},
]


def log(path: Path, *events: Json) -> Path:
    path.write_text("".join((e if isinstance(e, str) else json.dumps(e, ensure_ascii=False)) + "\n" for e in events))
    return path


def chained(*events: Json) -> list[dict[str, Json]]:
    kept = HashChainedEventLog()
    for event in events:
        kept.append(event)
    return [{"event": link.event, "hash": link.hash, "prevHash": link.prev_hash} for link in kept.links]


def told(out: Path) -> list[Event]:
    """The session's events without the stream's own."""
    return [e for e in read_events(out) if e.stream.startswith("sessions/") and not e.type.startswith("STREAM_")]


def recorded(tmp_path: Path, *events: Json) -> tuple[list[Event], IngestReport]:
    report = ingest(log(tmp_path / "step22-events.jsonl", *events), tmp_path / "rec")
    return told(tmp_path / "rec"), report


class TestEvents:
    def test_each_has_its_number_its_time_and_its_words(self, tmp_path: Path) -> None:
        events, report = recorded(tmp_path, *TALK)
        assert [(e.seq, e.type) for e in events] == [(e["seq"], e["type"]) for e in TALK]
        assert [{k: v for k, v in e.payload.items() if k != "original"} for e in events] == [e["payload"] for e in TALK]
        assert [e.payload["original"].get("ts") for e in events] == [NAMED, NAMED + 1, None, None, None]
        assert {(e.session, e.stream) for e in events} == {("step22-events", "sessions/step22-events")}
        assert (report.sessions, report.session_events, report.stream) == (["step22-events"], 5, "")
        assert verify(tmp_path / "rec").exit_code == 0

    def test_what_was_said_can_be_erased_apart_from_the_chain(self, tmp_path: Path) -> None:
        recorded(tmp_path, *TALK)
        assert "阿星" not in (tmp_path / "rec" / "sessions" / "step22-events.jsonl").read_text()
        assert "阿星" in (tmp_path / "rec" / "sessions" / "step22-events.content.jsonl").read_text()

    @pytest.mark.parametrize(
        ("type_", "payload", "kept"),
        [
            ("USER_MESSAGE_APPENDED", "just text", {"content": "just text"}),
            (
                "TOOL_CALLED",
                {"tool": "f", "id": "c", "args": {"n": 1}},
                {"name": "f", "callId": "c", "arguments": {"n": 1}},
            ),
            ("TOOL_RESULT_APPENDED", {"callId": "c", "output": 0}, {"callId": "c", "result": 0}),
            ("APPROVAL_REQUESTED", {"id": "a", "question": "ok?"}, {"id": "a", "question": "ok?"}),
            (
                "APPROVAL_DECIDED",
                {"id": "a", "by": "eve", "approved": False},
                {"id": "a", "by": "eve", "answer": False},
            ),
            ("CONTEXT_COMPACTED", {"from": 1, "to": 3, "summary": "s"}, {"from": 1, "to": 3, "summary": "s"}),
            ("CONTEXT_REPLACED", {"messages": [{"role": "user"}]}, {"messages": [{"role": "user"}]}),
            (
                "SUBAGENT_SPAWNED",
                {"agent": "w", "task": "t", "sessionId": "s"},
                {"name": "w", "task": "t", "session": "s"},
            ),
            ("SUBAGENT_JOINED", {"name": "w", "result": [1]}, {"name": "w", "result": [1]}),
            (
                "SCHEDULED_TASK_FIRED",
                {"task": "t", "due": NAMED, "result": "r"},
                {"task": "t", "due": NAMED, "result": "r"},
            ),
            ("SESSION_FORKED", {"session": "s", "at": 3}, {"session": "s", "at": 3}),
            ("PROJECTION_SAVED", {"policy": "p", "version": 1, "upto": 3}, {"policy": "p", "version": 1, "upto": 3}),
            ("SESSION_ENDED", None, {}),
            ("TURN_COMPLETED", {"events": 3, "cost": {"usd": 1}}, {"events": 3, "attributes": {"cost": {"usd": 1}}}),
        ],
    )
    def test_every_type_under_its_own_keys(self, tmp_path: Path, type_: str, payload: Json, kept: Json) -> None:
        (event,), _ = recorded(tmp_path, {"seq": 1, "type": type_, "payload": payload})
        assert (event.type, event.payload) == (type_, {**kept, "original": {"seq": 1}})

    def test_an_event_may_name_its_session_and_its_turn(self, tmp_path: Path) -> None:
        events, report = recorded(tmp_path, *({**e, "sessionId": f"a/{e['seq'] % 2}", "turnId": "t1"} for e in TALK))
        assert report.sessions == ["a/1", "a/0"]
        assert [(e.stream, e.session, e.turn, e.payload["original"]["seq"]) for e in events] == [
            *(("sessions/a%2F0", "a/0", "t1", n) for n in (2, 4)),
            *(("sessions/a%2F1", "a/1", "t1", n) for n in (1, 3, 5)),
        ]

    def test_secrets_are_taken_out(self, tmp_path: Path) -> None:
        key = "sk-proj-" + "a1B2" * 12
        said = [{"seq": 1, "type": "USER_MESSAGE_APPENDED", "payload": {"content": f"my key is {key}"}}]
        for _ in range(2):  # and what was taken out is recognised
            events, _ = recorded(tmp_path, *said)
        assert len(events) == 1
        assert all(key not in p.read_text() for p in (tmp_path / "rec").rglob("*.jsonl"))


class TestAgain:
    def test_what_is_there_already_is_not_added_again(self, tmp_path: Path) -> None:
        recorded(tmp_path, *TALK[:3])
        before = (tmp_path / "rec" / "sessions" / "step22-events.jsonl").read_bytes()
        _, report = recorded(tmp_path, *TALK[:3])
        assert (report.session_events, report.quarantined_count) == (0, 0)
        assert (tmp_path / "rec" / "sessions" / "step22-events.jsonl").read_bytes() == before

    def test_a_log_that_grew_goes_on_where_it_ended(self, tmp_path: Path) -> None:
        recorded(tmp_path, *TALK[:3])
        events, report = recorded(tmp_path, *TALK)
        assert ([e.payload["original"]["seq"] for e in events], report.session_events) == ([1, 2, 3, 4, 5], 2)
        assert verify(tmp_path / "rec").exit_code == 0

    def test_the_next_part_of_a_log_that_was_rotated(self, tmp_path: Path) -> None:
        recorded(tmp_path, *TALK[:3])
        events, _ = recorded(tmp_path, *TALK[3:])
        assert [e.payload["original"]["seq"] for e in events] == [1, 2, 3, 4, 5]

    def test_another_log_under_the_same_name_is_refused_and_nothing_of_it_is_added(self, tmp_path: Path) -> None:
        recorded(tmp_path, *TALK[:3])
        other = {**TALK[1], "payload": {"content": "something else"}}
        events, report = recorded(tmp_path, TALK[0], other, *TALK[2:])
        assert len(events) == 3
        assert "is in" in report.quarantined[0].reason and "with other events" in report.quarantined[0].reason

    @pytest.mark.parametrize("content", ["inline", "off"])
    def test_wherever_content_goes(self, tmp_path: Path, content: Any) -> None:
        path = log(tmp_path / "s.jsonl", *TALK)
        reports = [ingest(path, tmp_path / "rec", content=content) for _ in range(2)]
        assert [r.session_events for r in reports] == [5, 0]
        assert ("阿星" in (tmp_path / "rec" / "sessions" / "s.jsonl").read_text()) is (content == "inline")
        assert not (tmp_path / "rec" / "sessions" / "s.content.jsonl").exists()


class TestBadLines:
    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ('{"seq":2,"type":"USER_', "not JSON"),
            ('{"seq":2,"payload":{}}', "it has no type"),
            ('{"seq":2,"type":"MOOD_CHANGED","payload":{}}', "'MOOD_CHANGED' is no type"),
            ('{"seq":2,"type":"STREAM_SEALED","payload":{"count":1}}', "'STREAM_SEALED' is no type"),
            ('{"seq":2,"type":"TURN_COMPLETED","payload":{"events":"three"}}', "events of TURN_COMPLETED is text"),
            ('{"seq":2,"type":"TOOL_CALLED","payload":{"arguments":{}}}', "TOOL_CALLED without name"),
            ('{"seq":2,"type":"AGENT_REPLY_APPENDED","payload":{}}', "AGENT_REPLY_APPENDED without content"),
            ('{"seq":2,"type":"TURN_COMPLETED","payload":[3]}', "the payload of TURN_COMPLETED is no object"),
            ('{"event":3,"hash":"0","prevHash":"0"}', "what is sealed is no object"),
        ],
    )
    def test_one_is_left_out_counted_and_told(self, tmp_path: Path, line: str, why: str) -> None:
        events, report = recorded(tmp_path, TALK[0], line, TALK[2])
        assert [e.type for e in events] == ["SESSION_STARTED", "AGENT_REPLY_APPENDED", "DROPPED"]
        assert (report.quarantined_count, report.quarantined[0].line) == (1, 2)
        assert why in report.quarantined[0].reason

    def test_numbers_that_are_missing_or_stand_twice_are_told(self, tmp_path: Path) -> None:
        _, report = recorded(tmp_path, TALK[0], TALK[4], TALK[3])
        assert any("3 sequence number(s) are missing" in note for note in report.notes)
        assert any("1 event(s) have a number" in note for note in report.notes)

    def test_a_file_without_any_event_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="holds no event of a session: line 1: 'X' is no type"):
            recorded(tmp_path, {"seq": 1, "type": "X", "payload": {}})
        assert not (tmp_path / "rec").exists()


class TestChains:
    def test_one_that_holds_is_said_to_hold_in_the_recording_too(self, tmp_path: Path) -> None:
        links = chained(*TALK)
        events, report = recorded(tmp_path, *links)
        assert report.notes == []
        (chain,) = report.chains
        assert chain == {
            "file": str(tmp_path / "step22-events.jsonl"),
            "links": 5,
            "valid": True,
            "head": links[4]["hash"],
        }
        assert [e.payload["original"]["hash"] for e in events] == [link["hash"] for link in links]
        (stream,) = Recording(tmp_path / "rec").sessions()
        first = stream.first()
        assert first is not None and first.payload["restoredFrom"]["chain"]["valid"] is True

    def test_a_line_that_spells_its_event_in_another_way_holds_too(self, tmp_path: Path) -> None:
        spelled = json.dumps(TALK[0], separators=(",", ":")).encode()  # not the order of canonical JSON
        line, _ = seal(GENESIS, spelled)
        _, report = recorded(tmp_path, line.decode().strip())
        assert report.chains[0]["valid"] is True

    @pytest.mark.parametrize("how", ["edited", "removed", "swapped", "unsealed"])
    def test_one_that_does_not_hold_is_said_clearly(self, tmp_path: Path, how: str) -> None:
        links: list[dict[str, Json]] = chained(*TALK)
        if how == "edited":
            links[2] = {**links[2], "event": {**TALK[2], "payload": {"content": "I never said so"}}}
        elif how == "removed":
            del links[2]
        elif how == "swapped":
            links[2], links[3] = links[3], links[2]
        else:
            links[2] = TALK[2]
        events, report = recorded(tmp_path, *links)
        (chain,) = report.chains
        assert (chain["valid"], chain["firstBrokenLine"]) == (False, 3)
        (note,) = [n for n in report.notes if "chain" in n]
        assert "the chain does not hold: it breaks at line 3" in note
        assert len(events) == len(links)  # they are recorded all the same
        (stream,) = Recording(tmp_path / "rec").sessions()
        first = stream.first()
        assert first is not None and first.payload["restoredFrom"]["chain"]["firstBrokenLine"] == 3
