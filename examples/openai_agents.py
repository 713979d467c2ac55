"""An agent of the OpenAI Agents SDK (responses API) with OpenInference's bridge to OpenTelemetry."""

import scene
from agents import Agent, Runner, function_tool
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

with scene.recorded(), scene.model():
    OpenAIAgentsInstrumentor().instrument()  # in the place of the SDK's own exporter
    tools = [function_tool(tool) for tool in scene.TOOLS.values()]
    agent = Agent(name="trip planner", model=scene.MODEL, tools=tools)
    print(Runner.run_sync(agent, scene.QUESTION).final_output)
