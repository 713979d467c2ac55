"""An agent in a few lines: it asks a model, runs the tools that the model asks for, and gives the answer."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI

from otel_agentrec import resumable_tool

PROMPT = "You plan day trips. Look things up before you answer, and keep it short."


def described(name: str, *fields: str) -> dict[str, Any]:
    """A tool as the model is told of it; every parameter is a text."""
    properties = {field: {"type": "string"} for field in fields}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


@resumable_tool
def weather(place: str) -> str:
    """The forecast of a place."""
    return f"{place}: light rain from 15:00"


@resumable_tool
def last_train(start: str, to: str) -> str:
    """The last train of the day."""
    return f"{start} to {to}: 21:42, platform 3"


TOOLS = {"weather": weather, "last_train": last_train}
OFFERED = [described("weather", "place"), described("last_train", "start", "to")]


def plan(question: str) -> str:
    """Answer a question."""
    client = OpenAI()
    messages: list[Any] = [{"role": "system", "content": PROMPT}, {"role": "user", "content": question}]
    while True:
        answer = client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=OFFERED)
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
        for call in message.tool_calls:
            result = TOOLS[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    print(plan("I want to go walking near Finse. Will it rain, and when does the last train to Oslo go?"))
