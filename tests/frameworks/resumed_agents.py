"""The six steps of ``tests/resume/unchanged.py`` as an agent of a framework: its tools are plain functions of the framework.

python resumed_agents.py EFFECTS KILL_AT FRAMEWORK [stream]
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading

EFFECTS, KILL_AT, FRAMEWORK, *WORDS = sys.argv[1:]
TASK = "Charge them all."


def die(moment: str, call: str) -> None:
    if f"{moment}:{call}" == KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()


def charge(order: str) -> str:
    """Charge an order.

    Args:
        order: its id.
    """
    die("inside", order)
    fd = os.open(EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, order.encode() + b"\n")
    os.close(fd)
    die("after", order)
    return f"r-{order}"


async def openai_agents() -> str:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from openai import AsyncOpenAI

    model = OpenAIChatCompletionsModel("gpt-5-mini", AsyncOpenAI())
    agent = Agent(name="shop", model=model, tools=[function_tool(charge)])
    if "stream" in WORDS:
        result = Runner.run_streamed(agent, TASK)
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                print("event", event.data.type)
        return str(result.final_output)
    return str((await Runner.run(agent, TASK)).final_output)


async def pydantic_ai() -> str:
    from pydantic_ai import Agent

    Agent.instrument_all()
    agent = Agent("openai-chat:gpt-5-mini", name="shop", tools=[charge])
    if "stream" in WORDS:
        async with agent.run_stream(TASK) as streamed:
            return "".join([piece async for piece in streamed.stream_text(delta=True)])
    return str((await agent.run(TASK)).output)


async def langgraph() -> str:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    agent = create_agent(ChatOpenAI(model="gpt-5-mini"), tools=[charge], name="shop")
    asked = {"messages": [{"role": "user", "content": TASK}]}
    if "stream" in WORDS:
        text = ""
        async for piece, _ in agent.astream(asked, stream_mode="messages"):
            if piece.type == "AIMessageChunk":
                text += str(piece.content)
        return text
    return str((await agent.ainvoke(asked))["messages"][-1].content)


print(asyncio.run({"openai-agents": openai_agents, "pydantic-ai": pydantic_ai, "langgraph": langgraph}[FRAMEWORK]()))
