"""Tool-call ids of a model request, renamed by first appearance: ``id#1``, ``id#2`` …

Some frameworks make these ids anew in every process. Two requests that differ only by a consistent renaming of them ask
the same. Known are the shapes of OpenAI chat completions and responses, Anthropic messages, Gemini and Bedrock Converse.
"""

from __future__ import annotations

from typing import Any

__all__ = ["aliased"]

Json = Any

_LISTS = ("messages", "input", "contents")
_ID_KEYS = {"tool_call_id", "call_id", "tool_use_id", "toolUseId"}
"""Members that hold the id of a tool call wherever they stand in a message."""
_CALL_TYPES = ("tool_use", "server_tool_use", "mcp_tool_use")
_CALLS = {"functionCall", "functionResponse", "function_call", "function_response"}
"""Gemini: objects whose ``id`` is that of a call."""
_TEXTUAL = {"arguments", "input", "args", "parameters", "text", "output", "response"}
"""Members whose content is the user's, a model's or a tool's: nothing in them is an id of ours."""


def aliased(body: Json) -> Json:
    """The body with its tool-call ids renamed; the very same object when it names none."""
    if not isinstance(body, dict):
        return body
    names: dict[str, str] = {}
    renamed = {key: _walk(body[key], None, names) for key in _LISTS if isinstance(body.get(key), list)}
    return {**body, **renamed} if names else body


def _walk(value: Json, under: str | None, names: dict[str, str]) -> Json:
    """A message, item or part with its ids renamed. ``under``: the member it is the value of, or lies in a list at."""
    if isinstance(value, (list, tuple)):
        return [_walk(item, under, names) for item in value]
    if not isinstance(value, dict):
        return value
    own = _names_a_call(value, under)
    out: dict[str, Json] = {}
    for key, x in value.items():
        if isinstance(x, str) and (key in _ID_KEYS or (own and key == "id")):
            out[key] = names.setdefault(x, f"id#{len(names) + 1}")
        elif key in _TEXTUAL:
            out[key] = x
        else:
            out[key] = _walk(x, key, names)
    return out


def _names_a_call(value: dict[str, Json], under: str | None) -> bool:
    """Whether the ``id`` of this object is that of a tool call."""
    kind = value.get("type")
    return under == "tool_calls" or under in _CALLS or (kind in _CALL_TYPES)
