"""OpenAI Agents SDK over chat completions; its tools raise instead of making text of exceptions."""

from __future__ import annotations

from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

from tests.frameworks.tool_agents import cases, mcp, stage

OpenAIAgentsInstrumentor().instrument()
weather = function_tool(stage.weather)
last_train = function_tool(stage.last_train, failure_error_function=None)


def model(base_url: str) -> OpenAIChatCompletionsModel:
    return OpenAIChatCompletionsModel(stage.MODEL, AsyncOpenAI(base_url=base_url, api_key="none"))


def build(base_url: str) -> Any:
    return Agent("guide", instructions=stage.SYSTEM, model=model(base_url), tools=[weather, last_train])


def ask(agent: Any, question: str, *, stream: bool) -> str:
    async def run() -> str:
        if not stream:
            return (await Runner.run(agent, question)).final_output
        streamed = Runner.run_streamed(agent, question)
        async for _ in streamed.stream_events():
            pass
        return streamed.final_output

    return stage.LOOP.run_until_complete(run())


# --- cases of its own ----------------------------------------------------------------------------------------------------


def nested(base_url: str) -> str:
    """An agent as a tool."""
    expert = Agent("expert", instructions=cases.EXPERT, model=model(base_url), tools=[weather])
    outer = Agent("guide", instructions=stage.SYSTEM, model=model(base_url), tools=[expert.as_tool("expert", "asks")])
    return ask(outer, cases.ASK_EXPERT, stream=False)


def beside(base_url: str) -> str:
    """Two tools side by side, one of them slow."""
    tools = [weather, function_tool(cases.ferry)]
    return ask(Agent("guide", model=model(base_url), tools=tools), cases.ASK_FERRY, stream=False)


def text(base_url: str) -> str:
    """A tool whose exceptions become text for the model."""
    tools = [weather, function_tool(stage.last_train)]
    return ask(Agent("guide", model=model(base_url), tools=tools), stage.TROUBLE, stream=True)


def mcp_server(base_url: str) -> str:
    """A tool of an MCP server, which the SDK calls on the session of the server."""

    async def run(how: dict[str, Any]) -> str:
        async with MCPServerStdio(params=how) as server:  # type: ignore[arg-type, unused-ignore]
            agent = Agent("guide", model=model(base_url), mcp_servers=[server])
            return (await Runner.run(agent, stage.SIMPLE)).final_output

    with mcp.server() as how:
        return stage.LOOP.run_until_complete(run(how))


CASES = {"mcp": mcp_server, "nested": nested, "beside": beside, "text": text}
