"""Recordings of other versions: a newer one reads as far as it is understood, an older one is lifted where lines are read."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from otel_agentrec.audit.verify import verify
from otel_agentrec.journal.chain import GENESIS, seal
from otel_agentrec.journal.events import UPCASTERS, Generic
from otel_agentrec.journal.reader import Recording, read_events
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.session.log import SessionLog

Json = object


def written(directory: Path, stream: str, version: str, events: list[tuple[str, dict[str, Json]]]) -> None:
    """A stream as a program of that version wrote it."""
    path = directory / f"{stream}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    prev, data = GENESIS, b""
    for seq, (type_, rest) in enumerate(events):
        id = f"00000000-0000-4000-8000-{seq:012x}"
        event = {"id": id, "v": version, "stream": stream, "seq": seq, "ts": 1, "mono": "1", "type": type_, **rest}
        line, prev = seal(prev, orjson.dumps(event, option=orjson.OPT_SORT_KEYS))
        data += line
    path.write_bytes(data)


OPENED = ("STREAM_OPENED", {"payload": {"origin": "here", "nonce": "0" * 32}})
PROCESS = "20200101T000000Z-1-0000aaaa"


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A recording of a version that said ``data`` for payload, and named some events and keys otherwise."""
    said = {"data": {"text": "My name is Star."}}
    node = {"type": "MODEL", "name": "chat", "facts": {"model": "gpt-1", "outputText": "Hi."}}
    trace = {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1"}
    opened = ("STREAM_OPENED", {"data": OPENED[1]["payload"]})
    written(tmp_path, "sessions/s1", "agentrec/0", [opened, ("USER_SAID", said)])
    written(tmp_path, PROCESS, "agentrec/0", [opened, ("NODE_RECORDED", {"data": node, "trace": trace})])
    return tmp_path


def lift(e: dict[str, Json]) -> dict[str, Json]:
    names = {"USER_SAID": "USER_MESSAGE_APPENDED"}
    payload = dict(e["data"])  # type: ignore[call-overload]
    if "text" in payload:
        payload["content"] = payload.pop("text")
    rest = {key: value for key, value in e.items() if key != "data"}
    return {**rest, "v": "agentrec/1", "type": names.get(str(e["type"]), e["type"]), "payload": payload}


def test_an_upcaster_lifts_the_streams_of_processes_and_sessions(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SessionLog.open(older, "s1").project() == [], "before it is known"
    monkeypatch.setitem(UPCASTERS, "agentrec/0", lift)
    assert SessionLog.open(older, "s1").project() == [
        {"role": "user", "parts": [{"type": "text", "content": "My name is Star."}]}
    ]
    (record,) = read_nodes(older)
    assert (record.model_id, record.output_text) == ("gpt-1", "Hi.")
    assert {e.v for e in read_events(Recording(older))} == {"agentrec/1"}


def test_versions_are_lifted_one_after_the_other(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UPCASTERS, "agentrec/0", lambda e: {**e, "v": "agentrec/0.5"})
    monkeypatch.setitem(UPCASTERS, "agentrec/0.5", lift)
    assert len(SessionLog.open(older, "s1").project()) == 1


def test_a_session_of_an_older_version_is_gone_on_with(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UPCASTERS, "agentrec/0", lift)
    log = SessionLog.open(older, "s1")
    log.reply("Hello, Star!")
    log.save_projection()
    assert [m["role"] for m in log.project()] == ["user", "assistant"]
    monkeypatch.delitem(UPCASTERS, "agentrec/0")
    assert [m["role"] for m in log.project()] == ["assistant"], "what was saved with other upcasters is passed over"


def test_the_chain_holds_whatever_the_version(older: Path) -> None:
    assert verify(older).first_broken_index == -1


def test_what_a_newer_version_says_is_kept_and_passed_over(tmp_path: Path) -> None:
    told = ("USER_THOUGHT", {"payload": {"content": "hm"}})
    said = ("USER_MESSAGE_APPENDED", {"payload": {"content": "hi", "mood": "good"}})
    written(tmp_path, "sessions/s1", "agentrec/2", [OPENED, told, said])
    log = SessionLog.open(tmp_path, "s1")
    thought, message = list(log.events(1))
    assert isinstance(thought.typed(), Generic)
    assert thought.payload == {"content": "hm"}
    assert message.payload == {"content": "hi", "mood": "good"}
    assert [m["role"] for m in log.project()] == ["user"]
