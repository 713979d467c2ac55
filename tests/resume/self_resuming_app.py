"""A program that resumes itself, and does several jobs in one process with a client that knows its prompts.

    python self_resuming_app.py RECORDING EFFECTS KILL_AT AGENT/JOB[,...]

Each job asks a question, charges an order, and asks another one; questions that reach the model and orders are lines in EFFECTS.
KILL_AT: an order (killed after it was charged, before anybody knows), ``done:ORDER``, or ``never``.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from otel_agentrec import ResumableModelClient, ResumeCache, agent_run, configure, resumable_tool
from otel_agentrec.prompts import AgentModelResult, AgentPrompt

RECORDING, EFFECTS, KILL_AT, JOBS = sys.argv[1:]


def happens(what: str) -> None:
    fd = os.open(EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, what.encode() + b"\n")
    os.close(fd)


def die(at: str) -> None:
    if at == KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()


class Model:
    create_stream: Any = None

    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        question = str(prompt.items[-1]["content"])
        happens(question)
        return AgentModelResult(f"answer to {question}", {}, finish_reasons=["stop"])


cache = ResumeCache.from_recording(RECORDING) if os.environ.get("OTEL_AGENTREC_RESUME") else ResumeCache()
client = ResumableModelClient(Model(), cache)


@resumable_tool(cache=cache)
def charge(order: str) -> str:
    happens(order)
    die(order)
    return f"r-{order}"


def ask(run: Any, question: str) -> None:
    prompt = AgentPrompt("m", question)
    with run.step() as step, step.model_call(prompt) as call:
        call.response(client.create(prompt))


with configure(RECORDING):
    for agent, job in (one.split("/") for one in JOBS.split(",")):
        with agent_run(agent) as run:
            ask(run, f"{job}-first?")
            charge(job)
            die(f"done:{job}")
            ask(run, f"{job}-last?")
print("finished")
