"""google-adk over LiteLLM."""

from __future__ import annotations

import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it waits for a page on the internet

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from tests.frameworks.tool_agents import cases, stage


def last_train(start: str, to: str, tool_context: ToolContext) -> str:
    """The last train of the day."""
    tool_context.state["asked"] = f"{start}-{to}"
    return stage.last_train(start, to)


def build(base_url: str) -> Any:
    model = LiteLlm(model=f"openai/{stage.MODEL}", api_base=base_url, api_key="none")
    agent = LlmAgent(name="guide", model=model, instruction=stage.SYSTEM, tools=[stage.weather, last_train])
    return InMemoryRunner(agent=agent, app_name="guide")


async def said(runner: Any, question: str, mode: StreamingMode) -> str:
    session = await runner.session_service.create_session(app_name="guide", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=question)])
    text = ""
    async for event in runner.run_async(
        user_id="u", session_id=session.id, new_message=message, run_config=RunConfig(streaming_mode=mode)
    ):
        if event.is_final_response() and event.content:
            text = "".join(part.text or "" for part in event.content.parts or ())
    kept = await runner.session_service.get_session(app_name="guide", user_id="u", session_id=session.id)
    return f"{text} (asked: {kept.state.get('asked')})"


def ask(runner: Any, question: str, *, stream: bool) -> str:
    mode = StreamingMode.SSE if stream else StreamingMode.NONE
    return str(stage.LOOP.run_until_complete(said(runner, question, mode)))


def use(runner: Any, start: str) -> Any:
    return stage.LOOP.run_until_complete(
        FunctionTool(stage.last_train)._invoke_callable(stage.last_train, {"start": start, "to": "Oslo"})
    )


# --- special cases ----------------------------------------------------------------------------------------------------


def made(base_url: str, tools: list[Any], system: str = stage.SYSTEM) -> InMemoryRunner:
    model = LiteLlm(model=f"openai/{stage.MODEL}", api_base=base_url, api_key="none")
    return InMemoryRunner(agent=LlmAgent(name="guide", model=model, instruction=system, tools=tools), app_name="guide")


def nested(base_url: str) -> str:
    """A tool that runs an agent."""
    inner = made(base_url, [stage.weather], cases.EXPERT)

    async def expert(input: str) -> str:
        """Asks."""
        return await said(inner, input, StreamingMode.NONE)

    return ask(made(base_url, [expert]), cases.ASK_EXPERT, stream=False)


def beside(base_url: str) -> str:
    """Two tools side by side, one of them slow."""
    return ask(made(base_url, [stage.weather, cases.ferry]), cases.ASK_FERRY, stream=False)


CASES = {"nested": nested, "beside": beside}
