"""A loop over the ``openai`` SDK. Nobody sees the functions that it calls, so they are decorated."""

import json

import trip
from openai import OpenAI

from otel_agentrec import resumable_tool

tools = {name: resumable_tool(tool) for name, tool in trip.TOOLS.items()}
client = OpenAI()
messages = [{"role": "user", "content": trip.QUESTION}]
while True:
    asked = client.chat.completions.create(model=trip.MODEL, messages=messages, tools=trip.OFFERED)
    message = asked.choices[0].message
    if not message.tool_calls:
        break
    messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
    for call in message.tool_calls:
        result = tools[call.function.name](**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(message.content)
