"""A program that knows nothing of being resumed and does several jobs in one process, each in the span of an agent.

    python jobs_app.py EFFECTS KILL_AT HOW JOBS [WORD ...]

JOBS: ``agent/job`` with commas between them. Each asks the model three times and charges two orders, ``job1`` and ``job2``. HOW: ``loop`` (one after the other), ``threads``, ``tasks`` (side by side). KILL_AT: ``before:job2`` (before the model call that
asks for it), ``inside:job2``, ``after:job2`` (the tool's window), ``done:job2``, ``end:job`` (before its last model call),
``ended:job`` (its agent has ended), or ``never``. Words: ``clock`` (what each job tells the model is never the same), ``skip`` (a
job whose name stands in the file EFFECTS.skip is not done), ``new`` (each job is preceded by one of an agent ``other`` that charges
``job1`` without a model), ``alone`` (a call without an agent at the start), ``swallow`` (what stops a job does not stop the next).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from contextlib import nullcontext
from contextvars import copy_context
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, OpenAI

from otel_agentrec import agent_run
from otel_agentrec.resume.tools import resumable_tool

EFFECTS, KILL_AT, HOW, JOBS, *WORDS = sys.argv[1:]


def die(moment: str, what: str) -> None:
    if f"{moment}:{what}" == KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()


@resumable_tool
def charge(order: str) -> dict[str, str]:
    die("inside", order)
    fd = os.open(EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, order.encode() + b"\n")
    os.close(fd)
    die("after", order)
    return {"receipt": f"r-{order}"}


TOOL = {"name": "charge", "parameters": {"type": "object", "properties": {"order": {"type": "string"}}}}
asked: dict[str, Any] = {"model": "gpt-5-mini", "tools": [{"type": "function", "function": TOOL}]}


def begin(job: str) -> list[Any]:
    words = f"It is {time.time_ns()}." if "clock" in WORDS else "You charge orders."
    return [{"role": "system", "content": words}, {"role": "user", "content": f"Do job {job}."}]


def step(job: str, messages: list[Any], message: Any) -> bool:
    """Do what an answer of the model asks for; False when it asks for nothing more."""
    if not message.tool_calls:
        print(message.content)
        return False
    messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
    for call in message.tool_calls:
        order = json.loads(call.function.arguments)["order"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(charge(order))})
        die("done", order)
    return True


def moment(job: str, number: int) -> None:
    die(*(("before", f"{job}{number}") if number < 3 else ("end", job)))


def do(agent: str, job: str) -> None:
    with agent_run(agent) if agent != "none" else nullcontext():
        messages = begin(job)
        for number in (1, 2, 3):
            moment(job, number)
            answer = OpenAI().chat.completions.create(messages=messages, **asked)
            if not step(job, messages, answer.choices[0].message):
                break
    die("ended", job)


async def do_task(agent: str, job: str) -> None:
    async with agent_run(agent):
        messages = begin(job)
        for number in (1, 2, 3):
            moment(job, number)
            answer = await AsyncOpenAI().chat.completions.create(messages=messages, **asked)
            if not step(job, messages, answer.choices[0].message):
                break
    die("ended", job)


def main() -> None:
    jobs = [one.split("/") for one in JOBS.split(",")]
    if "skip" in WORDS:
        left_out = Path(f"{EFFECTS}.skip").read_text().split()
        jobs = [(agent, job) for agent, job in jobs if job not in left_out]
    if HOW == "threads":
        workers = [threading.Thread(target=copy_context().run, args=(do, *one)) for one in jobs]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    elif HOW == "tasks":

        async def together() -> None:
            await asyncio.gather(*(do_task(*one) for one in jobs))

        asyncio.run(together())
    else:
        for agent, job in jobs:
            if "new" in WORDS:
                with agent_run("other"):
                    charge(f"{job}1")
            try:
                do(agent, job)
            except BaseException:
                if "swallow" not in WORDS:
                    raise
    print("all jobs are done")


main()
