"""The tool runner of the ``anthropic`` SDK. Nobody sees the functions that it calls, so they are decorated."""

import trip
from anthropic import Anthropic, beta_tool

from otel_agentrec import resumable_tool

runner = Anthropic().beta.messages.tool_runner(
    model="claude-sonnet-4-5",
    max_tokens=1024,
    tools=[beta_tool(resumable_tool(tool)) for tool in trip.TOOLS.values()],
    messages=[{"role": "user", "content": trip.QUESTION}],
)
print(runner.until_done().content[0].text)
