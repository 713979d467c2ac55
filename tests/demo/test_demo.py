"""``otel-agentrec demo`` from end to end: a real SDK, real instrumentation, a real child process, one changed byte."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import otel_agentrec
from otel_agentrec.cli import demo
from otel_agentrec.cli.app import run
from otel_agentrec.demo import child, stage
from otel_agentrec.demo.crash import DONE
from otel_agentrec.demo.script import Turn
from otel_agentrec.errors import UsageError

pytest.importorskip("openai")
pytestmark = pytest.mark.timeout(300)
Out = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In an empty directory, on no terminal; the agent's process finds the package under test also when a path is relative."""
    root = str(Path(otel_agentrec.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])))
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_the_demo_shows_records_verdict_damage_and_what_comes_next(tmp_path: Path, capsys: Out) -> None:
    begun = os.times()[:4]
    assert run(["demo"]) == 0
    assert sum(os.times()[:4]) - sum(begun) < 20, "seconds of the processor's time"
    out, err = capsys.readouterr()
    assert err == ""
    told, recorded, proven, changed, killed, stopped, finished, again = re.split(r"^\d  .*$", out, flags=re.MULTILINE)[
        1:
    ]
    assert stage.QUESTION in told and stage.ANSWER in told
    for words in ("weather", "last_train", "→ " + stage.ANSWER, "4 calls"):
        assert words in recorded
    assert "\nINTACT  " in proven
    assert "\nCHANGED  " in changed and "payload_mismatch" in changed
    assert "before" in changed and "after" in changed
    assert "agent  " not in killed, "it died before it could answer"
    assert "buy_ticket(" in stopped and "nobody knows whether it happened" in stopped and "exit code 75" in stopped
    assert f"agent  {DONE}" in finished and "asked 2 times" in finished
    assert f"agent  {DONE}" in again and "replay: the same; 2 model calls and 1 tool call answered" in again
    for act in (killed, stopped, finished, again):
        assert act.count("tickets sold: 1") == 1
    for command in ("show", "verify", "resolve", "runs", "nodes"):
        assert f"otel-agentrec {command} agentrec-demo" in out
    assert (tmp_path / "agentrec-demo" / "index.jsonl").exists()


