"""agent-framework over its OpenAI chat-completions client."""

from __future__ import annotations

from typing import Any

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatCompletionClient

from tests.frameworks.tool_agents import stage

weather = tool(name="weather", approval_mode="never_require")(stage.weather)
last_train = tool(name="last_train", approval_mode="never_require")(stage.last_train)


def build(base_url: str) -> Any:
    client = OpenAIChatCompletionClient(model=stage.MODEL, base_url=base_url, api_key="none")
    return Agent(client=client, instructions=stage.SYSTEM, tools=[weather, last_train])


def ask(agent: Any, question: str, *, stream: bool) -> str:
    async def run() -> str:
        if not stream:
            return (await agent.run(question)).text
        return "".join([update.text async for update in agent.run(question, stream=True)])

    return stage.LOOP.run_until_complete(run())


def use(agent: Any, start: str) -> Any:
    return last_train(start=start, to="Oslo")
