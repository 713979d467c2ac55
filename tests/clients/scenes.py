"""A prompt, a script and what both must give, the same for every provider."""

from __future__ import annotations

from typing import Any

from otel_agentrec.demo.script import Call, Turn, Usage, When
from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentPrompt, AgentToolResult

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PROMPT = AgentPrompt(
    "m",
    "Will it rain?",
    system_prompt="Be brief.",
    instructions="In English.",
    tools=[WEATHER],
    tool_choice="required",
    parallel_tool_calls=False,
    max_output_tokens=77,
    user="u1",
)
ASKS = Turn(
    "Let me  look.\n",
    tool_calls=[Call("weather", {"city": "Oslo"}, id="c1"), Call("trains", {"to": "Ås", "at": [1, None]}, id="c2")],
    reasoning="I had better look.",
    usage=Usage(20, 9, cached=5, reasoning=3),
    times=0,
)
SCRIPT = [Turn("Rain: {tool_results}", when=When(role="tool", step=2), times=0), ASKS]


class Ear:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.chunks: list[AgentModelChunk] = []

    def on_chunk(self, chunk: AgentModelChunk) -> None:
        self.chunks.append(chunk)

    def text(self, channel: str, index: int | None = None) -> str:
        return "".join(c.text or "" for c in self.chunks if c.channel == channel and index in (None, c.index))


def told(result: AgentModelResult) -> dict[str, Any]:
    """What a result says, apart from how it came."""
    return {
        "text": result.output_text,
        "reasoning": result.reasoning_text,
        "calls": [(c.name, c.parsed, c.call_id) for c in result.tool_calls],
    }


EXPECTED = {
    "text": ASKS.text,
    "reasoning": ASKS.reasoning,
    "calls": [(c.name, c.arguments, c.id) for c in ASKS.tool_calls],
}


def next_prompt(result: AgentModelResult) -> AgentPrompt:
    """The prompt after both tools answered."""
    results = [AgentToolResult("weather", "c1", "yes").to_item(), AgentToolResult("trains", "c2", {"at": 9}).to_item()]
    return AgentPrompt("m", [*PROMPT.items, *result.memory_items, *results], tools=[WEATHER])


def assert_heard(ear: Ear, result: AgentModelResult) -> None:
    """Every channel was heard, in pieces that add up to the answer."""
    assert list(result.chunks or ()) == ear.chunks
    assert (ear.text("text"), ear.text("reasoning")) == (ASKS.text, ASKS.reasoning)
    firsts = {c.index: c for c in reversed(ear.chunks) if c.channel == "tool_call"}
    assert [(c.name, ear.text("tool_call", at), c.call_id) for at, c in sorted(firsts.items())] == [
        (c.name, c.arguments if isinstance(c.arguments, str) else ear.text("tool_call", at), c.call_id)
        for at, c in enumerate(result.tool_calls)
    ]
    assert [c.data for c in ear.chunks if c.channel == "usage"][-1] == result.usage
    assert [c.text for c in ear.chunks if c.channel == "finish"] == list(result.finish_reasons)
    assert sum(c.channel == "text" for c in ear.chunks) > 1
    assert not any(c.replayed for c in ear.chunks)
