"""Messages as OpenInference flattens them: ``llm.input_messages.N.message.{role, content, contents, tool_calls, …}``.

Some instrumentations say a thing twice: a text as ``content`` and in ``contents``, a tool call in ``contents`` and in
``tool_calls``. It counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from otel_agentrec.capture.dialects import flattened, messages
from otel_agentrec.capture.dialects.exchange import INSTRUCTING
from otel_agentrec.capture.dialects.smolagents import ROLES
from otel_agentrec.capture.dialects.values import loaded, text

__all__ = ["instructions", "take", "take_completions", "take_prompts", "take_tools"]

Json = Any


def take(rest: MutableMapping[str, Any], prefix: str) -> list[Json] | None:
    """Move the messages under ``prefix`` out of a span's attributes, into the schema. None when there are none."""
    listed = flattened.take(rest, prefix)
    return None if listed is None else [_message(m) for m in listed]


def instructions(rest: MutableMapping[str, Any], prefix: str) -> list[Json] | None:
    """The parts of the system messages that the list under ``prefix`` begins with, which it loses. None when there are none."""
    if rest.get(f"{prefix}.0.message.role") not in INSTRUCTING:
        return None
    parts: list[Json] = []
    for message in take(rest, prefix) or ():
        if message.get("role") not in INSTRUCTING:
            break
        parts.extend(message["parts"])
    return parts or None


def take_tools(rest: MutableMapping[str, Any]) -> list[Json] | None:
    """Move the tool definitions ``llm.tools.N.tool.json_schema`` out of a span's attributes."""
    listed = flattened.take(rest, "llm.tools")
    if listed is None:
        return None
    return [messages.definition(loaded(_unwrapped(tool, "tool", "json_schema"))) for tool in listed]


def take_prompts(rest: MutableMapping[str, Any]) -> list[Json] | None:
    """Move the prompts of a completion, ``llm.prompts.N.prompt.text`` or once a plain list, out of a span's attributes."""
    listed = flattened.take(rest, "llm.prompts")
    if listed is None and isinstance(rest.get("llm.prompts"), (list, tuple)):
        listed = list(rest.pop("llm.prompts"))
    return None if listed is None else [_told("user", _unwrapped(p, "prompt", "text")) for p in listed]


def take_completions(rest: MutableMapping[str, Any]) -> list[Json] | None:
    """Move the answers of a completion, ``llm.choices.N.completion.text``, out of a span's attributes."""
    listed = flattened.take(rest, "llm.choices")
    return None if listed is None else [_told("assistant", _unwrapped(c, "completion", "text")) for c in listed]


def _message(value: Json) -> Json:
    held = _unwrapped(value, "message")
    if not isinstance(held, Mapping):
        return messages.message(held)
    out = {key: v for key, v in held.items() if key not in _READ and v is not None}
    role = text(held.get("role"))
    if role is not None:
        out = {"role": ROLES.get(role, role), **out}
    content, contents = held.get("content"), held.get("contents")
    if held.get("tool_call_id") is not None:
        response = content if content is not None or contents is None else _parts(contents)
        out["parts"] = [{"type": "tool_call_response", "id": held["tool_call_id"], "response": response}]
        return out
    parts = _parts(contents)
    if isinstance(content, str) and content and not any(_is(p, "text") for p in parts):
        parts.insert(0, messages.part(content))
    known = [(p.get("id"), p.get("name")) for p in parts if _is(p, "tool_call")]
    calls = held.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        made = _tool_call(_unwrapped(call, "tool_call"))
        if (made.get("id"), made.get("name")) not in known:
            parts.append(made)
    if text(held.get("function_call_name")):
        single = {"name": held["function_call_name"], "arguments": held.get("function_call_arguments_json")}
        parts.append(_tool_call({"function": single}))
    out["parts"] = parts
    return out


_READ = frozenset(
    ("role", "content", "contents", "tool_calls", "tool_call_id", "function_call_name", "function_call_arguments_json")
)


def _parts(contents: Json) -> list[Json]:
    return [_part(c) for c in contents] if isinstance(contents, list) else []


def _part(value: Json) -> Json:
    if not isinstance(value, Mapping):
        return messages.part(value)
    held = _inner(value, "message_content")
    held = held if isinstance(held, Mapping) else {}
    call = value.get("tool_call", held.get("tool_call"))
    if isinstance(call, Mapping):
        return _tool_call(call)
    url = _inner(_inner(_inner(held, "image"), "image"), "url")
    if isinstance(url, str):
        return messages.part({"type": "image_url", "image_url": {"url": url}})
    return messages.part({"type": "text", **held} if "text" in held else held)


def _tool_call(call: Json) -> dict[str, Json]:
    function = _inner(call, "function")
    part = {"id": _inner(call, "id"), "name": _inner(function, "name"), "arguments": _inner(function, "arguments")}
    told = {key: v for key, v in part.items() if v is not None and not isinstance(v, Mapping)}
    return {"type": "tool_call", **told}


def _told(role: str, content: Json) -> Json:
    return {"role": role, "parts": [messages.part(content)]}


def _is(part: Json, kind: str) -> bool:
    return isinstance(part, Mapping) and part.get("type") == kind


def _inner(value: Json, key: str) -> Json:
    return value.get(key) if isinstance(value, Mapping) else None


def _unwrapped(value: Json, *keys: str) -> Json:
    """What stands under ``keys``, each of which may be left out."""
    for key in keys:
        value = value[key] if isinstance(value, Mapping) and key in value else value
    return value
