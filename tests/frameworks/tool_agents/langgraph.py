"""An agent of LangChain on LangGraph, traced by OpenInference."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from openinference.instrumentation.langchain import LangChainInstrumentor

from otel_agentrec.resume.tools import resumable_tool
from tests.frameworks.tool_agents import cases, stage

LangChainInstrumentor().instrument()
weather = tool(stage.weather)


@tool
def last_train(start: str, to: str, runtime: ToolRuntime) -> str:
    """The last train of the day."""
    assert runtime.tool_call_id
    return stage.last_train(start, to)


def model(base_url: str) -> ChatOpenAI:
    return ChatOpenAI(model=stage.MODEL, base_url=base_url, api_key="none")


def build(base_url: str) -> Any:
    return create_agent(model(base_url), [weather, last_train], system_prompt=stage.SYSTEM)


def ask(agent: Any, question: str, *, stream: bool) -> str:
    asked = {"messages": [{"role": "user", "content": question}]}
    if not stream:
        return str(agent.invoke(asked)["messages"][-1].content)

    async def run() -> str:
        last = ""
        async for state in agent.astream(asked, stream_mode="values"):
            last = str(state["messages"][-1].content)
        return last

    return stage.LOOP.run_until_complete(run())


# --- cases of its own ----------------------------------------------------------------------------------------------------


def nested(base_url: str) -> str:
    """A tool that runs an agent."""
    inner = create_agent(model(base_url), [weather], system_prompt=cases.EXPERT)

    @tool
    def expert(input: str) -> str:
        """Asks."""
        return ask(inner, input, stream=False)

    return ask(create_agent(model(base_url), [expert]), cases.ASK_EXPERT, stream=False)


def beside(base_url: str) -> str:
    """Two tools side by side, one of them slow, on an event loop."""
    return ask(create_agent(model(base_url), [weather, tool(cases.ferry)]), cases.ASK_FERRY, stream=True)


def beside_on_threads(base_url: str) -> str:
    ferry = tool("ferry")(cases.ferry_now)
    return ask(create_agent(model(base_url), [weather, ferry]), cases.ASK_FERRY, stream=False)


def text_of_errors(base_url: str) -> str:
    """A node that makes text of exceptions for the model."""
    tools = [weather, last_train]
    bound = model(base_url).bind_tools(tools)
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [bound.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(tools, handle_tool_errors=True))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "model")
    built = graph.compile()
    return " / ".join(ask(built, question, stream=False) for question in (stage.TROUBLE, stage.SIMPLE))


def decorated(base_url: str) -> str:
    """A decorated function, whose call has a default beside what the model gave."""

    @tool
    @resumable_tool
    def weather(place: str, unit: str = "mm") -> str:
        """The forecast of a place."""
        return f"{stage.weather(place)}, 2 {unit}"

    return ask(create_agent(model(base_url), [weather, last_train]), stage.QUESTION, stream=False)


def own_class(base_url: str) -> str:
    """A tool of a class that is made after its framework was patched, run on an event loop."""

    class Weather(BaseTool):
        name: str = "weather"
        description: str = "The forecast of a place."

        def _run(self, place: str, config: RunnableConfig) -> tuple[str, float]:
            return stage.weather(place), 2.0

    return ask(create_agent(model(base_url), [Weather(), last_train]), stage.QUESTION, stream=True)


CASES = {
    "decorated": decorated,
    "own class": own_class,
    "nested": nested,
    "beside": beside,
    "beside on threads": beside_on_threads,
    "text of errors": text_of_errors,
}
