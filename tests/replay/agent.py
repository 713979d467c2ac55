"""An agent of the tests: a loop over the OpenAI SDK with two tools, and a scripted model to record it with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openai import OpenAI

from otel_agentrec import agent_run, configure, resumable_tool
from otel_agentrec.demo.script import Call, Turn, When
from otel_agentrec.demo.server import ScriptedServer

TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("weather", "book")
]
SCRIPT = [
    Turn(tool_calls=[Call("weather", {"city": "Oslo"}, "call_1")], when=When(step=1), times=0),
    Turn(tool_calls=[Call("book", {"train": 7, "seat": None}, "call_2")], when=When(step=2), times=0),
    Turn("Booked: {tool_results}", when=When(step=3), times=0),
]
ASK = "What shall I do in Oslo?"


class Tools:
    """What the tools have done, for real."""

    def __init__(self, decorate: Callable[..., Any] = resumable_tool) -> None:
        self.ran: list[str] = []

        def weather(city: str) -> dict[str, str]:
            self.ran.append(f"weather {city}")
            return {"sky": "rain", "city": city}

        def book(train: int, seat: str | None) -> str:
            self.ran.append(f"book {train}")
            return f"train {train}, seat {seat or 12}"

        self.by_name = {"weather": decorate(weather), "book": decorate(book)}


def loop(client: OpenAI, tools: Tools, ask: str = ASK, **more: Any) -> str:
    """Ask and do what is asked for, until the model has said its last word."""
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ask}]
    while True:
        answer = client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=TOOLS, **more)
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
        for call in message.tool_calls:
            result = tools.by_name[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


def in_agent(client: OpenAI, tools: Tools, ask: str = ASK) -> str:
    """The same inside the span of an agent."""
    with agent_run("traveller"):
        return loop(client, tools, ask)


@contextmanager
def recording(path: Path, script: list[Turn] | None = None) -> Iterator[OpenAI]:
    """Record what a client of a scripted model does; the model is gone afterwards, its address stays with the client."""
    with ScriptedServer(script or SCRIPT, seed="same") as server, configure(path, wire=True):
        yield client_of(server.base_url)


def client_of(url: str) -> OpenAI:
    return OpenAI(base_url=url, api_key="none", max_retries=2)
