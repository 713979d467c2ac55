"""The ``openai`` SDK with OpenTelemetry's own instrumentation and its GenAI helpers for agents and tools."""

import scene
from openai import OpenAI
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.util.genai.handler import TelemetryHandler

with scene.recorded(), scene.model():
    OpenAIInstrumentor().instrument()
    telemetry = TelemetryHandler()

    def use_tool(name: str, arguments: dict[str, str], call_id: str) -> str:
        with telemetry.tool(name, tool_type="function") as span:
            span.tool_call_id, span.arguments = call_id, arguments
            span.tool_result = scene.TOOLS[name](**arguments)
            return span.tool_result

    with telemetry.invoke_local_agent(request_model=scene.MODEL, agent_name="trip planner"):
        print(scene.chat(OpenAI(), use_tool))
