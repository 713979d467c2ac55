"""crewai: an agent with native tool calls, and one that calls its tools in text."""

from __future__ import annotations

import os
from typing import Any

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_DISABLE_TRACKING="true", CREWAI_TRACING_ENABLED="false")

from crewai import LLM, Agent
from crewai.tools import tool
from openinference.instrumentation.crewai import CrewAIInstrumentor

from tests.frameworks.tool_agents import stage

CrewAIInstrumentor().instrument()
weather = tool("weather")(stage.weather)
last_train = tool("last_train")(stage.last_train)


def build(base_url: str) -> Any:
    llms = {s: LLM(model=f"openai/{stage.MODEL}", base_url=base_url, api_key="none", stream=s) for s in (False, True)}
    return {
        s: Agent(role="Guide", goal="answer", backstory=stage.SYSTEM, tools=[weather, last_train], llm=llm, cache=False)
        for s, llm in llms.items()
    }


def ask(agents: Any, question: str, *, stream: bool) -> str:
    return str(agents[stream].kickoff(question))


def use(agents: Any, start: str) -> Any:
    return last_train.run(start=start, to="Oslo")
