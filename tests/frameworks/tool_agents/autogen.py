"""autogen: an AssistantAgent of autogen-agentchat."""

from __future__ import annotations

from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel

from tests.frameworks.tool_agents import cases, stage

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


# --- special cases ----------------------------------------------------------------------------------------------------


def made(base_url: str, tools: list[Any], system: str = stage.SYSTEM) -> AssistantAgent:
    client = OpenAIChatCompletionClient(model="gpt-4.1-mini", base_url=base_url, api_key="none")
    return AssistantAgent("guide", client, tools=tools, system_message=system, max_tool_iterations=3)


def nested(base_url: str) -> str:
    """A tool that runs an agent."""

    async def expert(input: str) -> str:
        inner = made(base_url, [weather], cases.EXPERT)
        return str((await inner.run(task=input)).messages[-1].content)

    outer = made(base_url, [FunctionTool(expert, description="Asks.")])
    return ask(lambda _: outer, cases.ASK_EXPERT, stream=False)


def beside(base_url: str) -> str:
    """Two tools side by side, one of them slow."""
    agent = made(base_url, [weather, FunctionTool(cases.ferry, description="The ferry.")])
    return ask(lambda _: agent, cases.ASK_FERRY, stream=False)


class Place(BaseModel):
    place: str


class Weather(BaseTool[Place, Place]):
    """A tool that is a class of its own."""

    def __init__(self) -> None:
        super().__init__(Place, Place, "weather", "The forecast of a place.")

    async def run(self, args: Place, cancellation_token: CancellationToken) -> Place:
        return Place(place=stage.weather(args.place))


def own_class(base_url: str) -> str:
    return str(stage.LOOP.run_until_complete(Weather().run_json({"place": "Finse"}, CancellationToken())))


CASES = {"nested": nested, "beside": beside, "own class": own_class}
