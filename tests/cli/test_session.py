"""``otel-agentrec session``: what a person and a program read of a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_agentrec.audit.verify import verify
from otel_agentrec.cli.app import run
from otel_agentrec.session.log import SessionLog

Out = pytest.CaptureFixture[str]


@pytest.fixture
def rec(tmp_path: Path) -> str:
    log = SessionLog.open(tmp_path / "rec", "user-42")
    log.header(instructions=[{"type": "text", "content": "Be kind."}])
    log.user("I am Star \x1b[31m.")
    log.reply("Hello, Star!")
    log.tool_call("pay", {"cents": 5}, "c1")
    return str(tmp_path / "rec")


def said(capsys: Out, *words: str) -> str:
    assert run(["session", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: Out, *words: str) -> str:
    assert run(["session", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_list_shows_sessions_and_forks(rec: str, capsys: Out) -> None:
    assert said(capsys, "fork", rec, "user-42", "3", "--as", "branch b") == "branch b\n"
    rows = [json.loads(line) for line in said(capsys, "list", rec, "--json").splitlines()]
    assert [(r["id"], r["events"], r["messages"], r["forkOf"], r["forkAt"]) for r in rows] == [
        ("branch b", 5, 1, "user-42", 3),
        ("user-42", 6, 2, None, None),
    ]
    text = said(capsys, "list", rec)
    assert "fork of user-42 at 3" in text and "\x1b" not in text


def test_the_file_of_a_session_stands_for_it(rec: str, capsys: Out) -> None:
    said(capsys, "fork", rec, "user-42", "3", "--as", "b")
    file = f"{rec}/sessions/user-42.jsonl"
    assert [json.loads(line)["id"] for line in said(capsys, "list", file, "--json").splitlines()] == ["user-42"]
    assert said(capsys, "at", file, "user-42", "--json") == said(capsys, "at", rec, "user-42", "--json")


def test_show_prints_each_event(rec: str, capsys: Out) -> None:
    events = [json.loads(line) for line in said(capsys, "show", rec, "user-42", "--json", "--from", "3").splitlines()]
    assert [(e["seq"], e["type"]) for e in events] == [
        (3, "USER_MESSAGE_APPENDED"),
        (4, "AGENT_REPLY_APPENDED"),
        (5, "TOOL_CALLED"),
    ]
    lines = said(capsys, "show", rec, "user-42").splitlines()
    assert len(lines) == 6 and lines[4].endswith("Hello, Star!")


def test_at_shows_what_the_model_was_given(rec: str, capsys: Out) -> None:
    assert said(capsys, "at", rec, "user-42").splitlines() == [
        "instructions: Be kind.",
        "user: I am Star \\x1b[31m.",
        "assistant: Hello, Star!",
        'assistant: pay({"cents": 5})',
        "tool: interrupted: the call did not end",
    ]
    then = json.loads(said(capsys, "at", rec, "user-42", "3", "--json"))
    assert [m["role"] for m in then["messages"]] == ["user"]
    assert then["header"]["instructions"] == [{"type": "text", "content": "Be kind."}]
    spoken = json.loads(said(capsys, "at", rec, "user-42", "--policy", "conversation", "--json"))
    assert [m["role"] for m in spoken["messages"]] == ["user", "assistant"]


def test_save_makes_the_next_opening_cheap(rec: str, capsys: Out) -> None:
    assert said(capsys, "save", rec, "user-42", "--policy", "conversation") == "saved up to event 5\n"
    log = SessionLog.open(rec, "user-42")
    log.project()
    assert log.events_read == 1


def test_a_session_that_was_closed_stays_so_when_its_projection_is_saved(rec: str, capsys: Out) -> None:
    said(capsys, "save", rec, "user-42")
    assert verify(rec).exit_code == 3, "its end was open before"
    SessionLog.open(rec, "user-42").close()
    said(capsys, "save", rec, "user-42", "--policy", "conversation")
    assert verify(rec).exit_code == 0


def test_what_is_not_there_is_told_with_a_way_out(rec: str, capsys: Out, tmp_path: Path) -> None:
    assert "has no session 'nobody'\n  sessions there: user-42" in refused(capsys, "show", rec, "nobody")
    for word in ("fork", "at"):
        assert "no event 99\n  its events are numbered from 0 to 5" in refused(capsys, word, rec, "user-42", "99")
    assert "does not exist" in refused(capsys, "list", str(tmp_path / "nowhere"))
    assert "Did you mean 'fork'?" in refused(capsys, "frk", rec)


def test_without_a_subcommand_it_says_what_there_is(capsys: Out) -> None:
    assert "fork" in said(capsys) and "session list agentrec" in said(capsys, "--help")
