"""A small agent for the tests of the ways: two model calls, and between them two tools at once.

``WAYS_IN_CODE`` names what it does about telemetry itself: ``configurator`` (runs OTel's), ``configure``, ``processor``,
``instrument``. Its argument says how it goes on after that: ``whole`` ends as programs do, ``killed`` does not.
"""

import json
import os
import signal
import sys

from openai import OpenAI
from opentelemetry import _logs, trace
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.trace import NonRecordingSpan, SpanContext, use_span
from opentelemetry.util.genai.handler import TelemetryHandler

in_code = os.environ.get("WAYS_IN_CODE", "").split(",")
if "configurator" in in_code:
    from opentelemetry.distro import OpenTelemetryConfigurator

    OpenTelemetryConfigurator().configure()
if "configure" in in_code:
    import otel_agentrec

    otel_agentrec.configure(os.environ["REC"])
if "processor" in in_code:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk.trace import TracerProvider

    from otel_agentrec import AgentRecLogProcessor, AgentRecSpanProcessor

    if not hasattr(trace.get_tracer_provider(), "add_span_processor"):
        trace.set_tracer_provider(TracerProvider())
    if not hasattr(_logs.get_logger_provider(), "add_log_record_processor"):
        _logs.set_logger_provider(LoggerProvider())
    ours = AgentRecSpanProcessor(os.environ["REC"])
    trace.get_tracer_provider().add_span_processor(ours)
    _logs.get_logger_provider().add_log_record_processor(AgentRecLogProcessor(ours))
if "instrument" in in_code:
    OpenAIInstrumentor().instrument()

client, telemetry = OpenAI(base_url=os.environ["MODEL"], api_key="none"), TelemetryHandler()
FUNCTION = {"name": "look_up", "parameters": {"type": "object", "properties": {"what": {"type": "string"}}}}


def ask(messages):
    tools = [{"type": "function", "function": FUNCTION}]
    return client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message


def say(text):
    print(ask([{"role": "user", "content": text}]).content)


def agent():
    messages = [{"role": "user", "content": "Plan a trip."}]
    with telemetry.invoke_local_agent(agent_name="planner"):
        answer = ask(messages)
        messages.append(answer.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
        for call in answer.tool_calls:
            with telemetry.tool(call.function.name, tool_call_id=call.id) as tool:
                tool.arguments = call.function.arguments
                tool.tool_result = json.dumps({"found": json.loads(call.function.arguments)["what"]})
            messages.append({"role": "tool", "tool_call_id": call.id, "content": tool.tool_result})
        print(ask(messages).content)


if sys.argv[1] == "whole":
    agent()
    dropped_elsewhere = SpanContext(trace_id=0xA1, span_id=0xB1, is_remote=True, trace_flags=trace.TraceFlags(0))
    with use_span(NonRecordingSpan(dropped_elsewhere)):
        say("unsampled")
else:
    say("before the flush")
    for provider in (_logs.get_logger_provider(), trace.get_tracer_provider()):
        getattr(provider, "force_flush", lambda: None)()
    say("after the flush")
    with telemetry.tool("unfinished"):
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
