"""A program that knows nothing of being resumed: a loop over the OpenAI SDK whose tools have effects. Six steps, then an answer.

    python unchanged.py EFFECTS KILL_AT [WORD ...]

KILL_AT as in ``agent.py``, or ``answered:sN`` (the model has answered the Nth time). Words: ``async``, ``stream``; ``agent`` (its calls stand in the span of an agent); ``span`` (in one that tells nothing of agents); ``bare`` (its tools are
not decorated); ``executor`` (a ResumableToolExecutor calls them); ``clock`` (what it tells the model is never the same); ``swallow`` and ``hard`` (it ends with code 0 whatever comes,
the second by ``os._exit``).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from openai import AsyncOpenAI, OpenAI

EFFECTS, KILL_AT, *WORDS = sys.argv[1:]


def die(moment: str, call: str) -> None:
    if f"{moment}:{call}" == KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()


def charge(order: str) -> dict[str, str]:
    die("inside", order)
    fd = os.open(EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, order.encode() + b"\n")
    os.close(fd)
    die("after", order)
    return {"receipt": f"r-{order}"}


if "executor" in WORDS:
    from otel_agentrec import AgentToolCall, ResumableToolExecutor, ResumeCache

    class Shop:
        def execute(self, call: AgentToolCall, run: Any = charge) -> dict[str, str]:
            return run(**call.parsed)

    executor = ResumableToolExecutor(Shop(), ResumeCache())

    def charge(order: str) -> dict[str, str]:
        return executor.execute(AgentToolCall("charge", {"order": order}))

elif "bare" not in WORDS:
    from otel_agentrec.resume.tools import resumable_tool

    charge = resumable_tool(charge)

TOOL = {"name": "charge", "parameters": {"type": "object", "properties": {"order": {"type": "string"}}}}
SYSTEM = f"It is {time.time_ns()}." if "clock" in WORDS else "You charge orders."
asked: dict[str, Any] = {"model": "gpt-5-mini", "tools": [{"type": "function", "function": TOOL}]}
messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Charge them all."}]


def step(number: int, message: Any) -> bool:
    """Take an answer of the model and do what it asks for; False when it asks for nothing more."""
    if not message.tool_calls:
        print(message.content)
        return False
    messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
    with ThreadPoolExecutor(2) as pool:
        orders = [json.loads(call.function.arguments)["order"] for call in message.tool_calls]
        contexts = [copy_context() for _ in orders]
        results = list(pool.map(lambda order, context: context.run(charge, order), orders, contexts))
    for call, order, result in zip(message.tool_calls, orders, results, strict=True):
        messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
        die("done", order)
    return True


def plain() -> None:
    client = OpenAI()
    for number in range(1, 20):
        die("before", f"s{number}")
        if "stream" in WORDS:
            with client.chat.completions.stream(messages=messages, **asked) as stream:
                for event in stream:
                    if event.type == "chunk":
                        print("chunk", event.chunk.model_dump_json(include={"choices"}))
                answer = stream.get_final_completion()
        else:
            answer = client.chat.completions.create(messages=messages, **asked)
        die("answered", f"s{number}")
        if not step(number, answer.choices[0].message):
            return


async def with_tasks() -> None:
    client = AsyncOpenAI()
    for number in range(1, 20):
        die("before", f"s{number}")
        answer = await client.chat.completions.create(messages=messages, **asked)
        die("answered", f"s{number}")
        if not await asyncio.to_thread(step, number, answer.choices[0].message):
            return


def main() -> None:
    around: Any = contextlib.nullcontext()
    if "agent" in WORDS:
        from otel_agentrec import agent_run

        around = agent_run("shop", session_id="s-1")
    elif "span" in WORDS:
        from opentelemetry import trace

        around = trace.get_tracer("shop").start_as_current_span("open the shop")
    with around:
        asyncio.run(with_tasks()) if "async" in WORDS else plain()


try:
    main()
except BaseException:
    if "swallow" in WORDS:
        sys.exit(0)
    if "hard" in WORDS:
        os._exit(0)
    raise
