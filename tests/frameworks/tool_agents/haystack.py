"""haystack: an Agent over its OpenAI chat generator."""

from __future__ import annotations

import os
from typing import Any

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from openinference.instrumentation.haystack import HaystackInstrumentor

from tests.frameworks.tool_agents import cases, stage

HaystackInstrumentor().instrument()
weather = create_tool_from_function(stage.weather)
last_train = create_tool_from_function(stage.last_train)


def build(base_url: str) -> Any:
    client = OpenAIChatGenerator(model=stage.MODEL, api_base_url=base_url, api_key=Secret.from_token("none"))
    return Agent(chat_generator=client, system_prompt=stage.SYSTEM, tools=[weather, last_train])


def ask(agent: Any, question: str, *, stream: bool) -> str:
    seen: list[Any] = []
    callback = {"streaming_callback": seen.append} if stream else {}
    out = agent.run(messages=[ChatMessage.from_user(question)], **callback)
    assert bool(seen) == stream
    return out["last_message"].text or ""


def use(agent: Any, start: str) -> Any:
    return last_train.invoke(start=start, to="Oslo")


# --- special cases ----------------------------------------------------------------------------------------------------


def made(base_url: str, tools: list[Any], system: str = stage.SYSTEM, **more: Any) -> Agent:
    client = OpenAIChatGenerator(model=stage.MODEL, api_base_url=base_url, api_key=Secret.from_token("none"))
    return Agent(chat_generator=client, system_prompt=system, tools=tools, **more)


def nested(base_url: str) -> str:
    """A tool that runs an agent."""
    inner = made(base_url, [weather], cases.EXPERT)

    def expert(input: str) -> str:
        """Asks."""
        return ask(inner, input, stream=False)

    return ask(made(base_url, [create_tool_from_function(expert)]), cases.ASK_EXPERT, stream=False)


def beside(base_url: str) -> str:
    """Two tools side by side, one of them slow."""
    ferry = create_tool_from_function(cases.ferry_now, name="ferry")
    return ask(made(base_url, [weather, ferry]), cases.ASK_FERRY, stream=False)


def with_state(base_url: str) -> str:
    """A tool that is also given something of the agent's state; what it gives goes there."""

    def forecast(place: str, unit: str) -> dict[str, str]:
        """The forecast of a place."""
        return {"text": stage.weather(place), "unit": unit}

    injected = create_tool_from_function(
        forecast,
        name="weather",
        inputs_from_state={"unit": "unit"},
        outputs_to_state={"seen": {"source": "text"}},
    )
    agent = made(base_url, [injected], state_schema={"unit": {"type": str}, "seen": {"type": str}})
    out = agent.run(messages=[ChatMessage.from_user(stage.SIMPLE)], unit="C")
    return f"{out['last_message'].text} {out.get('seen')}"


CASES = {"nested": nested, "beside": beside, "with state": with_state}
