"""What a recorder makes of conversations while they go on: what extends is appended, what does not is said to be new."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_agentrec.audit.verify import verify
from otel_agentrec.capture.conversations.book import Book
from otel_agentrec.capture.conversations.call import Call
from otel_agentrec.capture.conversations.messages import Reading
from otel_agentrec.capture.conversations.story import Story
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.journal.draft import Envelope
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.reader import Resolver, StreamFile
from otel_agentrec.records import JournalRef
from otel_agentrec.session.agent import AGENT
from otel_agentrec.session.log import SessionLog
from otel_agentrec.session.overview import overview
from tests.session.conversing import Recorded, assistant, message, system, user

ROOT = Path(__file__).parents[2]
Json = Any


def types(log: SessionLog) -> list[str]:
    bookkeeping = ("STREAM_OPENED", "STREAM_SEALED", "SESSION_STARTED", "REQUEST_HEADER", "TURN_COMPLETED")
    return [e.type for e in log.events() if e.type not in bookkeeping]


@pytest.fixture
def log(tmp_path: Path) -> SessionLog:
    return SessionLog.open(tmp_path / "rec", "c1", policy=AGENT)


@pytest.fixture
def program(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path / "rec")


def test_a_second_yes_is_a_second_yes(program: Recorded, log: SessionLog) -> None:
    history = [user("yes"), assistant("yes"), user("yes")]
    program.call(history[:1], history[1])
    program.call(history, assistant("yes"))
    program.end()
    assert log.project() == [*history, assistant("yes")]
    assert types(log) == ["USER_MESSAGE_APPENDED", "AGENT_REPLY_APPENDED"] * 2


def test_what_was_said_is_pointed_at_and_not_written_again(program: Recorded, log: SessionLog, tmp_path: Path) -> None:
    program.call([user("My name is Star.")], assistant("Hello, Star!"))
    program.end()
    lines = (tmp_path / "rec" / "sessions" / "c1.jsonl").read_text().splitlines()
    said = [json.loads(line)["event"] for line in lines if "_APPENDED" in line]
    assert [e["payload"]["content"]["$node"]["path"] for e in said] == [
        "$.payload.facts.messages[0].parts[0].content",
        "$.payload.facts.outputMessages[0].parts[0].content",
    ]
    assert [e.payload["content"] for e in log.events() if "_APPENDED" in e.type] == ["My name is Star.", "Hello, Star!"]
    branch = log.fork(4)
    for stream in (tmp_path / "rec").glob("2*.jsonl"):
        stream.unlink()
    assert branch.project() == [user("My name is Star."), assistant("Hello, Star!")], "a fork stands alone"
    assert "$missing" in json.dumps(log.project())


def test_another_list_is_a_new_context(program: Recorded, log: SessionLog) -> None:
    program.call([user("one")], assistant("1"))
    program.call([user("a summary"), user("two")], assistant("2"))
    program.end()
    assert types(log)[2:] == ["CONTEXT_REPLACED", "AGENT_REPLY_APPENDED"]
    assert log.project() == [user("a summary"), user("two"), assistant("2")]


def test_a_run_that_is_resumed_adds_only_what_goes_on(tmp_path: Path, log: SessionLog) -> None:
    """It makes the calls of the recorded one again, from the first on, and they are answered as they were."""
    history = [user("one"), assistant("1"), user("two"), assistant("2"), user("three"), assistant("3")]

    def agent(turns: list[int], resumes: bool) -> None:
        program = Recorded(tmp_path / "rec")
        tracer = program.provider.get_tracer("an agent")
        named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}
        with tracer.start_as_current_span("invoke_agent shop", attributes=named) as span:
            run = f"{span.get_span_context().trace_id:032x}"
            if resumes:
                told = StepEvent("RUN_RESUMED", {"root": "r", "from": {"run": "r"}}, run=run)
                program.processor.recorder.edge.write(told)
            for n in turns:
                program.call(history[: 2 * n + 1], history[2 * n + 1])
        program.end()

    agent([0, 1], resumes=False)
    agent([0, 1, 2], resumes=True)
    assert log.project() == history
    assert types(log) == ["USER_MESSAGE_APPENDED", "AGENT_REPLY_APPENDED"] * 3
    agent([0], resumes=False)
    assert types(log)[6:] == ["CONTEXT_REPLACED", "AGENT_REPLY_APPENDED"], "any other run that begins anew has said so"
    assert log.project() == history[:2]


def test_a_window_that_slides_costs_no_messages(tmp_path: Path) -> None:
    program, said = Recorded(tmp_path / "rec"), [user("x" * 2000)]
    for n in range(30):
        program.call(said[-6:], assistant(f"{n}" * 1000))
        said += [assistant(f"{n}" * 1000), user(f"{n}" * 2000)]
    program.end()
    held = sum(f.stat().st_size for f in (tmp_path / "rec" / "sessions").iterdir())
    assert held < 30 * 3_000


def test_instructions_stand_in_the_header_and_only_when_they_change(program: Recorded, log: SessionLog) -> None:
    history = [user("hi"), assistant("hello"), user("bye")]
    program.call([system("Be kind."), *history[:1]], history[1])
    program.call([system("Be kind."), *history], assistant("Bye!"))
    program.call([system("Be brief."), *history, assistant("Bye!"), user("?")], None)
    program.end()
    headers = [e.payload["instructions"][0]["content"] for e in log.events() if e.type == "REQUEST_HEADER"]
    assert headers == ["Be kind.", "Be brief."]
    assert log.project() == [*history, assistant("Bye!"), user("?")]


def test_a_turn_ends_with_the_reply(program: Recorded, log: SessionLog) -> None:
    asks = {"role": "assistant", "parts": [{"type": "tool_call", "id": "k", "name": "dice", "arguments": {"n": 6}}]}
    rolled = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "k", "response": "4"}]}
    program.call([user("roll")], asks)
    program.call([user("roll"), asks, rolled], assistant("A four."))
    program.end()
    assert [e.type for e in log.events(3)] == [
        "USER_MESSAGE_APPENDED",
        "TOOL_CALLED",
        "TOOL_RESULT_APPENDED",
        "AGENT_REPLY_APPENDED",
        "TURN_COMPLETED",
        "STREAM_SEALED",
    ]
    assert log.project() == [user("roll"), asks, rolled, assistant("A four.")]


def test_an_id_is_never_made_up(program: Recorded, tmp_path: Path) -> None:
    program.call([user("hi")], assistant("hello"), None)
    program.end()
    assert overview(tmp_path / "rec") == []


@pytest.mark.parametrize("off", [{"sessions": False}, {"content": "off"}])
def test_it_can_be_switched_off(off: dict[str, Json], tmp_path: Path) -> None:
    program = Recorded(tmp_path / "rec", **off)
    program.call([user("hi")], assistant("hello"))
    program.end()
    assert overview(tmp_path / "rec") == []


def test_where_the_chat_api_writes_nothing_is_added(program: Recorded, log: SessionLog) -> None:
    log.user("hi")
    program.call([user("hi")], assistant("hello"))
    log.reply("hello")
    program.call([user("hi"), assistant("hello"), user("?")], assistant("!"))
    program.end()
    assert types(log) == ["USER_MESSAGE_APPENDED", "AGENT_REPLY_APPENDED"]


def test_what_a_person_adds_to_a_session_does_not_silence_it(program: Recorded, log: SessionLog) -> None:
    program.call([user("hi")], assistant("hello"))
    program.flush()
    log.save_projection()
    log.approval("a1", "May I?")
    program.call([user("hi"), assistant("hello"), user("?")], assistant("!"))
    program.end()
    assert log.project() == [user("hi"), assistant("hello"), user("?"), assistant("!")]


def test_a_session_that_can_not_be_written_hurts_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Recorded(tmp_path / "rec")
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec" / "sessions").write_text("in the way")
    program.call([user("hi")], assistant("hello"))
    program.processor.recorder.shutdown()
    counts = program.processor.recorder.stats()
    assert (counts["nodes"], counts["dropped"]) == (1, 0)
    assert counts["swallowed.sessions"] >= 1
    assert "sessions was swallowed" in capsys.readouterr().err


def test_secrets_do_not_get_past_the_gate(program: Recorded, log: SessionLog, tmp_path: Path) -> None:
    secret = "sk-proj-" + "Ab3" * 16
    history = [user(f"my key is {secret}"), assistant("Thanks!"), user("Go on.")]
    program.call(history[:1], history[1])
    program.end()
    again = Recorded(tmp_path / "rec")  # compares what it is told with what stands in the journal
    again.call(history, assistant("Done."))
    again.end()
    assert types(log) == ["USER_MESSAGE_APPENDED", "AGENT_REPLY_APPENDED"] * 2
    assert secret not in "".join(f.read_text() for f in (tmp_path / "rec").rglob("*.jsonl"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_four_workers_share_a_session_and_one_is_killed(tmp_path: Path) -> None:
    rec = tmp_path / "rec"
    command = [sys.executable, "-m", "tests.session.worker", str(rec)]
    workers = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    history: list[Json] = []
    for turn in range(24):
        history.append(user(f"question {turn}"))
        worker = workers[(turn * 7) % (4 if turn < 12 else 3)]
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write(json.dumps({"messages": history, "reply": f"answer {turn}"}) + "\n")
        worker.stdin.flush()
        assert worker.stdout.readline() == "done\n"
        if turn == 11:
            workers[3].kill()
        history.append(assistant(f"answer {turn}"))
    for worker in workers:
        worker.communicate("null\n" if worker is not workers[3] else None, timeout=60)
    log = SessionLog.open(rec, "shared")
    assert log.project() == history
    assert types(log) == ["USER_MESSAGE_APPENDED", "AGENT_REPLY_APPENDED"] * 24
    events = list(log.events())
    assert [e.seq for e in events] == list(range(len(events)))
    assert verify(rec).is_valid


# --- laws -----------------------------------------------------------------------------------------------------------------

texts = st.sampled_from(["yes", "no", "a", "b"])
messages = st.lists(st.builds(message, st.sampled_from(["user", "assistant", "system"]), texts), max_size=5)
calls = st.tuples(messages, texts, st.sampled_from([None, "planner", "writer"]))


def call_of(number: int, asked: list[Json], reply: str, agent: str | None, reading: Reading) -> Call:
    said = [assistant(reply)]
    node = JournalRef("s", number, "0" * 64)
    return Call(
        "c1",
        agent,
        node,
        Envelope(session="c1", trace={"traceId": "t", "spanId": f"{number:016x}"}),
        [f"{number:016x}"],
        number,
        reading.pieces(asked),
        reading.pieces(said),
        {},
        {},
        lambda p: {"content": asked[p.at]["parts"]},
        lambda p: {"content": said[p.at]["parts"]},
        asked,
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(calls, min_size=1, max_size=6))
def test_what_a_process_remembers_is_what_the_stream_says(told: list[tuple[list[Json], str, str | None]]) -> None:
    """So it does not matter which process hears the next call."""
    with tempfile.TemporaryDirectory() as scratch:
        book = Book(Path(scratch), "here", Gate())
        for number, (asked, reply, agent) in enumerate(told):
            book.tell(call_of(number, asked, reply, agent, book.reading))
        known = book._stories["c1"]
        fresh = Story("c1", book.reading)
        stream = StreamFile("sessions/c1", Path(scratch) / "sessions" / "c1.jsonl")
        with Resolver(stream) as resolver:
            for event in stream.events():
                event.payload.update(resolver.resolve(event))
                fresh.read(event)
        assert (fresh.size, fresh.hash, fresh.is_silent) == (known.size, known.hash, False)
        assert fresh.lanes == known.lanes
        (asked, reply, _) = told[-1]
        whole = [p.key for p in book.reading.pieces([*asked, assistant(reply)])]
        assert whole in [lane.keys for lane in known.lanes.values()], (
            "the last context is the last request with its reply"
        )
