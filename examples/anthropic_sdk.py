"""The ``anthropic`` SDK, which makes spans of its own; its tool runner is the agent."""

import os

import scene
from anthropic import Anthropic, beta_tool

from otel_agentrec.demo.server import ScriptedServer

os.environ.setdefault("ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE", "content")  # without it: no words, only numbers

with scene.recorded(), ScriptedServer(scene.SCRIPT) as server:
    if "ANTHROPIC_BASE_URL" not in os.environ:
        os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"] = server.url, "none"
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
