"""What the examples share: a question, two tools, a scripted model to talk to, and a recording to look at afterwards."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import otel_agentrec
from otel_agentrec.cli.app import run as otel_agentrec_command
from otel_agentrec.demo.script import Call, Turn, Usage
from otel_agentrec.demo.server import ScriptedServer

MODEL = "gpt-5-mini"
QUESTION = "I want to go walking near Finse tomorrow. Will it rain, and when does the last train to Oslo go?"
ANSWER = "Go, but start early: light rain from 15:00. Your last train leaves at 21:42, platform 3."
CALLS = [
    Call("weather", {"place": "Finse"}, id="call-weather"),
    Call("last_train", {"start": "Finse", "to": "Oslo"}, id="call-train"),
]
SCRIPT = [
    Turn(tool_calls=CALLS, usage=Usage(input=140, output=40)),
    Turn(ANSWER, usage=Usage(input=230, output=30)),
]
FIELDS = {"weather": ["place"], "last_train": ["start", "to"]}


def weather(place: str) -> str:
    """The forecast of a place."""
    return f"{place}: light rain from 15:00"


def last_train(start: str, to: str) -> str:
    """The last train of the day."""
    return f"{start} to {to}: 21:42, platform 3"


TOOLS: dict[str, Callable[..., str]] = {"weather": weather, "last_train": last_train}
OFFERED = [
    {
        "name": name,
        "description": tool.__doc__,
        "parameters": {
            "type": "object",
            "properties": {field: {"type": "string"} for field in FIELDS[name]},
            "required": FIELDS[name],
        },
    }
    for name, tool in TOOLS.items()
]


@contextmanager
def model() -> Iterator[str]:
    """The address of a model: the one that ``OPENAI_BASE_URL`` names, else a scripted one that this process serves."""
    if "OPENAI_BASE_URL" in os.environ:
        yield os.environ["OPENAI_BASE_URL"]
        return
    with ScriptedServer(SCRIPT) as server:
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = server.base_url, "none"
        yield server.base_url


def recording() -> Path:
    """Where to record: the first word after the program's name, else ``agentrec`` here."""
    return Path(sys.argv[1] if len(sys.argv) > 1 else "agentrec")


@contextmanager
def recorded() -> Iterator[None]:
    """Record what happens inside; then show it. Enter it before the instrumentation starts, so that content is asked for."""
    recorder = otel_agentrec.configure(path=recording())
    try:
        yield
    finally:
        recorder.shutdown()
    show()


def show() -> None:
    """Show the newest run of the recording as a timeline, and verify it."""
    for command in ("show", "verify"):
        otel_agentrec_command([command, str(recording())])


def chat(client: Any, use_tool: Callable[..., str]) -> str:
    """An agent in a few lines over the ``openai`` SDK; the last answer of the model is streamed. Gives that answer."""
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "function": tool} for tool in OFFERED]
    message = client.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message
    messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
    for call in message.tool_calls:
        result = use_tool(call.function.name, json.loads(call.function.arguments), call.id)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    stream = client.chat.completions.create(
        model=MODEL, messages=messages, tools=tools, stream=True, stream_options={"include_usage": True}
    )
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
