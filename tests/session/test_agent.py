"""An agent whose memory is its log: seed 1 section 4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.errors import RecordingTampered, UsageError
from otel_agentrec.prompts import AgentModelResult, AgentPrompt, AgentToolCall
from otel_agentrec.session.agent import AGENT, AgentSession, TooManySteps
from otel_agentrec.session.log import SessionLog
from otel_agentrec.session.snapshot import AgentSessionSnapshot
from otel_agentrec.session.stores import FileAgentSessionStore


class Parrot:
    """Says what it was told so far; asks for a tool when the user says "look"."""

    def __init__(self) -> None:
        self.prompts: list[AgentPrompt] = []

    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        self.prompts.append(prompt)
        last = prompt.items[-1]
        if last["role"] == "user" and last["parts"][0]["content"] == "look":
            return AgentModelResult(tool_calls=[AgentToolCall("eye", {"at": n}, f"c{n}") for n in range(2)])
        said = [p.get("content", p.get("response")) for m in prompt.items for p in m["parts"]]
        return AgentModelResult(output_text=" ".join(str(s) for s in said if s))

    def create_stream(self, prompt: AgentPrompt, listener: Any = None) -> AgentModelResult:
        return self.create(prompt)


class Eye:
    def execute(self, call: AgentToolCall) -> str:
        return f"saw {call.parsed['at']}"


def test_it_remembers_what_its_log_says(tmp_path: Path) -> None:
    AgentSession("s", Parrot(), log=tmp_path / "rec").run("I am Star.")
    again = AgentSession("s", Parrot(), log=tmp_path / "rec")
    assert again.run("Who am I?").output_text == "I am Star. I am Star. Who am I?"
    assert [m["role"] for m in again.memory] == ["user", "assistant", "user", "assistant"]
    assert [e.type for e in again.log.events(1)] == [
        *("SESSION_STARTED", "USER_MESSAGE_APPENDED", "AGENT_REPLY_APPENDED", "TURN_COMPLETED"),
        *("USER_MESSAGE_APPENDED", "AGENT_REPLY_APPENDED", "TURN_COMPLETED"),
    ]


def test_every_prompt_is_what_request_at_says(tmp_path: Path) -> None:
    model = Parrot()
    session = AgentSession(
        "s",
        model,
        log=tmp_path / "rec",
        tool_executor=Eye(),
        model="m",
        instructions="Be kind.",
        tools=[{"name": "eye"}],
    )
    for text in ("hello", "look", "bye"):
        session.run(text)
    session.log.compact(2, 5, "we said hello")
    session.run("again")

    requests = [
        session.log.request_at(event.seq - 1, session._policy)
        for event in session.log.events()
        if event.type == "AGENT_REPLY_APPENDED" or (event.type == "TOOL_CALLED" and event.payload["callId"] == "c0")
    ]
    assert [r["messages"] for r in requests] == [list(p.items) for p in model.prompts]
    header = {
        "instructions": [{"type": "text", "content": "Be kind."}],
        "tools": [{"name": "eye"}],
        "parameters": {"model": "m"},
    }
    assert [r["header"] for r in requests] == [header] * len(model.prompts)
    assert model.prompts[-1].items[0]["parts"][0]["content"] == "we said hello"


def test_tools_are_run_and_logged_before_the_next_call(tmp_path: Path) -> None:
    session = AgentSession("s", Parrot(), log=tmp_path / "rec", tool_executor=Eye())
    assert session.run("look").output_text == "look saw 0 saw 1"
    assert [e.type for e in session.log.events(2)] == [
        *("USER_MESSAGE_APPENDED", "TOOL_CALLED", "TOOL_CALLED", "TOOL_RESULT_APPENDED", "TOOL_RESULT_APPENDED"),
        *("AGENT_REPLY_APPENDED", "TURN_COMPLETED"),
    ]


def test_a_model_that_never_stops_asking_is_stopped(tmp_path: Path) -> None:
    class Asking(Parrot):
        def create(self, prompt: AgentPrompt) -> AgentModelResult:
            return AgentModelResult(tool_calls=[AgentToolCall("eye", {"at": 1}, "c")])

    with pytest.raises(TooManySteps, match="no answer after 3"):
        AgentSession("s", Asking(), tool_executor=Eye(), max_steps=3).run("hi")
    with pytest.raises(UsageError, match="asks for eye, and the session has no tools"):
        AgentSession("s", Asking()).run("hi")


def test_what_the_model_raises_is_in_the_log_and_reaches_the_caller() -> None:
    class Broken(Parrot):
        def create(self, prompt: AgentPrompt) -> AgentModelResult:
            raise TimeoutError("no answer")

    session = AgentSession("s", Broken())
    with pytest.raises(TimeoutError):
        session.run("hi")
    assert list(session.log.events())[-1].payload == {"errorType": "TimeoutError", "message": "no answer"}
    session.model_client = Parrot()
    assert session.run("again").output_text == "hi again"


def test_a_session_outlives_its_process_in_a_store(tmp_path: Path) -> None:
    store = FileAgentSessionStore(tmp_path)
    session = AgentSession("s", Parrot(), tool_executor=Eye())
    session.run("look")
    store.save(session.snapshot())

    loaded = store.load("s")
    assert loaded is not None
    restored = AgentSession("s", Parrot())
    restored.restore(loaded)
    assert restored.memory == session.memory == list(loaded.memory)
    assert restored.run("bye").output_text == "look saw 0 saw 1 look saw 0 saw 1 bye"
    store.save(restored.snapshot())


def test_a_changed_snapshot_is_not_trusted() -> None:
    session = AgentSession("s", Parrot())
    session.run("pay 5")
    saved = session.snapshot().to_json()
    saved["events"][2]["event"]["payload"]["content"] = "pay 500"
    with pytest.raises(RecordingTampered, match="event 2 of sessions/s"):
        AgentSession("s", Parrot()).restore(AgentSessionSnapshot.from_json(saved))
    with pytest.raises(UsageError, match="a snapshot of session s"):
        AgentSession("other", Parrot()).restore(session.snapshot())


def test_a_log_goes_on_from_a_longer_snapshot_and_refuses_another_story(tmp_path: Path) -> None:
    source = AgentSession("s", Parrot(), log=tmp_path / "a")
    source.run("one")
    early = source.snapshot()
    source.run("two")

    other = AgentSession("s", Parrot(), log=tmp_path / "b")
    other.restore(early)
    other.restore(source.snapshot())
    other.restore(early)
    assert other.memory == source.memory

    stranger = AgentSession("s", Parrot(), log=tmp_path / "c")
    stranger.run("something else")
    with pytest.raises(RecordingTampered, match="differ at event 2"):
        stranger.restore(early)
    assert isinstance(SessionLog.open(tmp_path / "c", "s").project()[0], dict)


def test_a_turn_of_a_long_session_reads_only_what_its_saved_projection_lacks(tmp_path: Path) -> None:
    log = SessionLog.open(tmp_path / "rec", "s")  # its own policy is another one than the session's
    for n in range(50):
        log.scheduled(f"task {n}", None, "nothing new")
    session = AgentSession("s", Parrot(), log=log, model="m", tool_executor=Eye())
    session.run("hello")
    log.save_projection(AGENT)
    before, end = log.events_read, log.head()
    session.run("look")
    assert log.events_read - before <= 4 * (log.head() - end), "two model calls, each after its context and its header"
