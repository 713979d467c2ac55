"""The seed's story (ToyAgent): the log is the conversation, the log is the state."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec.audit.verify import verify
from otel_agentrec.errors import EventInvalid, RecordingUnreadable, UsageError
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.events.session import ToolCalled
from otel_agentrec.journal.sessions import id_of, stream_of
from otel_agentrec.journal.store import FileEventStore
from otel_agentrec.session.log import SessionLog
from otel_agentrec.session.policy import CONVERSATION, with_compaction, with_tools


def said(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def is_intact(recording: Path) -> bool:
    """Every hash holds; a session's end is open, since any process may go on with it."""
    report = verify(recording)
    return (report.is_valid, report.kind) == (True, "unsealed_tail")


@pytest.fixture
def log(tmp_path: Path) -> SessionLog:
    return SessionLog.open(tmp_path / "rec", "user-42")


def story(log: SessionLog) -> None:
    log.append("SESSION_STARTED", scenario="step22")
    log.user("我叫阿星")
    log.reply("你好，阿星！")
    log.turn_completed()
    log.user("我叫什么名字？")


def test_numbers_and_payloads_are_the_seeds(log: SessionLog) -> None:
    story(log)
    assert [(e.seq, e.type, e.payload) for e in log.events(1)] == [
        (1, "SESSION_STARTED", {"scenario": "step22"}),
        (2, "USER_MESSAGE_APPENDED", {"content": "我叫阿星"}),
        (3, "AGENT_REPLY_APPENDED", {"content": "你好，阿星！"}),
        (4, "TURN_COMPLETED", {"events": 3}),
        (5, "USER_MESSAGE_APPENDED", {"content": "我叫什么名字？"}),
    ]


def test_users_and_agent_enter_the_context_and_nothing_else(log: SessionLog) -> None:
    story(log)
    assert log.project() == [
        said("user", "我叫阿星"),
        said("assistant", "你好，阿星！"),
        said("user", "我叫什么名字？"),
    ]