def test_another_answer_and_another_byte_are_seen_in_its_output(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_crash", lambda *_: None)  # it takes its time, and knows nothing of these words
    answer = "Stay at home: the 07:15 is full."
    assert run(["demo", "--out", "mine", "--ask", "May I go?", "--answer", answer, "--flip", "30"]) == 0
    out = capsys.readouterr().out
    (stream,) = (p for p in (tmp_path / "mine").glob("*.content.jsonl"))
    assert "you    May I go?" in out
    assert f"agent  {answer}" in out and f"→ {answer}" in out
    assert f"byte 30 of {stream.name}" in out
    data = stream.read_bytes()
    before = data[18:43].decode()
    after = before[:12] + chr(ord(before[12]) ^ 1) + before[13:]
    assert f"before  {before}" in out and f"after   {after}" in out
    assert f"CHANGED  {stream.name}, line 1:" in out, "byte 30 stands in the first line"


def test_the_demo_recording_is_like_any_other(tmp_path: Path, capsys: Out) -> None:
    stage.record(tmp_path / "rec", "Yes.", "Will it rain?", lambda _: None)
    assert run(["nodes", str(tmp_path / "rec"), "--json"]) == 0
    first, *tools, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert [part["content"] for part in first["inputs"]["messages"][-1]["parts"]] == ["Will it rain?"]
    assert [call["name"] for call in first["toolCalls"]] == ["weather", "last_train"]
    assert {t["toolName"]: t["outputs"]["to" if "to" in t["outputs"] else "place"] for t in tools} == {
        "weather": "Finse",
        "last_train": "Oslo",
    }
    assert (last["outputText"], last["streamed"], last["status"]) == ("Yes.", True, "ok")
    assert last["inputTokens"] > first["inputTokens"] > 0
    weather, train = (next(t for t in tools if t["toolName"] == name) for name in ("weather", "last_train"))
    assert train["startedAtEpochMs"] < weather["capturedAtEpochMs"], "the tools ran at the same time"
    assert {r["runId"] for r in (first, *tools, last)} == {first["runId"]}
    assert {r["sessionId"] for r in (first, *tools, last)} == {"demo"}


def test_a_byte_that_is_not_there(capsys: Out, tmp_path: Path) -> None:
    rec = tmp_path / "rec"
    rec.mkdir()
    (rec / "s.content.jsonl").write_bytes(b"0123456789")
    with pytest.raises(UsageError, match="no byte 10") as error, stage.changed_copy(rec, "x", 10):
        pass
    assert "0 to 9" in error.value.hint


@pytest.mark.parametrize(
    ("content", "answer", "shown"),
    [
        (b'{"value":"at 21:42"}', "at 21:42", (b"at 21:42", b"at 31:42")),
        (b'{"value":"at home"}', "at home", (b"at home", b"au home")),
        (b'"3 at home" "at home"', "at home", (b'"at home"', b'"au home"')),
        (rb'"an \"x\" at 7"', 'an "x" at 7', (b"7", b"6")),
        ('"ü mit é"'.encode(), "ü mit é", (b"mit", b"lit")),
        (b"!!", "!!", (b"!!", b" !")),
    ],
)
def test_which_byte_is_changed(tmp_path: Path, content: bytes, answer: str, shown: tuple[bytes, bytes]) -> None:
    rec = tmp_path / "rec"
    rec.mkdir()
    (rec / "s.content.jsonl").write_bytes(content)
    with stage.changed_copy(rec, answer, None) as (copy, flip):
        changed = (copy / flip.file).read_bytes()
        assert changed == content.replace(*shown)
        assert sum(a != b for a, b in zip(changed, content, strict=True)) == 1
    assert not copy.exists()
    assert (rec / "s.content.jsonl").read_bytes() == content, "the original is left alone"


def test_where_the_demo_records() -> None:
    assert [stage.fresh_directory(None) for _ in range(3)] == [
        Path("agentrec-demo"),
        Path("agentrec-demo-2"),
        Path("agentrec-demo-3"),
    ]
    assert Path("agentrec-demo").stat().st_mode & 0o777 == 0o700
    assert stage.fresh_directory("agentrec-demo") == Path("agentrec-demo"), "an empty directory will do"
    assert stage.fresh_directory("a/new/one").is_dir()
    Path("agentrec-demo/x").touch()
    with pytest.raises(UsageError, match="not empty"):
        stage.fresh_directory("agentrec-demo")


@pytest.mark.parametrize("out", ["a-file", "a-file/below", "x" * 5000])
def test_a_directory_that_can_not_be_made(out: str, capsys: Out) -> None:
    Path("a-file").write_text("here")
    assert run(["demo", "--out", out]) == 2
    what, hint = capsys.readouterr().err.splitlines()
    assert "can't make a directory" in what and "--out" in hint


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    monkeypatch.setattr(stage, "NEEDED", ("not_installed.at_all",))
    assert run(["demo"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].strip() == "pip install 'otel-agentrec[demo]'"
    assert len(err.splitlines()) == 2


def test_an_agent_that_fails_is_an_error_of_the_demo(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    monkeypatch.setattr(stage, "script", lambda _: [Turn("no cake", status=400)])
    assert run(["demo"]) == 2
    err = capsys.readouterr().err
    assert "ended with code 1" in err and "no cake" in err


def test_an_agent_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    monkeypatch.setattr(child, "CHILD_SECONDS", 0.05)
    assert run(["demo"]) == 2
    assert "did not end within 0.05 seconds" in capsys.readouterr().err
