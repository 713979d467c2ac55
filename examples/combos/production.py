"""Everything on: capture to disk + resume from the recording + session store + audit chain. Killed in the middle, started again.

Where tools run in a framework, ``otel-agentrec run --resume`` does the second part without any of these lines
(``examples/resume``).
"""

import os
import sys
from dataclasses import replace

from openai import OpenAI
from planner import FOLDER, PROMPT, Tools, die, in_a_process, plan, scene

from otel_agentrec import (
    AgentSession,
    FileAgentSessionStore,
    HashChainedEventLog,
    JsonlIoCaptureSink,
    OpenAIChatClient,
    ResumableModelClient,
    ResumableToolExecutor,
    ResumeCache,
    configure,
    verify,
)
from otel_agentrec.demo.server import ScriptedServer

RECORDING = FOLDER / "recording"


def agent(dies: bool) -> None:
    crashed = RECORDING.exists()  # a service would look for runs that did not come to their end
    sink, audit = JsonlIoCaptureSink(FOLDER / "nodes.jsonl"), HashChainedEventLog()
    with configure(RECORDING, sinks=[sink], listeners=[audit]):
        cache = ResumeCache.from_recording(RECORDING) if crashed else ResumeCache()
        model = ResumableModelClient(OpenAIChatClient(OpenAI()), cache)
        tools = ResumableToolExecutor(Tools(FOLDER / "effects.txt"), cache)

        store, session = FileAgentSessionStore(FOLDER / "sessions"), AgentSession("trip-1", model)
        kept = store.load("trip-1")
        if kept is not None:
            session.restore(kept)

        session.log.user(scene.QUESTION)
        prompt = replace(PROMPT, items=session.memory)
        answer = plan(model, tools, prompt, session_id="trip-1", after_step=die if dies else lambda: None)
        session.log.reply(answer)
        session.log.turn_completed()
        store.save(session.snapshot())

    print(answer)
    print(
        f"model: {cache.model_hits} hit, {cache.model_misses} asked; tools: {cache.tool_hits} hits, {cache.tool_misses} made"
    )
    print(f"session: {store.load('trip-1').version} events; nodes: {sink.size()}; audit: {audit.verify_chain()}")
    assert (cache.model_hits, cache.model_misses, cache.tool_hits, cache.tool_misses) == (1, 1, 2, 0)
    assert audit.verify_chain().is_valid


if len(sys.argv) > 2:
    agent(dies=sys.argv[2] == "dies")
else:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ScriptedServer(scene.SCRIPT) as server:
        os.environ.update(OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="none")
        assert in_a_process("dies") == -9
        assert in_a_process("runs") == 0
        assert len(server.requests) == 2, "no answer was paid twice"
    assert (FOLDER / "effects.txt").read_text().split() == ["weather", "last_train"], "no tool ran twice"
    report = verify(RECORDING)
    print(
        f"recording: {report.kind or 'intact'}, exit code {report.exit_code} (3: the killed process did not close its stream)"
    )
    assert report.is_valid