AFTER_KILL = """
import os, signal, sys
from otel_agentrec.session.log import SessionLog
log = SessionLog.open(sys.argv[1], "user-42")
log.user("My name is Star."); log.reply("Hello, Star!")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_forgets_nothing_and_a_deleted_log_everything(tmp_path: Path) -> None:
    rec = tmp_path / "rec"
    killed = subprocess.run([sys.executable, "-c", AFTER_KILL, str(rec)], timeout=60)
    assert killed.returncode == -9
    log = SessionLog.open(rec, "user-42")
    log.user("What is my name?")
    assert log.project() == [
        said("user", "My name is Star."),
        said("assistant", "Hello, Star!"),
        said("user", "What is my name?"),
    ]
    assert is_intact(rec)
    for file in (rec / "sessions").iterdir():
        file.unlink()
    assert SessionLog.open(rec, "user-42").project() == []


def test_a_fork_goes_its_own_way_and_leaves_the_parent_as_it_was(log: SessionLog, tmp_path: Path) -> None:
    log.append("SESSION_STARTED")
    for i in range(2, 11):
        log.append("USER_MESSAGE_APPENDED" if i % 2 == 0 else "AGENT_REPLY_APPENDED", content=f"event {i}")
    files = {p: p.read_bytes() for p in (tmp_path / "rec" / "sessions").iterdir()}
    parent = list(log.events())

    fork = log.fork(5, "branch-b")
    fork.user("direction B")

    assert {p: p.read_bytes() for p in files} == files
    copies = list(fork.events())
    assert [(e.seq, e.type, e.payload, e.ts, e.copy_of) for e in copies[1:6]] == [
        (e.seq, e.type, e.payload, e.ts, e.hash) for e in parent[1:6]
    ]
    assert copies[0].payload["forkOf"] == {"stream": "sessions/user-42", "at": 5, "hash": parent[5].hash}
    assert [e.type for e in copies[6:]] == ["SESSION_FORKED", "USER_MESSAGE_APPENDED"]
    assert fork.project() == [*log.project(at=5), said("user", "direction B")]
    assert is_intact(tmp_path / "rec")

    for file in files:
        file.unlink()
    assert fork.project()[0] == said("user", "event 2"), "a fork needs nothing of its parent"


def test_a_fork_that_can_not_be_is_refused(log: SessionLog) -> None:
    log.user("hello")
    for at in (-1, 3):
        with pytest.raises(UsageError, match=f"no event {at}"):
            log.fork(at)
    log.fork(2, "taken")
    with pytest.raises(UsageError, match="a session taken already"):
        log.fork(2, "taken")


def test_half_a_fork_is_not_taken_for_a_session(tmp_path: Path) -> None:
    store = FileEventStore(tmp_path / "rec")
    place = {"stream": "sessions/a", "at": 3, "hash": "0" * 64}
    store.append("sessions/b", [NewEvent("USER_MESSAGE_APPENDED", {"content": "x"})], opened={"forkOf": place})
    with pytest.raises(RecordingUnreadable, match="never finished"):
        SessionLog.open(store, "b")


def test_time_travel_gives_the_context_of_any_moment(log: SessionLog) -> None:
    seen = []
    for i in range(6):
        log.user(f"u{i}")
        log.header(parameters={"model": f"m{i // 3}"})
        seen.append((log.head() - 1, log.request_at(log.head() - 1)))
        log.reply(f"r{i}")
    for seq, request in seen:
        assert log.request_at(seq) == request
    assert [request["header"]["parameters"]["model"] for _, request in seen] == ["m0"] * 3 + ["m1"] * 3
    assert len([e for e in log.events() if e.type == "REQUEST_HEADER"]) == 2, "an equal header is not said again"
    for read in (log.request_at, lambda seq: log.project(at=seq), log.fork):
        with pytest.raises(UsageError, match=f"no event {log.head()}"):
            read(log.head())


def test_tools_stand_in_the_reply_that_asked_for_them(log: SessionLog) -> None:
    log.user("Weather?")
    log.reply("Let me look.")
    log.tool_call("weather", {"place": "Oslo"}, "c1")
    log.tool_call("weather", {"place": "Bergen"}, "c2")
    log.tool_result("sun", "c1")
    log.tool_result("rain", "c2")
    log.reply("Sun and rain.")
    assert [m["role"] for m in log.project()] == ["user", "assistant", "assistant"]
    calls = [
        {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"place": "Oslo"}},
        {"type": "tool_call", "id": "c2", "name": "weather", "arguments": {"place": "Bergen"}},
    ]
    assert log.project(with_tools(CONVERSATION)) == [
        said("user", "Weather?"),
        {"role": "assistant", "parts": [{"type": "text", "content": "Let me look."}, *calls]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "sun"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c2", "response": "rain"}]},
        said("assistant", "Sun and rain."),
    ]


def test_a_call_without_result_reads_as_interrupted(log: SessionLog) -> None:
    log.user("Pay.")
    log.tool_call("pay", {"cents": 5}, "c1")
    log.user("And?")
    roles = [(m["role"], m["parts"][0].get("response")) for m in log.project(with_tools(CONVERSATION))]
    assert roles == [("user", None), ("assistant", None), ("tool", "interrupted: the call did not end"), ("user", None)]


def test_a_summary_stands_where_the_first_event_stood_and_a_later_one_wins(log: SessionLog) -> None:
    for i in range(4):
        log.user(f"u{i}")
        log.reply(f"r{i}")
    policy = with_compaction(CONVERSATION)
    log.compact(4, 6, "u1 and r1")
    assert log.project(policy)[2] == said("user", "u1 and r1")
    log.compact(2, 8, "the first three")
    log.user("now")
    assert log.project(policy) == [
        said("user", "the first three"),
        said("user", "u3"),
        said("assistant", "r3"),
        said("user", "now"),
    ]
    assert log.project()[0] == said("user", "u0"), "another policy still shows all"
    with pytest.raises(UsageError, match="no events 8 to 99"):
        log.compact(8, 100, "?")


def test_what_does_not_fit_is_not_written(log: SessionLog) -> None:
    log.user("hello")
    head = log.head()
    for type_, payload in [
        ("USER_MESAGE_APPENDED", {"content": "typo"}),
        ("USER_MESSAGE_APPENDED", {"contents": "typo"}),
        ("TOOL_CALLED", {"arguments": {}}),
        ("TURN_COMPLETED", {"events": "three"}),
        ("NODE_RECORDED", {"type": "MODEL", "name": "chat"}),
        ("STREAM_SEALED", {"count": 1}),
    ]:
        with pytest.raises(EventInvalid):
            log.append(type_, **payload)
        with pytest.raises(EventInvalid):
            log.append(type_, payload)
    with pytest.raises(EventInvalid, match="no object"):
        log.append("USER_MESSAGE_APPENDED", "text")  # type: ignore[arg-type]
    assert log.head() == head


def test_an_event_may_be_given_by_keys_as_an_object_or_typed(log: SessionLog) -> None:
    log.append("TOOL_CALLED", name="pay", call_id="c1")
    log.append("TOOL_CALLED", {"name": "pay", "callId": "c1"})
    log.append(ToolCalled("pay", "c1"))
    payloads = [event.payload for event in log.events(2)]
    assert payloads == [{"name": "pay", "callId": "c1"}] * 3


def test_a_decision_is_for_the_very_call_and_not_for_a_fork(log: SessionLog) -> None:
    log.approval("a1", "Pay 5?", call_id="c1")
    assert log.decision("a1", call_id="c1") is None
    log.decide("a1", by="ann", answer=True)
    assert log.decision("a1", call_id="c1") == {"by": "ann", "answer": True}
    assert log.decision("a1", call_id="c2") is log.decision("a1") is log.decision("a2", call_id="c1") is None
    fork = log.fork(log.head() - 1)
    assert fork.decision("a1", call_id="c1") is None
    fork.decide("a1", by="bob", answer=False)
    assert fork.decision("a1", call_id="c1") == {"by": "bob", "answer": False}
    assert log.decision("a1", call_id="c1") == {"by": "ann", "answer": True}
    log.approval("a1", "Pay 6?", call_id="c1")
    assert log.decision("a1", call_id="c1") is None, "it was asked anew"


def test_an_approval_is_decided_once(log: SessionLog) -> None:
    log.user("Pay 5")
    log.approval("a1", "Pay 5?", call_id="c1")
    log.decide("a1", by="ann", answer=True)
    with pytest.raises(UsageError, match="decided by ann"):
        log.decide("a1", by="bob", answer=False)
    with pytest.raises(UsageError, match="nobody asked"):
        log.decide("a2", by="bob", answer=False)


def test_background_results_and_sub_agents_land_in_the_same_log(log: SessionLog) -> None:
    log.user("Book a trip.")
    child = log.spawn("researcher", "find a train")
    child.reply("21:42")
    log.join(child, "researcher", "21:42")
    log.scheduled("daily news", "2026-11-30T08:00:00Z", "nothing new")
    assert [e.type for e in log.events(1)] == [
        "SESSION_STARTED",
        "USER_MESSAGE_APPENDED",
        "SUBAGENT_SPAWNED",
        "SUBAGENT_JOINED",
        "SCHEDULED_TASK_FIRED",
    ]
    assert child.project() == [said("user", "Book a trip."), said("assistant", "21:42")]


@pytest.mark.parametrize(
    "id", ["a/b", "a_b", "a%2Fb", "..", ".", "~", "Ä", "x" * 3000, "\udc80", " ", "a\0b", "A", "a", "a.content"]
)
def test_any_id_names_a_session_of_its_own(tmp_path: Path, id: str) -> None:
    others = [
        "a/b",
        "a_b",
        "a%2Fb",
        "..",
        ".",
        "~",
        "Ä",
        "x" * 3000,
        "x" * 2999 + "y",
        "\udc80",
        " ",
        "a\0b",
        "a.content",
        "a",
    ]
    assert len({stream_of(other) for other in others}) == len(others)
    log = SessionLog.open(tmp_path / "rec", id)
    log.user("hello")
    assert SessionLog.open(tmp_path / "rec", id).project() == [said("user", "hello")]
    assert id_of(log.stream) in (id, None if len(id) > 180 else id)


def test_without_an_id_there_is_no_session(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs an id"):
        SessionLog.open(tmp_path, "")


APPENDER = """
import sys
from otel_agentrec.session.log import SessionLog
log = SessionLog.open(sys.argv[1], "shared")
for i in range(int(sys.argv[3])):
    at = log.user(f"{sys.argv[2]}:{i}")
    print(f"{at.seq} {sys.argv[2]}:{i}", flush=True)
