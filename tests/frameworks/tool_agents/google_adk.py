"""google-adk over LiteLLM."""

from __future__ import annotations

from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from tests.frameworks.tool_agents import stage


def last_train(start: str, to: str, tool_context: ToolContext) -> str:
    """The last train of the day."""
    tool_context.state["asked"] = f"{start}-{to}"
    return stage.last_train(start, to)


def build(base_url: str) -> Any:
    model = LiteLlm(model=f"openai/{stage.MODEL}", api_base=base_url, api_key="none")
    agent = LlmAgent(name="guide", model=model, instruction=stage.SYSTEM, tools=[stage.weather, last_train])
    return InMemoryRunner(agent=agent, app_name="guide")


def ask(runner: Any, question: str, *, stream: bool) -> str:
    async def run() -> str:
        session = await runner.session_service.create_session(app_name="guide", user_id="u")
        config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
        said = types.Content(role="user", parts=[types.Part(text=question)])
        text = ""
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=said, run_config=config):
            if event.is_final_response() and event.content:
                text = "".join(part.text or "" for part in event.content.parts or ())
        kept = await runner.session_service.get_session(app_name="guide", user_id="u", session_id=session.id)
        return f"{text} (asked: {kept.state.get('asked')})"

    return stage.LOOP.run_until_complete(run())


def use(runner: Any, start: str) -> Any:
    return stage.LOOP.run_until_complete(
        FunctionTool(stage.last_train)._invoke_callable(stage.last_train, {"start": start, "to": "Oslo"})
    )
