"""The ``openai`` SDK instrumented by OpenLLMetry (Traceloop); what it can't see, the agent and its tools, is told by hand."""

import scene
from openai import OpenAI
from opentelemetry.instrumentation.openai import OpenAIInstrumentor

from otel_agentrec import agent_run

with scene.recorded(), scene.model():
    OpenAIInstrumentor().instrument()

    with agent_run("trip planner") as run, run.step() as step:

        def use_tool(name: str, arguments: dict[str, str], call_id: str) -> str:
            with step.tool_call(name, arguments, call_id=call_id) as call:
                result = scene.TOOLS[name](**arguments)
                call.result(result)
                return result

        print(scene.chat(OpenAI(), use_tool))