"""


def test_processes_share_a_session_and_what_was_acknowledged_survives_kills(tmp_path: Path) -> None:
    rec = tmp_path / "rec"
    children = [
        subprocess.Popen([sys.executable, "-c", APPENDER, str(rec), str(n), "200"], stdout=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    acknowledged = []
    for n, child in enumerate(children):
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(20 + 10 * n)]
        child.kill()
        lines += child.stdout.read().splitlines(keepends=True)
        child.wait()
        acknowledged += [line.split() for line in lines if line.endswith("\n")]
    events = list(SessionLog.open(rec, "shared").events())
    assert [e.seq for e in events] == list(range(len(events)))
    held = {(str(e.seq), e.payload.get("content")) for e in events}
    assert {(seq, text) for seq, text in acknowledged} <= held
    assert is_intact(rec)


def test_a_log_that_was_closed_is_proven_to_its_end_and_goes_on_all_the_same(tmp_path: Path) -> None:
    rec = tmp_path / "rec"
    with SessionLog.open(rec, "user-42") as log:
        log.user("My name is Star.")
        assert verify(rec).exit_code == 3
    assert (verify(rec).exit_code, verify(rec).end) == (0, "proven_close")
    head = log.head()
    log.close()
    assert log.head() == head, "said once"
    log.reply("Hello, Star!")
    assert is_intact(rec)
    log.close()
    assert verify(rec).exit_code == 0
    assert [m["role"] for m in SessionLog.open(rec, "user-42").project()] == ["user", "assistant"]


def test_a_log_says_which_host_wrote_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_ORIGIN", "build-7.example")
    log = SessionLog.open(tmp_path / "rec", "user-42")
    log.user("hello")
    opened = next(log.events())
    assert (opened.payload["host"], opened.payload["origin"]) == (
        "build-7.example",
        "build-7.example/agentrec/sessions/user-42",
    )


def test_a_log_without_events_has_nothing_to_close(tmp_path: Path) -> None:
    with SessionLog.open(tmp_path / "rec", "user-42") as log:
        pass
    assert log.head() == 0
    assert not (tmp_path / "rec").exists()
