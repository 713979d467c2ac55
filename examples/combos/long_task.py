"""A long task that outlives its process: a session store. What was said before the restart, the model is told after it."""

import os
import sys

from openai import OpenAI
from planner import FOLDER, PROMPT, Tools, die, in_a_process, scene

from otel_agentrec import AgentSession, FileAgentSessionStore, OpenAIChatClient
from otel_agentrec.demo.script import Turn
from otel_agentrec.demo.server import ScriptedServer

LATER = "And from which platform?"


def agent(text: str, dies: bool) -> None:
    store = FileAgentSessionStore(FOLDER / "sessions")
    tools = Tools(FOLDER / "effects.txt")
    client = OpenAIChatClient(OpenAI())
    session = AgentSession("trip-1", client, tool_executor=tools, model=PROMPT.model, tools=PROMPT.tools)
    kept = store.load("trip-1")
    if kept is not None:
        session.restore(kept)  # checks the hashes first
        print(f"restored: {kept.version} events, {len(session.memory)} messages")
    print(session.run(text).output_text)
    store.save(session.snapshot())
    if dies:
        die()


if len(sys.argv) > 2:
    agent(sys.argv[2], dies=sys.argv[2] == scene.QUESTION)
else:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ScriptedServer([*scene.SCRIPT, Turn("From platform 3.")]) as server:
        os.environ.update(OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="none")
        assert in_a_process(scene.QUESTION) == -9
        assert in_a_process(LATER) == 0
        told = [(m["role"], m["content"]) for m in server.requests[-1].body["messages"] if m.get("content")]
    assert ("user", scene.QUESTION) in told and ("assistant", scene.ANSWER) in told and told[-1] == ("user", LATER), (
        told
    )
    assert (FOLDER / "effects.txt").read_text().split() == ["weather", "last_train"]
