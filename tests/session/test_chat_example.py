"""The chat of examples/chat as its user has it: it remembers after kill -9, forgets with its log, forks and travels in time."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from otel_agentrec import AgentModelResult, AgentPrompt, AgentSession
from otel_agentrec.clients.chat import ChatWire
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import UsageError

CHAT = Path(__file__).parents[2] / "examples" / "chat" / "chat.py"
ROOT = CHAT.parents[2]


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("chat_example", CHAT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Terminal:
    """The chat in a process of its own, line by line."""

    def __init__(self, recording: Path, session: str = "chat", base_url: str | None = None) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")}
        named = {} if base_url is None else {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}
        self.child = subprocess.Popen(
            [sys.executable, str(CHAT), str(recording), session],
            env={**kept, **named, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, text: str) -> str:
        """What the chat answers; the line with the event's number is read too."""
        assert self.child.stdin is not None and self.child.stdout is not None
        self.child.stdin.write(text + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline().rstrip("\n")
        if not text.startswith("/"):
            assert self.child.stdout.readline().startswith("  (event ")
        return answer

    def kill(self) -> None:
        self.child.kill()
        assert self.child.wait() == -9

    def end(self) -> str:
        out, _ = self.child.communicate(timeout=60)
        assert self.child.returncode == 0
        return out


def test_it_knows_the_name_after_a_kill_and_forgets_it_with_the_log(tmp_path: Path) -> None:
    recording = tmp_path / "rec"
    first = Terminal(recording)
    assert first.say("My name is Star.") == "Nice to meet you, Star!"
    first.kill()
    second = Terminal(recording)
    assert second.say("What is my name?") == "Your name is Star."
    second.end()
    for file in (recording / "sessions").iterdir():
        file.unlink()
    third = Terminal(recording)
    assert third.say("What is my name?") == "You have not told me your name."
    third.end()


def test_a_fork_at_5_of_10_goes_its_own_way(tmp_path: Path) -> None:
    recording = tmp_path / "rec"
    chat = Terminal(recording)
    chat.say("My name is Star.")  # events 1 to 5
    chat.say("Call me Moon instead.")
    chat.say("When is the last train to Oslo?")
    before = (recording / "sessions" / "chat.jsonl").read_bytes()
    assert len(before.splitlines()) > 10
    assert chat.say("/fork 5 branch-b") == "now in session branch-b"
    assert chat.say("What is my name?") == "Your name is Star."
    assert chat.say("/session chat") == "now in session chat"
    chat.end()
    assert (recording / "sessions" / "chat.jsonl").read_bytes() == before
    again = Terminal(recording)
    assert again.say("What is my name?") == "Your name is Moon."
    again.end()


def test_replay_and_at_show_what_the_model_was_given(tmp_path: Path) -> None:
    chat = Terminal(tmp_path / "rec")
    chat.say("My name is Star.")
    chat.say("When is the last train to Oslo?")
    assert chat.child.stdin is not None
    chat.child.stdin.write("/replay\n/replay 3\n/at 5\n/sessions\n/replay 5\n")
    out = chat.end()
    last, first, rest = out.split("-> ")
    assert "tool: Oslo 21:42, platform 3" in last
    assert first.startswith("The last one: Oslo 21:42, platform 3\n  user: My name is Star.\n")
    assert rest.startswith("Nice to meet you, Star!\n")
    assert "instructions: You are a friendly assistant." in rest
    assert "no: session chat: the model gave no answer after event 5" in rest


def requested(session: AgentSession) -> list[dict[str, Any]]:
    """The bodies that the log says were sent."""
    return [ChatWire().request(session.prompt_at(seq), stream=False) for seq in session.log.asked_at()]


class Nobody:
    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        raise AssertionError("no model is asked")

    create_stream = create  # type: ignore[assignment]


def test_the_log_tells_every_request_as_the_model_server_received_it(tmp_path: Path) -> None:
    """With tools, a summary in place of old events, and a process that was killed in between."""
    recording = tmp_path / "rec"
    with ScriptedServer(example().Model()) as server:
        chat = Terminal(recording, base_url=server.base_url)
        chat.say("My name is Star.")
        chat.say("When is the last train to Oslo?")
        chat.kill()
        chat = Terminal(recording, base_url=server.base_url)
        chat.say("/summary 5 The user said: my name is Star.")
        chat.say("What is my name?")
        chat.say("And the last train to Voss?")
        chat.end()
        received = [r.body for r in server.requests]
    session = AgentSession("chat", Nobody(), log=recording)
    assert len(received) == 6
    assert requested(session) == received
    answers = [session.answer_at(seq) for seq in session.log.asked_at()]
    assert [a.output_text for a in answers if a.output_text][-2:] == [
        "Your name is Star.",
        "The last one: Voss 21:42, platform 3",
    ]


def test_a_turn_without_an_answer_is_not_made_up(tmp_path: Path) -> None:
    session = AgentSession("s", Nobody(), log=tmp_path / "rec")
    session.log.user("Are you there?")
    with pytest.raises(UsageError, match="gave no answer after event 2"):
        session.answer_at(2)
