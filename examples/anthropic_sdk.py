"""The ``anthropic`` SDK, which makes spans of its own; its tool runner is the agent."""

import os

import anthropic_server
import scene
from anthropic import Anthropic, beta_tool

os.environ.setdefault("ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE", "content")  # without it: no words, only numbers

with scene.recorded(), anthropic_server.serving(scene.SCRIPT) as scripted:
    if "ANTHROPIC_BASE_URL" not in os.environ:
        os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"] = scripted, "none"
    runner = Anthropic().beta.messages.tool_runner(
        model="claude-sonnet-4-5",
        max_tokens=1024,
        tools=[beta_tool(tool) for tool in scene.TOOLS.values()],
        messages=[{"role": "user", "content": scene.QUESTION}],
        stream=True,
    )
    for stream in runner:
        for text in stream.text_stream:
            print(text, end="")
    print()
