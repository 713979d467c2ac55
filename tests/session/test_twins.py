"""A session's log is the same story over every event store."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_agentrec.errors import RecordingTampered, UsageError
from otel_agentrec.session.agent import AGENT, AgentSession
from otel_agentrec.session.log import SessionLog
from tests.journal.test_store import TWINS


def story(log: SessionLog) -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/look"}
    log.header(instructions=[{"type": "text", "content": "Be kind."}], tools=[{"name": "look", "parameters": schema}])
    log.user("我叫阿星")
    log.tool_call("look", {"up": "name", "$ref": "#/x"}, "c1")
    log.tool_result("a star", "c1")
    log.reply("你好，阿星！ \0 \udc80")
    log.turn_completed()
    log.compact(2, 4, "they met")
    log.approval("a1", "Pay?")
    log.decide("a1", "ann", True)


def told(log: SessionLog) -> list[object]:
    """Everything that is read of a log, but hashes, ids and times."""
    end = log.head()
    return [
        [(e.seq, e.type, e.payload) for e in log.events(1)],
        [log.project(AGENT, at) for at in range(end)],
        [log.request_at(at) for at in range(end)],
    ]


@pytest.mark.parametrize("twin", sorted(TWINS))
def test_a_session_reads_the_same_whatever_keeps_it(tmp_path: Path, twin: str) -> None:
    plain = SessionLog.open(TWINS["memory"](tmp_path), "user/42")
    story(plain)
    store = TWINS[twin](tmp_path / "store")
    log = SessionLog.open(store, "user/42")
    story(log)
    assert told(log) == told(plain)
    assert store.streams() == ["sessions/user%2F42"]


@pytest.mark.parametrize("twin", sorted(TWINS))
def test_forks_and_saved_projections_work_in_every_store(tmp_path: Path, twin: str) -> None:
    store = TWINS[twin](tmp_path / "store")
    log = SessionLog.open(store, "user-42")
    story(log)
    before = list(store.read(log.stream))
    branch = log.fork(4, "branch \0 \udc80")
    branch = SessionLog.open(store, branch.session_id).fork(5, "branch")  # a fork of a fork
    branch.user("another way")
    assert list(store.read(log.stream)) == before
    assert [e.payload for e in branch.events(1)][:4] == [e.payload for e in before[1:5]]
    assert SessionLog.open(store, "branch").project()[-1]["parts"][0]["content"] == "another way"

    whole = log.project(AGENT)
    log.save_projection(AGENT)
    log.user("and then")
    again = SessionLog.open(store, "user-42", policy=AGENT)
    counted = again.events_read
    assert again.project()[:-1] == whole
    assert again.events_read - counted == 2, "PROJECTION_SAVED and what came later"


def test_a_url_where_a_directory_is_wanted_is_no_directory_called_sqlite() -> None:
    with pytest.raises(UsageError) as error:
        SessionLog.open("sqlite:///x.db", "s")
    assert "SqlEventStore(url)" in error.value.hint


def test_a_snapshot_goes_on_in_a_log_in_a_database(tmp_path: Path) -> None:
    session = AgentSession("s", None)  # type: ignore[arg-type]
    story(session.log)
    log = SessionLog.open(TWINS["sqlite"](tmp_path / "x"), "s")
    other = AgentSession("s", None, log=log)  # type: ignore[arg-type]
    other.restore(session.snapshot())
    assert other.memory == session.memory
    other.log.user("more")
    session.log.user("less")
    with pytest.raises(RecordingTampered):
        other.restore(session.snapshot())
