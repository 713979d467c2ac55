"""Pydantic AI over the OpenAI chat API, with its own telemetry."""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.frameworks.tool_agents import cases, stage

Agent.instrument_all()


def model(base_url: str) -> OpenAIChatModel:
    provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=base_url, api_key="none"))
    return OpenAIChatModel(stage.MODEL, provider=provider)


def build(base_url: str) -> Any:
    return Agent(model(base_url), system_prompt=stage.SYSTEM, tools=[stage.weather, stage.last_train])


def ask(agent: Any, question: str, *, stream: bool) -> str:
    async def run() -> str:
        if not stream:
            done = await agent.run(question)
            return f"{done.output} ({done.usage.tool_calls} calls)"
        async with agent.run_stream(question) as streamed:
            text = "".join([piece async for piece in streamed.stream_text(delta=True)])
            return f"{text} ({streamed.usage.tool_calls} calls)"

    return stage.LOOP.run_until_complete(run())


# --- cases of its own ----------------------------------------------------------------------------------------------------


def nested(base_url: str) -> str:
    """A tool that runs an agent."""
    inner = Agent(model(base_url), system_prompt=cases.EXPERT, tools=[stage.weather])

    async def expert(input: str) -> str:
        return (await inner.run(input)).output

    return ask(Agent(model(base_url), tools=[expert]), cases.ASK_EXPERT, stream=False)


def beside(base_url: str) -> str:
    """Two tools side by side, one of them slow."""
    return ask(Agent(model(base_url), tools=[stage.weather, cases.ferry]), cases.ASK_FERRY, stream=False)


def retried(base_url: str) -> str:
    """A tool that asks the model to try again."""

    def last_train(start: str, to: str) -> str:
        stage.RAN.append("last_train")
        raise ModelRetry(f"there is no {start}")

    return ask(Agent(model(base_url), tools=[last_train]), stage.TROUBLE, stream=False)


CASES = {"nested": nested, "beside": beside, "retried": retried}
