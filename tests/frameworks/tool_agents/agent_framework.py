"""agent-framework over its OpenAI chat-completions client."""

from __future__ import annotations

from typing import Any

from agent_framework import Agent, Content, tool
from agent_framework.openai import OpenAIChatCompletionClient

from tests.frameworks.tool_agents import cases, stage

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


# --- special cases ----------------------------------------------------------------------------------------------------


def made(base_url: str, tools: list[Any], system: str = stage.SYSTEM) -> Agent:
    client = OpenAIChatCompletionClient(model=stage.MODEL, base_url=base_url, api_key="none")
    return Agent(client=client, name="guide", instructions=system, tools=tools)


def nested(base_url: str) -> str:
    """An agent as a tool."""
    expert = made(base_url, [weather], cases.EXPERT).as_tool(name="expert", arg_name="input")
    return ask(made(base_url, [expert]), cases.ASK_EXPERT, stream=False)


def beside(base_url: str) -> str:
    """Two tools side by side, one of them slow."""
    ferry = tool(name="ferry", approval_mode="never_require")(cases.ferry)
    return ask(made(base_url, [weather, ferry]), cases.ASK_FERRY, stream=False)


def content(base_url: str) -> str:
    """A tool whose result is the framework's own, awaited by hand, and which may be used once."""

    @tool(name="picture", approval_mode="never_require", max_invocations=1)
    async def picture(place: str) -> Any:
        """A picture."""
        stage.RAN.append("picture")
        return [Content.from_text(place), Content.from_data(b"png", "image/png")]

    async def run() -> str:
        first = await picture(place="Finse")
        return f"{[item.to_dict() for item in first]} {picture.invocation_count}"

    return str(stage.LOOP.run_until_complete(run()))


CASES = {"nested": nested, "beside": beside, "content": content}
