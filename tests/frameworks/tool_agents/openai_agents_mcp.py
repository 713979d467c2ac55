"""The OpenAI Agents SDK with the tool of an MCP server, which is started anew for every question."""

from __future__ import annotations

from typing import Any

from agents import Agent, Runner
from agents.mcp import MCPServerStdio

from tests.frameworks.tool_agents import mcp, stage
from tests.frameworks.tool_agents.openai_agents import model

QUESTION = stage.SIMPLE


def build(base_url: str) -> str:
    return base_url


def ask(base_url: str, question: str, *, stream: bool) -> str:
    async def run(how: dict[str, Any]) -> str:
        async with MCPServerStdio(how, client_session_timeout_seconds=60) as server:  # type: ignore[arg-type, unused-ignore]
            agent = Agent("guide", model=model(base_url), mcp_servers=[server])
            if not stream:
                return (await Runner.run(agent, question)).final_output
            streamed = Runner.run_streamed(agent, question)
            async for _ in streamed.stream_events():
                pass
            return streamed.final_output

    with mcp.server() as how:
        return stage.LOOP.run_until_complete(run(how))
