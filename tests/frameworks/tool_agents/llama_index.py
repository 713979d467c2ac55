"""llama-index: a FunctionAgent."""

from __future__ import annotations

from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

from tests.frameworks.tool_agents import cases, stage

STREAMED = stage.SIMPLE  # it reads two calls that come interleaved as five
LlamaIndexInstrumentor().instrument()
weather = FunctionTool.from_defaults(stage.weather)
last_train = FunctionTool.from_defaults(stage.last_train)


def build(base_url: str) -> Any:
    llm = OpenAILike(
        model=stage.MODEL, api_base=base_url, api_key="none", is_chat_model=True, is_function_calling_model=True
    )
    return {
        stream: FunctionAgent(tools=[weather, last_train], llm=llm, system_prompt=stage.SYSTEM, streaming=stream)
        for stream in (False, True)
    }


def ask(agents: Any, question: str, *, stream: bool) -> str:
    async def run() -> str:
        return str(await agents[stream].run(question))

    return stage.LOOP.run_until_complete(run())


def use(agents: Any, start: str) -> Any:
    return last_train.call(start=start, to="Oslo")


# --- special cases ----------------------------------------------------------------------------------------------------


def made(base_url: str, tools: list[Any], system: str = stage.SYSTEM) -> Any:
    llm = OpenAILike(
        model=stage.MODEL, api_base=base_url, api_key="none", is_chat_model=True, is_function_calling_model=True
    )
    return {False: FunctionAgent(tools=tools, llm=llm, system_prompt=system, streaming=False)}


def nested(base_url: str) -> str:
    """A tool that runs an agent."""

    async def expert(input: str) -> str:
        """Asks."""
        return str(await made(base_url, [weather], cases.EXPERT)[False].run(input))

    return ask(made(base_url, [FunctionTool.from_defaults(async_fn=expert)]), cases.ASK_EXPERT, stream=False)


def beside(base_url: str) -> str:
    """Two tools side by side, one of them slow."""
    ferry = FunctionTool.from_defaults(async_fn=cases.ferry)
    return ask(made(base_url, [weather, ferry]), cases.ASK_FERRY, stream=False)


def own_output(base_url: str) -> str:
    """A tool with an argument of the program, given blocks by its callback."""

    def measured(place: str, unit: str) -> dict[str, Any]:
        """Measures."""
        stage.RAN.append("measured")
        return {"place": place, "degrees": 1.0, "unit": unit}

    measure = FunctionTool.from_defaults(
        measured, partial_params={"unit": "C"}, callback=lambda raw: f"{raw['degrees']}"
    )
    output = measure("Finse")
    return f"{output.content} {output.raw_output} {output.raw_input} {output.is_error}"


CASES = {"nested": nested, "beside": beside, "own output": own_output}
