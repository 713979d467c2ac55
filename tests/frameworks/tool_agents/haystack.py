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

from tests.frameworks.tool_agents import stage

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
