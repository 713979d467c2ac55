"""What a model is asked, in whatever form a hand-written agent holds it -> the message schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from otel_agentrec.capture.dialects import openai
from otel_agentrec.capture.dialects.messages import definition, message, part
from otel_agentrec.capture.payloads import plain_copy

__all__ = ["Prompt", "prompt_of"]

Json = Any

_MESSAGES = ("messages", "items", "input", "contents")
_INSTRUCTIONS = ("system", "systemPrompt", "system_prompt", "systemInstructions", "system_instructions", "instructions")
_OTHER = ("model", "tools", "stream")
_NAMED = {"max_tokens", "temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty"}
"""Parameters that have a ``gen_ai.request.*`` attribute of their own."""


@dataclass
class Prompt:
    """A request: ``whole`` as plain data, and its parts in the message schema."""

    whole: Json
    model: str | None = None
    messages: list[Json] | None = None
    instructions: list[Json] | None = None
    tools: list[Json] | None = None
    parameters: dict[str, Json] | None = None
    stream: bool | None = None
    provider: str | None = None

    def add(self, instructions: Any, tools: Any, parameters: Any) -> None:
        """What was given beside the prompt; it beats what the prompt says."""
        if instructions is not None:
            self.instructions = prompt_of(instructions, None).parts()
        if tools is not None:
            held = plain_copy(tools)
            self.tools = held if isinstance(held, list) else [held]
        if parameters is not None:
            held = plain_copy(parameters)
            self.parameters = {**(self.parameters or {}), **(held if isinstance(held, dict) else {"parameters": held})}

    def facts(self) -> dict[str, Any]:
        """By name of :class:`Facts` fields."""
        return {
            "model": self.model,
            "provider": self.provider,
            "messages": self.messages,
            "system_instructions": self.instructions,
            "tools": [definition(tool) for tool in self.tools] if self.tools else None,
            "parameters": self.parameters,
            "streamed": self.stream,
        }

    def request_attributes(self) -> dict[str, Any]:
        """``gen_ai.request.*`` attributes of the parameters that have one."""
        parameters = self.parameters or {}
        return {
            f"gen_ai.request.{key}": parameters[key] for key in _NAMED if isinstance(parameters.get(key), (int, float))
        }

    def parts(self) -> list[Json] | None:
        """Its messages' parts in one list: what system instructions are made of."""
        return [p for m in self.messages or () if isinstance(m, Mapping) for p in m.get("parts") or ()] or None


def prompt_of(prompt: object, model: str | None) -> Prompt:
    """Read a prompt: text, a list of messages, or a request as dict or object. Never raises."""
    whole = plain_copy(prompt)
    if isinstance(whole, Mapping) and "role" not in whole:
        return _request(whole, model)
    held = whole if isinstance(whole, list) else [whole] if whole is not None else []
    return Prompt(whole, model, _messages(held))


def _request(whole: Mapping[str, Json], model: str | None) -> Prompt:
    given = {key: value for key, value in whole.items() if value is not None}
    held = next((given[key] for key in _MESSAGES if key in given), None)
    messages = _messages(held if isinstance(held, list) else [held]) if held is not None else None
    instructions = [p for key in _INSTRUCTIONS if key in given for p in _instructions(given[key])]
    known = {*_MESSAGES, *_INSTRUCTIONS, *_OTHER}
    asked, tools, stream = given.get("model"), given.get("tools"), given.get("stream")
    return Prompt(
        whole,
        model or (asked if isinstance(asked, str) else None),
        messages,
        instructions or None,
        tools if isinstance(tools, list) and tools else None,
        {key: value for key, value in given.items() if key not in known} or None,
        stream if isinstance(stream, bool) else None,
    )


def _messages(held: list[Json]) -> list[Json]:
    """Chat messages, or items of OpenAI's Responses (a call and its result are items of their own there)."""
    is_typed = any(isinstance(m, Mapping) and "type" in m for m in held)
    return (openai.listed(held) if is_typed else None) or [_message(m) for m in held]


def _message(value: Json) -> Json:
    if isinstance(value, str):
        return {"role": "user", "parts": [{"type": "text", "content": value}]}
    return message(value)


def _instructions(value: Json) -> list[Json]:
    return [part(p) for p in (value if isinstance(value, list) else [value])]
