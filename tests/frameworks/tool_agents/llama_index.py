"""llama-index: a FunctionAgent."""

from __future__ import annotations

from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

from tests.frameworks.tool_agents import stage

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
