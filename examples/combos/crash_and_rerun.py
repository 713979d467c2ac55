"""Run again after a crash, without a second effect: ``ResumableModelClient`` + ``ResumableToolExecutor``, and
``save_to_json`` to get from one process to the next.
"""

import os
import sys

from openai import OpenAI
from planner import FOLDER, Tools, die, in_a_process, plan, scene

from otel_agentrec import OpenAIChatClient, ResumableModelClient, ResumableToolExecutor, ResumeCache
from otel_agentrec.demo.server import ScriptedServer


def agent(dies: bool) -> None:
    cache = ResumeCache.load_from_json(FOLDER / "resume.json")  # absent: empty
    model = ResumableModelClient(OpenAIChatClient(OpenAI()), cache)
    tools = ResumableToolExecutor(Tools(FOLDER / "effects.txt"), cache)

    def after_step() -> None:
        cache.save_to_json(FOLDER / "resume.json")
        if dies:
            die()

    print(plan(model, tools, after_step=after_step))
    print(f"model: {cache.model_hits} answers from the cache, {cache.model_misses} asked for")
    print(f"tools: {cache.tool_hits} results from the cache, {cache.tool_misses} calls made")
    assert (cache.model_hits, cache.model_misses, cache.tool_hits, cache.tool_misses) == (1, 1, 2, 0)


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
