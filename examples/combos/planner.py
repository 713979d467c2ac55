"""What the programs of this folder share: an agent in a few lines, the tools that it uses, and a process that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
import scene

from otel_agentrec import AgentPrompt, AgentToolCall, AgentToolResult, ModelClient, ToolExecutor, agent_run

PROMPT = AgentPrompt(scene.MODEL, scene.QUESTION, tools=[{"type": "function", **tool} for tool in scene.OFFERED])
NEW = (Path(f"agentrec-combo{n}") for n in ("", *(f"-{i}" for i in range(2, 1000))))
FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else next(folder for folder in NEW if not folder.exists())
"""Where a program keeps what it keeps: new each time, so that it begins at the beginning."""


class Tools:
    """The tools of the scene. Each call leaves a line in a file, so that it can be counted over processes."""

    def __init__(self, effects: Path) -> None:
        self.effects = effects

    def execute(self, call: AgentToolCall) -> str:
        with self.effects.open("a") as effects:
            effects.write(f"{call.name}\n")
        return scene.TOOLS[call.name](**call.parsed)


def plan(
    model: ModelClient,
    tools: ToolExecutor,
    prompt: AgentPrompt = PROMPT,
    *,
    session_id: str | None = None,
    listeners: Iterable[Any] = (),
    after_step: Callable[[], object] = lambda: None,
) -> str:
    """The agent: it asks, runs what the model asks for, and asks again until it has an answer."""
    with agent_run("trip planner", session_id=session_id, listeners=listeners) as run:
        answer = None
        while answer is None or answer.tool_calls:
            with run.step() as step:
                with step.model_call(prompt) as call:
                    answer = model.create(prompt)
                    call.response(answer)
                items = [*prompt.items, *answer.memory_items]
                for asked in answer.tool_calls:
                    with step.tool_call(asked.name, asked.parsed, call_id=asked.call_id) as call:
                        result = AgentToolResult(asked.name, asked.call_id, tools.execute(asked))
                        call.result(result)
                    items.append(result.to_item())
                prompt = replace(prompt, items=items)
            after_step()
        run.final_output(answer.output_text)
    return answer.output_text


def in_a_process(*words: str) -> int:
    """Run this program once more, with further words; its exit code (-9: killed)."""
    command = [sys.executable, sys.argv[0], str(FOLDER), *words]
    code = subprocess.run(command, env={**os.environ}, timeout=60).returncode
    print(f"   that process ended with {code}\n", flush=True)
    return code


def die() -> None:
    """What ``kill -9`` does: nothing is closed, nothing is saved."""
    sys.stdout.flush()
    os.kill(os.getpid(), 9)
