"""A chat in the terminal that remembers: its memory is its log.

    python examples/chat/chat.py agentrec

Kill it with -9 and start it again: it knows your name. Delete the log, and it does not. It talks to a scripted model in this
process; where OPENAI_BASE_URL (and OPENAI_API_KEY, OPENAI_MODEL) are set, to the one that they name.

    /fork N [ID]     go on in a new session that begins with events 0 to N; the old one stays as it is
    /at N            the context as it was after event N
    /replay [N]      what the model was given for its answer after event N, and what it answered; no model is asked.
                     Without N: for its last answer
    /summary N TEXT  in the context TEXT stands for all up to event N; the log keeps it
    /sessions        all sessions of the recording
    /session ID      go on with another session
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from openai import OpenAI

from otel_agentrec import AgentModelResult, AgentSession, AgentToolCall, OpenAIChatClient
from otel_agentrec.cli.app import run as command
from otel_agentrec.demo.script import Asked, Call, Script, Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import AgentRecError

INSTRUCTIONS = "You are a friendly assistant. Answer in one line."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "last_train",
            "description": "When the last train of the day leaves.",
            "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
        },
    }
]


class Model(Script):
    """Stands in for a model: it knows only what it is given."""

    def __init__(self) -> None:
        super().__init__([])

    def take(self, asked: Asked) -> Turn:
        role, text = asked.last
        said = " ".join(text for role, text in asked.messages if role == "user")
        names = re.findall(r"(?i:my name is|call me) (\w+)", said)
        if role == "tool":
            return Turn(f"The last one: {text}")
        if train := re.search(r"(?i)train to (\w+)", text):
            return Turn(tool_calls=[Call("last_train", {"to": train[1]})])
        if re.search(r"(?i)my name\?", text):
            return Turn(f"Your name is {names[-1]}." if names else "You have not told me your name.")
        return Turn(f"Nice to meet you, {names[-1]}!" if names and names[-1] in text else f"You said: {text}")


class Tools:
    def execute(self, call: AgentToolCall) -> str:
        return f"{call.parsed['to']} 21:42, platform 3"


@contextmanager
def model() -> Iterator[OpenAI]:
    """A client of the model that the environment names, else of the scripted one."""
    if "OPENAI_BASE_URL" in os.environ:
        yield OpenAI()
        return
    with ScriptedServer(Model()) as server:
        yield OpenAI(base_url=server.base_url, api_key="none")


class Chat:
    def __init__(self, recording: str, session_id: str, client: OpenAI) -> None:
        self.recording, self.client = recording, client
        self.open(session_id)

    def open(self, session_id: str) -> None:
        self.session = AgentSession(
            session_id,
            OpenAIChatClient(self.client),
            log=self.recording,
            tool_executor=Tools(),
            model=os.environ.get("OPENAI_MODEL", "gpt-5-mini"),
            instructions=INSTRUCTIONS,
            tools=TOOLS,
        )

    def line(self, text: str) -> None:
        """Deal with one line of the user."""
        word, _, rest = text.partition(" ")
        log = self.session.log
        if word == "/fork":
            at, _, new_id = rest.partition(" ")
            self.open(log.fork(int(at), new_id or None).session_id)
            print(f"now in session {self.session.session_id}")
        elif word == "/at":
            command(["session", "at", self.recording, self.session.session_id, str(int(rest)), "--policy", "agent"])
        elif word == "/replay":
            self.replay(int(rest) if rest else log.asked_at()[-1])
        elif word == "/summary":
            at, _, summary = rest.partition(" ")
            log.compact(1, int(at) + 1, summary)
            print(f"events 1 to {at} are now: {summary}")
        elif word == "/sessions":
            command(["session", "list", self.recording])
        elif word == "/session":
            self.open(rest)
            print(f"now in session {rest}")
        elif word.startswith("/"):
            print(__doc__)
        else:
            print(self.session.run(text).output_text)
            print(f"  (event {log.head() - 1})")

    def replay(self, seq: int) -> None:
        """What the model was given, and its answer as the log has it."""
        prompt = self.session.prompt_at(seq)
        for item in prompt.items:
            for part in item["parts"]:
                print(f"  {item['role']}: {part.get('content', part.get('response', part.get('arguments')))}")
        print(f"-> {said(self.session.answer_at(seq))}")


def said(result: AgentModelResult) -> str:
    calls = ", ".join(f"{call.name}({call.arguments})" for call in result.tool_calls)
    return result.output_text or calls


def main() -> None:
    recording = sys.argv[1] if len(sys.argv) > 1 else "agentrec"
    with model() as client:
        chat = Chat(recording, sys.argv[2] if len(sys.argv) > 2 else "chat", client)
        while True:
            try:
                text = input("> " if sys.stdin.isatty() else "").strip()
            except EOFError:
                return
            try:
                if text:
                    chat.line(text)
            except (AgentRecError, ValueError, IndexError) as error:
                print(f"no: {error}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
