"""After a crash the journal is enough: a cache of what a recording holds, and of nothing that it does not hold whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import ResumeCache, read_nodes
from otel_agentrec.demo.script import Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import RecordingNotFound, RecordingTampered, UsageError
from otel_agentrec.journal.reader import Recording
from otel_agentrec.journal.resumekey import NAME, replace_resume_key
from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.prompts import AgentPrompt, AgentToolCall
from otel_agentrec.resume.recorded import recorded_calls
from otel_agentrec.resume.requests import WireRequest, asked_model, asked_tool
from otel_agentrec.resume.tape import Answered, Done, Failed, Miss, Outcome, Tape, Unknown
from otel_agentrec.resume.whyrecorded import why_miss_in

from .crashing_app import prompt
from .wire_app import body

APP = Path(__file__).with_name("crashing_app.py")
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
JOB = '{"job":12345678901234567890}'
PAY = {"password": "hunter2hunter2", "eur": 5}
MISS = object()


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    where = tmp_path_factory.mktemp("recordings")
    env = {**os.environ, "PYTHONPATH": str(APP.parent.parent.parent)}
    for ending, code in (("crash", 9), ("done", 0)):
        done = subprocess.run([sys.executable, APP, where / ending, ending], env=env, timeout=60, check=False)
        assert done.returncode == code
    return {ending: where / ending for ending in ("crash", "done")}


@pytest.fixture
def crashed(recordings: dict[str, Path], tmp_path: Path) -> Path:
    shutil.copytree(recordings["crash"], tmp_path / "rec")
    return tmp_path / "rec"


def text(cache: ResumeCache, asked: AgentPrompt) -> Any:
    found = cache.lookup_model(asked)
    return None if found is None else found.output_text


def tool(cache: ResumeCache, name: str, arguments: Any, call_id: str | None = None) -> Any:
    return cache.lookup_tool(AgentToolCall(name, arguments, call_id), MISS)


def test_k_recorded_calls_give_k_answers_and_then_a_miss(crashed: Path) -> None:
    cache = ResumeCache.from_recording(crashed)
    assert cache.match == "occurrence"
    assert [text(cache, prompt(t)) for t in ("same", "a", "same", "same")] == ["first", "A", "second", None]
    assert [tool(cache, "poll", JOB, c) for c in ("c2", "c1", "c3")] == ["poll 2", "poll 1", MISS]
    assert (cache.model_hits, cache.model_misses) == (3, 1)


def test_what_was_redacted_in_the_request_is_found_and_in_the_answer_is_not(crashed: Path) -> None:
    assert SECRET not in "".join(p.read_text() for p in crashed.glob("*.jsonl"))
    cache = ResumeCache.from_recording(crashed)
    assert text(cache, prompt("key", user=SECRET)) == "whole"
    assert tool(cache, "pay", {**PAY, "password": "hunter3hunter3"}) is MISS, "two secrets are two calls"
    assert tool(cache, "pay", PAY) == {"paid": True}
    assert text(cache, prompt("secret answer")) is None


def test_what_failed_broke_off_or_only_began_is_made_again(crashed: Path) -> None:
    cache = ResumeCache.from_recording(crashed)
    assert text(cache, prompt("cut")) is None
    assert tool(cache, "fails", {}) is MISS
    assert tool(cache, "begun", {"n": 1}) is MISS


def test_a_finished_run_is_refused_unless_it_is_read_by_content(recordings: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="did not come to its end") as caught:
        ResumeCache.from_recording(recordings["done"])
    assert caught.value.hint
    cache = ResumeCache.from_recording(recordings["done"], match="content")
    assert [text(cache, prompt("same")) for _ in range(3)] == ["first"] * 3
    run = next(read_nodes(recordings["done"])).run_id
    assert run is not None
    assert text(ResumeCache.from_recording(recordings["done"], run[:9], match="content"), prompt("a")) == "A"
    with pytest.raises(UsageError, match="there is no run 'x'"):
        ResumeCache.from_recording(recordings["done"], "x", match="content")


def test_a_recording_that_was_changed_is_refused(crashed: Path) -> None:
    (stream,) = (p for p in crashed.glob("2*.jsonl") if not p.name.endswith(".content.jsonl"))
    changed = stream.read_bytes().replace(b'"toolName":"poll"', b'"toolName":"pull"', 1)
    assert changed != stream.read_bytes()
    stream.write_bytes(changed)
    with pytest.raises(RecordingTampered, match="not as it was written"):
        ResumeCache.from_recording(crashed)


def test_changed_content_is_refused_too(crashed: Path) -> None:
    (content,) = crashed.glob("2*.content.jsonl")
    content.write_bytes(content.read_bytes().replace(b"poll 1", b"poll 9", 1))
    with pytest.raises(RecordingTampered):
        ResumeCache.from_recording(crashed)


def test_no_recording_at_all(tmp_path: Path) -> None:
    with pytest.raises(RecordingNotFound):
        ResumeCache.from_recording(tmp_path / "nothing")


@pytest.mark.parametrize("how", ["replaced", "lost"])
def test_when_the_secret_is_gone_calls_are_keyed_anew_from_what_was_asked(crashed: Path, how: str) -> None:
    replace_resume_key(crashed) if how == "replaced" else (crashed / NAME).unlink()
    cache = ResumeCache.from_recording(crashed)
    assert tool(cache, "poll", JOB) == "poll 1"
    assert tool(cache, "pay", PAY) is MISS, "its arguments were redacted: nobody can say which call it was"
    assert (crashed / NAME).exists() == (how == "replaced"), "reading makes no secret"


def test_another_inert_list_keys_anew(crashed: Path) -> None:
    cache = ResumeCache.from_recording(crashed, inert=["$.job"])
    assert tool(cache, "poll", '{"job": 1}') == "poll 1"
    assert tool(cache, "pay", PAY) is MISS


def test_it_says_why_a_call_misses(crashed: Path) -> None:
    cache = ResumeCache.from_recording(crashed)
    report = cache.why_miss(AgentToolCall("poll", '{"job": 12345678901234567891}'))
    (difference,) = report.differences
    assert (difference.where, difference.kind, report.heal) == ("$.job", "value", ("$.job",))
    assert (difference.recorded, difference.asked) == (12345678901234567890, 12345678901234567891)
    assert report.nearest is not None
    assert report.nearest.startswith("tool@")


def test_the_tape_of_the_run_knows_its_frontier(crashed: Path) -> None:
    ring = KeyRing.of(crashed, create=False)
    recording = Recording(crashed)
    root = next(read_nodes(recording)).run_id
    calls = recorded_calls(recording, root, ring)
    assert [(c.lane, c.outcome, c.past) for c in calls if c.name in ("fails", "begun", "pay")] == [
        ("agent", Outcome.DONE, True),
        ("agent", Outcome.FAILED, True),
        ("agent", Outcome.OPEN, False),
    ]
    tape = Tape(calls, ring)
    (unknown,) = tape.unknown()
    assert unknown.call.name == "begun"
    for said in ("a", "same", "same"):
        assert isinstance(tape.model("agent", asked_model(prompt(said))), Answered)
    assert isinstance(tape.tool("agent", asked_tool(AgentToolCall("fails", "{}"))), Failed)
    assert isinstance(tape.tool("agent", asked_tool(AgentToolCall("pay", PAY))), Done)
    assert isinstance(tape.tool("agent", asked_tool(AgentToolCall("begun", {"n": 1}))), Unknown)
    miss = tape.model("agent", asked_model(prompt("other")))
    assert isinstance(miss, Miss)
    assert not miss.frontier


# --- a program that is recorded on the wire ---------------------------------------------------------------------------


def wire(call_id: str, **more: Any) -> WireRequest:
    return WireRequest("POST", "/v1/chat/completions", body(call_id, **more), "openai.chat")


@pytest.fixture(scope="module")
def on_the_wire(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("wire") / "rec"
    env = {**os.environ, "PYTHONPATH": str(APP.parent.parent.parent)}
    with ScriptedServer([Turn("Rain."), Turn("Still rain.")]) as server:
        app = [sys.executable, "-m", "tests.resume.wire_app", where, server.base_url]
        done = subprocess.run(app, env=env, cwd=APP.parent.parent.parent, timeout=60, check=False)
    assert done.returncode == 9
    return where


def test_a_request_on_the_wire_is_found_by_its_body(on_the_wire: Path) -> None:
    cache = ResumeCache.from_recording(on_the_wire, match="content")
    assert cache.lookup_model(wire("call_1", seed=0)).output_text == "Rain."
    assert cache.lookup_model(wire("call_1", seed=1)).output_text == "Still rain."
    assert cache.lookup_model(wire("call_1", seed=2)) is None


def test_on_the_wire_renamed_call_ids_are_found_by_the_second_look_up(on_the_wire: Path) -> None:
    cache = ResumeCache.from_recording(on_the_wire, match="content")
    hit = cache.find_model(wire("made-anew", seed=1))
    assert hit is not None
    assert (hit.aliased, hit.value.output_text) == (True, "Still rain.")


def test_on_the_wire_an_inert_path_makes_the_key_anew_from_the_recorded_body(on_the_wire: Path) -> None:
    cache = ResumeCache.from_recording(on_the_wire, match="content", inert=["$.seed"])
    assert cache.lookup_model(wire("call_1", seed=7)).output_text == "Rain."


def test_on_the_wire_a_miss_names_the_path_in_the_body(on_the_wire: Path) -> None:
    report = ResumeCache.from_recording(on_the_wire, match="content").why_miss(wire("call_1", seed=1, n=2))
    assert [(d.where, d.kind) for d in report.differences] == [("$.n", "added")]
    asked = why_miss_in(Recording(on_the_wire), body("call_1", seed=1, n=2))
    assert (asked.hit, asked.differences[0].where, asked.heal) == (False, "$.n", ("$.n",))
    assert why_miss_in(Recording(on_the_wire), body("call_1", seed=1)).hit
