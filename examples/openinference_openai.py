"""The ``openai`` SDK instrumented by OpenInference; its decorators make the spans of the agent and of its tools."""

import scene
from openai import OpenAI
from openinference.instrumentation import OITracer, TraceConfig
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace

with scene.recorded(), scene.model():
    OpenAIInstrumentor().instrument()
    tracer = OITracer(trace.get_tracer("trip planner"), config=TraceConfig())
    tools = {name: tracer.tool(tool) for name, tool in scene.TOOLS.items()}

    @tracer.agent(name="trip planner")
    def plan() -> str:
        return scene.chat(OpenAI(), lambda name, arguments, _: tools[name](**arguments))

    print(plan())
