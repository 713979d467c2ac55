"""A program of six steps whose tools have effects: it appends a line to EFFECTS per effect, and dies where KILL_AT says.

    python agent.py RECORDING EFFECTS KILL_AT threads|async|executor|executor-async

KILL_AT: ``<moment>:<tool call>``, for example ``before:s3`` (between steps), ``inside:s3b`` (after its first instruction, before
its effect), ``after:s3b`` (after its effect, before the result), ``done:s3b`` (its result is recorded, the step goes on), or
``never``. Steps 2 and 4 call two tools side by side.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from otel_agentrec import (
    AgentToolCall,
    AsyncResumableToolExecutor,
    ResumableToolExecutor,
    ResumeCache,
    agent_run,
    configure,
)
from otel_agentrec.resume.tools import resumable_tool

RECORDING, EFFECTS, KILL_AT, MODE = sys.argv[1:5]
STEPS = {1: ["s1"], 2: ["s2a", "s2b"], 3: ["s3"], 4: ["s4a", "s4b"], 5: ["s5"], 6: ["s6"]}


def die(moment: str, call: str) -> None:
    if f"{moment}:{call}" == KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()


def effect(text: str) -> None:
    fd = os.open(EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, text.encode() + b"\n")
    os.close(fd)


@resumable_tool
def charge(order: str, cents: int = 5) -> dict[str, str]:
    die("inside", order)
    effect(order)
    die("after", order)
    return {"receipt": f"r-{order}"}


@resumable_tool(name="charge_async")
async def charge_async(order: str, cents: int = 5) -> dict[str, str]:
    die("inside", order)
    effect(order)
    await asyncio.sleep(0)
    die("after", order)
    return {"receipt": f"r-{order}"}


class Shop:
    """The same tools behind the seed's ToolExecutor."""

    def execute(self, call: AgentToolCall) -> dict[str, str]:
        return charge.__wrapped__(**call.parsed)


class AsyncShop:
    async def execute(self, call: AgentToolCall) -> dict[str, str]:
        return await charge_async.__wrapped__(**call.parsed)


def asked(order: str) -> AgentToolCall:
    return AgentToolCall("charge", {"order": order, "cents": 5})


if MODE == "executor":
    executor = ResumableToolExecutor(Shop(), ResumeCache())

    def charge_it(order: str) -> dict[str, str]:
        return executor.execute(asked(order))

elif MODE == "executor-async":
    of_loop = AsyncResumableToolExecutor(AsyncShop(), ResumeCache())

    async def charge_task(order: str) -> dict[str, str]:
        return await of_loop.execute(asked(order))


if MODE != "executor":
    charge_it = charge
if MODE != "executor-async":
    charge_task = charge_async


def plain() -> None:
    with agent_run("shop", session_id="s-1") as run:
        for number, calls in STEPS.items():
            die("before", f"s{number}")
            with run.step() as step:
                with step.model_call(f"step {number}", model="scripted") as call:
                    call.response(f"call {calls}")
                with ThreadPoolExecutor(2) as pool:
                    results = list(
                        pool.map(lambda c, ctx: ctx.run(charge_it, c), calls, [copy_context() for _ in calls])
                    )
            for name, result in zip(calls, results, strict=True):
                assert result == {"receipt": f"r-{name}"}, result
                die("done", name)
        run.final_output("all charged")


async def with_tasks() -> None:
    async with agent_run("shop", session_id="s-1") as run:
        for number, calls in STEPS.items():
            die("before", f"s{number}")
            async with run.step() as step:
                async with step.model_call(f"step {number}", model="scripted") as call:
                    call.response(f"call {calls}")
                results = await asyncio.gather(*(charge_task(c) for c in calls))
            for name, result in zip(calls, results, strict=True):
                assert result == {"receipt": f"r-{name}"}, result
                die("done", name)
        run.final_output("all charged")


with configure(RECORDING):
    if MODE.endswith("async"):
        asyncio.run(with_tasks())
    else:
        plain()
print("finished")
