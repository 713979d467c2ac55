"""smolagents: an agent that calls tools by JSON; its answer is a tool call too."""

from __future__ import annotations

from typing import Any

from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from smolagents import CodeAgent, OpenAIModel, ToolCallingAgent, tool

from otel_agentrec.demo.script import Call, Turn, When
from tests.frameworks.tool_agents import cases, stage

SmolagentsInstrumentor().instrument()
GAVE = Turn(
    tool_calls=[Call("final_answer", {"answer": "They gave: {last}"}, id="call-9")],
    when=When(last="light rain|platform 3|closed"),
    times=0,
)
SCRIPT = [GAVE, *stage.SCRIPT]


@tool
def weather(place: str) -> str:
    """The forecast of a place.

    Args:
        place: where.
    """
    return stage.weather(place)


@tool
def last_train(start: str, to: str) -> str:
    """The last train of the day.

    Args:
        start: from where.
        to: where to.
    """
    return stage.last_train(start, to)


def model(base_url: str) -> OpenAIModel:
    return OpenAIModel(stage.MODEL, api_base=base_url, api_key="none")


def build(base_url: str) -> Any:
    return ToolCallingAgent(tools=[weather, last_train], model=model(base_url), max_steps=2, verbosity_level=0)


def ask(agent: Any, question: str, *, stream: bool) -> str:
    if not stream:
        return str(agent.run(question))
    *_, last = agent.run(question, stream=True)
    return str(last.output)


# --- cases of its own ----------------------------------------------------------------------------------------------------

CODE = "Use code to tell of Finse."
CASES_SCRIPT = [
    GAVE,
    Turn(
        "Thought: code.\n<code>\nfinal_answer(weather('Finse') + ' / ' + str(weather(place='Oslo')))\n</code>",
        when=When(any=CODE),
        times=0,
    ),
    Turn(tool_calls=[Call("weather", {"place": "Finse"}, id="call-7")], when=When(any="named 'expert'"), times=0),
    Turn(tool_calls=[Call("expert", {"task": cases.INNER}, id="call-5")], when=When(any=cases.ASK_EXPERT), times=0),
    *cases.SCRIPT,
]


@tool
def ferry(place: str) -> str:
    """Whether the ferry goes.

    Args:
        place: where to.
    """
    return cases.ferry_now(place)


def nested(base_url: str) -> str:
    """A managed agent."""
    expert = ToolCallingAgent([weather], model(base_url), name="expert", description="asks", verbosity_level=0)
    outer = ToolCallingAgent([], model(base_url), managed_agents=[expert], max_steps=2, verbosity_level=0)
    return ask(outer, cases.ASK_EXPERT, stream=False)


def beside(base_url: str) -> str:
    """Two tools side by side, one of them slow."""
    return ask(ToolCallingAgent([weather, ferry], model(base_url), verbosity_level=0), cases.ASK_FERRY, stream=True)


def code(base_url: str) -> str:
    """Tools that the model's code calls."""
    return ask(CodeAgent([weather], model(base_url), max_steps=2, verbosity_level=0), CODE, stream=False)


CASES = {"nested": nested, "beside": beside, "code": code}
