"""The six steps of ``tests/resume/unchanged.py`` as an agent of a framework: its tools are plain functions of the framework.

python resumed_agents.py EFFECTS KILL_AT FRAMEWORK [stream]

KILL_AT ``model:N`` is not for the program: it is killed from outside while its request N is under way.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import Any

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


def heard(piece: str) -> str:
    print("piece", repr(piece))
    return piece


async def openai_agents() -> str:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from openai import AsyncOpenAI

    model = OpenAIChatCompletionsModel("gpt-5-mini", AsyncOpenAI())
    agent = Agent(name="shop", model=model, tools=[function_tool(charge)])
    if "stream" in WORDS:
        result = Runner.run_streamed(agent, TASK)
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                print("event", event.data.type, repr(getattr(event.data, "delta", None)))
        return str(result.final_output)
    return str((await Runner.run(agent, TASK)).final_output)


async def pydantic_ai() -> str:
    from pydantic_ai import Agent

    Agent.instrument_all()
    agent = Agent("openai-chat:gpt-5-mini", name="shop", tools=[charge])
    if "stream" in WORDS:
        async with agent.run_stream(TASK) as streamed:
            return "".join([heard(piece) async for piece in streamed.stream_text(delta=True, debounce_by=None)])
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
                text += heard(str(piece.content))
        return text
    return str((await agent.ainvoke(asked))["messages"][-1].content)


async def anthropic() -> str:
    """A loop by hand over Anthropic's messages; of a stream every event is printed."""
    from anthropic import AsyncAnthropic

    from otel_agentrec import resumable_tool

    client = AsyncAnthropic(base_url=os.environ["OPENAI_BASE_URL"].removesuffix("/v1"), api_key="none")
    schema = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
    tool, done = {"name": "charge", "input_schema": schema}, resumable_tool(charge)
    messages: list[Any] = [{"role": "user", "content": TASK}]
    while True:
        asked: Any = {"model": "claude-sonnet-4-5", "max_tokens": 200, "messages": messages, "tools": [tool]}
        if "stream" in WORDS:
            async with client.messages.stream(**asked) as stream:
                async for event in stream:
                    print("event", event.model_dump_json())
                message = await stream.get_final_message()
        else:
            message = await client.messages.create(**asked)
        uses = [block for block in message.content if block.type == "tool_use"]
        if not uses:
            return "".join(block.text for block in message.content if block.type == "text")
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": done(**use.input)} for use in uses]
        said = [block.model_dump(include={"type", "text", "id", "name", "input"}) for block in message.content]
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": results}]


AGENTS = {"openai-agents": openai_agents, "pydantic-ai": pydantic_ai, "langgraph": langgraph, "anthropic": anthropic}
print(asyncio.run(AGENTS[FRAMEWORK]()))
