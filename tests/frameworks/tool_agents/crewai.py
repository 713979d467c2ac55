"""crewai: an agent with native tool calls, and one that calls its tools in text."""

from __future__ import annotations

import os
from typing import Any

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_DISABLE_TRACKING="true", CREWAI_TRACING_ENABLED="false")

from crewai import LLM, Agent
from crewai.tools import tool
from openinference.instrumentation.crewai import CrewAIInstrumentor

from tests.frameworks.tool_agents import cases, stage

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


# --- special cases ----------------------------------------------------------------------------------------------------


def made(base_url: str, tools: list[Any], system: str = stage.SYSTEM) -> Any:
    llm = LLM(model=f"openai/{stage.MODEL}", base_url=base_url, api_key="none")
    return Agent(role="Guide", goal="answer", backstory=system, tools=tools, llm=llm, cache=False)


def nested(base_url: str) -> str:
    """A tool that runs an agent."""
    inner = made(base_url, [weather], cases.EXPERT)

    @tool("expert")
    def expert(input: str) -> str:
        """Asks."""
        return str(inner.kickoff(input))

    return str(made(base_url, [expert]).kickoff(cases.ASK_EXPERT))


def beside(base_url: str) -> str:
    """Two tools side by side, one of them slow."""
    return str(made(base_url, [weather, tool("ferry")(cases.ferry_now)]).kickoff(cases.ASK_FERRY))


def limited(base_url: str) -> str:
    """A tool that may be used twice is used three times; the third use fails, whether or not the first two were answered."""
    rare = tool("rare", max_usage_count=2)(stage.weather)
    said = [str(rare.run(place="Finse")), str(rare.run("Oslo")), str(rare.run(place="Bergen"))]
    return f"{said} {rare.current_usage_count}"


def structured(base_url: str) -> str:
    """What agents do whose model calls tools in text."""
    plain = weather.to_structured_tool()
    asked = '{"place": "Oslo"}'
    return f"{plain.invoke({'place': 'Finse'})} {plain.invoke(asked)}"


CASES = {"nested": nested, "beside": beside, "limited": limited, "structured": structured}
