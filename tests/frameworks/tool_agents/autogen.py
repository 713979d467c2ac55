"""autogen: an AssistantAgent of autogen-agentchat."""

from __future__ import annotations

from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

from tests.frameworks.tool_agents import stage

weather = FunctionTool(stage.weather, description="The forecast of a place.")
last_train = FunctionTool(stage.last_train, description="The last train of the day.")


def build(base_url: str) -> Any:
    def agent(stream: bool) -> AssistantAgent:
        client = OpenAIChatCompletionClient(model="gpt-4.1-mini", base_url=base_url, api_key="none")
        return AssistantAgent(
            "guide",
            client,
            tools=[weather, last_train],
            system_message=stage.SYSTEM,
            model_client_stream=stream,
            max_tool_iterations=3,
        )

    return agent


def ask(make: Any, question: str, *, stream: bool) -> str:
    async def run() -> str:
        agent = make(stream)
        if not stream:
            return (await agent.run(task=question)).messages[-1].content
        async for item in agent.run_stream(task=question):
            last = item
        return last.messages[-1].content

    return stage.LOOP.run_until_complete(run())


def use(make: Any, start: str) -> Any:
    return stage.LOOP.run_until_complete(
        last_train.run_json({"start": start, "to": "Oslo"}, CancellationToken(), call_id="by-hand")
    )
