"""A small agent, written as anyone would write one. Of otel-agentrec it knows one thing: ``@resumable_tool`` on its tools.

It asks a model with the ``openai`` SDK, runs the tools that the model asks for at the same time, and streams the answer.
Its spans come from OpenTelemetry's own instrumentation of the SDK and from its GenAI helpers for agents and tools. Run it
under recording like any other program (``OPENAI_BASE_URL`` and ``OPENAI_API_KEY`` say where the model is)::

    otel-agentrec run -- python -m otel_agentrec.demo.agent "Will it rain in Oslo tomorrow?"

One of its tools, ``buy_ticket``, has an effect: a line in the file that ``AGENTREC_DEMO_OFFICE`` names. With
``AGENTREC_DEMO_KILL`` the process dies in that tool, between the effect and its return.
"""

from __future__ import annotations

import contextvars
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from openai import OpenAI
from opentelemetry.util.genai.handler import TelemetryHandler

from otel_agentrec.resume.tools import resumable_tool  # programs elsewhere: from otel_agentrec import resumable_tool

__all__ = ["answer", "main"]

Json = Any

MODEL = "gpt-5-mini"


@resumable_tool(effect=False)
def weather(place: str, day: str) -> Json:
    """The forecast of a place."""
    time.sleep(0.12)  # a look-up takes its time
    return {"place": place, "day": day, "sky": "light rain from 15:00", "celsius": 11}


@resumable_tool(effect=False)
def last_train(start: str, to: str) -> Json:
    """The last train of the day."""
    time.sleep(0.08)
    return {"from": start, "to": to, "departs": "21:42", "platform": 3}


@resumable_tool
def buy_ticket(start: str, to: str) -> Json:
    """Buy a ticket for the last train. It costs money, so it must not happen twice."""
    office = os.open(os.environ["AGENTREC_DEMO_OFFICE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(office, f"one ticket {start} to {to}, 329 kroner\n".encode())
    os.close(office)
    if "AGENTREC_DEMO_KILL" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)  # the ticket is bought, and nobody was told
    return {"seat": 42, "kroner": 329}


TOOLS: dict[str, Callable[..., Json]] = {"weather": weather, "last_train": last_train, "buy_ticket": buy_ticket}


def described(tool: Callable[..., Json], parameters: Iterable[str]) -> Json:
    """A tool as the model is told of it; every parameter is a text."""
    names = list(parameters)
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    return {
        "type": "function",
        "function": {"name": tool.__name__, "description": tool.__doc__, "parameters": schema},
    }


OFFERED = [
    described(weather, ("place", "day")),
    described(last_train, ("start", "to")),
    described(buy_ticket, ("start", "to")),
]


def answer(question: str, say: Callable[[str], None]) -> None:
    """Answer a question; ``say`` is given each piece of the answer as it comes."""
    client, telemetry = OpenAI(), TelemetryHandler()
    messages: list[Json] = [
        {"role": "system", "content": "You plan day trips. Look things up before you answer."},
        {"role": "user", "content": question},
    ]
    with telemetry.invoke_local_agent(request_model=MODEL, agent_name="trip planner", conversation_id="demo"):
        for _ in range(8):  # a model that never stops asking for tools is stopped
            with client.chat.completions.stream(
                model=MODEL, messages=messages, tools=OFFERED, stream_options={"include_usage": True}
            ) as stream:
                for event in stream:
                    if event.type == "content.delta":
                        say(event.delta)
                message = stream.get_final_completion().choices[0].message
            if not message.tool_calls:
                return
            messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
            messages.extend(run_tools(message.tool_calls, telemetry))


def run_tools(calls: Iterable[Any], telemetry: TelemetryHandler) -> list[Json]:
    """Run tool calls at the same time; their results as messages, in the order of the calls."""

    def run(call: Any) -> Json:
        with telemetry.tool(call.function.name, tool_type="function") as span:
            span.tool_call_id, span.arguments = call.id, call.function.arguments
            result = json.dumps(TOOLS[call.function.name](**json.loads(call.function.arguments)))
            span.tool_result = result
        return {"role": "tool", "tool_call_id": call.id, "content": result}

    with ThreadPoolExecutor() as pool:
        # a thread of a pool knows the current span only if it is given the context
        jobs = [pool.submit(contextvars.copy_context().run, run, call) for call in calls]
        return [job.result() for job in jobs]


def main() -> None:
    def say(piece: str) -> None:
        print(piece, end="", flush=True)

    answer(" ".join(sys.argv[1:]), say)
    print()


if __name__ == "__main__":
    main()
