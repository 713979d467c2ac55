"""Strands Agents over the OpenAI chat API, with its own telemetry."""

from __future__ import annotations

from typing import Any

from mcp.client.stdio import StdioServerParameters, stdio_client
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient

from tests.frameworks.tool_agents import cases, mcp, stage

weather = tool(stage.weather)
last_train = tool(stage.last_train)


def make(base_url: str, tools: list[Any], system: str = stage.SYSTEM, **more: Any) -> Agent:
    model = OpenAIModel(client_args={"base_url": base_url, "api_key": "none"}, model_id=stage.MODEL)
    return Agent(model=model, system_prompt=system, tools=tools, callback_handler=None, **more)


def build(base_url: str) -> Any:
    def agent() -> Agent:
        return make(base_url, [weather, last_train])

    return agent


def ask(built: Any, question: str, *, stream: bool) -> str:
    agent = built()

    async def run() -> str:
        if not stream:
            return str(await agent.invoke_async(question)).strip()
        pieces = [event["data"] async for event in agent.stream_async(question) if "data" in event]
        return "".join(pieces)

    return stage.LOOP.run_until_complete(run())


# --- cases of its own ----------------------------------------------------------------------------------------------------


def nested(base_url: str) -> str:
    """An agent as a tool."""
    expert = make(base_url, [weather], cases.EXPERT).as_tool(name="expert", description="asks")
    return ask(lambda: make(base_url, [expert]), cases.ASK_EXPERT, stream=False)


def beside(base_url: str) -> str:
    """Two tools side by side, one of them slow."""
    return ask(lambda: make(base_url, [weather, tool(cases.ferry)]), cases.ASK_FERRY, stream=False)


@tool
async def counting(start: str, to: str) -> Any:
    """A tool that tells of its progress."""
    stage.RAN.append("counting")
    yield {"platform": 2.0}
    yield f"{start} to {to}: none"


def progress(base_url: str) -> str:
    """The progress of a tool, as the program sees it."""

    async def run() -> str:
        told = []
        async for event in make(base_url, [weather, counting]).stream_async(cases.COUNT):
            inner = event.get("tool_stream_event")
            told += [inner["data"]] if inner else []
        return str(told)

    return stage.LOOP.run_until_complete(run())


def mcp_server(base_url: str) -> str:
    """A tool of an MCP server, whose session lives on a thread and loop of its own."""
    with mcp.server() as how, MCPClient(lambda: stdio_client(StdioServerParameters(**how))) as client:
        return ask(lambda: make(base_url, client.list_tools_sync()), stage.SIMPLE, stream=False)


CASES = {"mcp": mcp_server, "nested": nested, "beside": beside, "progress": progress}
