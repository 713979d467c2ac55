"""Messages as the Vercel AI SDK writes them: ``{role, content: text | parts}`` with parts of its own spelling.

``{type: tool-call, toolCallId, toolName, input}``, ``{type: tool-result, toolCallId, toolName, output: {type, value}}``,
``{type: reasoning, text}``, ``{type: file | image, data | image, mediaType}``. Before version 5 ``args`` and ``result``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects import messages
from otel_agentrec.capture.dialects.values import loaded, text

__all__ = ["calls", "definition", "listed", "message"]

Json = Any

_LISTS = (list, tuple)


def listed(value: Json) -> list[Json] | None:
    """A list of messages in the schema; None when ``value`` is none."""
    if not isinstance(value, _LISTS) or not all(isinstance(m, Mapping) and "role" in m for m in value):
        return None
    return [message(m) for m in value] or None


def message(value: Mapping[str, Json]) -> Json:
    """One message in the schema. What a provider wants to know besides (``providerOptions``) is kept."""
    content = value.get("content")
    if not isinstance(content, _LISTS):
        return messages.message(value)
    out = {key: v for key, v in value.items() if v is not None and key != "content"}
    return {**out, "parts": [_part(part) for part in content]}


def calls(value: Json) -> list[Json]:
    """The parts of an answer's tool calls ``[{toolCallId, toolName, input}]``; empty for anything else."""
    told = loaded(value)
    return [_call(call) for call in told if isinstance(call, Mapping)] if isinstance(told, _LISTS) else []


def definition(value: Json) -> Json:
    """A tool definition, or its JSON text; its schema is called ``inputSchema`` or ``parameters``."""
    told = loaded(value)
    if isinstance(told, Mapping) and "inputSchema" in told:
        told = {("parameters" if key == "inputSchema" else key): v for key, v in told.items()}
    return messages.definition(told)


def _part(part: Json) -> Json:
    if not isinstance(part, Mapping):
        return messages.part(part)
    kind = part.get("type")
    reader = _PARTS.get(kind) if isinstance(kind, str) else None
    return reader(part) if reader else messages.part(part)


def _named(part: Mapping[str, Json], told: Mapping[str, Json], read: tuple[str, ...]) -> Json:
    """``told`` without nulls, and all that was not read."""
    left = {key: v for key, v in part.items() if key not in ("type", *read)}
    return {key: v for key, v in {**told, **left}.items() if v is not None}


def _call(part: Mapping[str, Json]) -> Json:
    told = {
        "type": "tool_call",
        "id": part.get("toolCallId"),
        "name": part.get("toolName"),
        "arguments": part.get("input", part.get("args")),
    }
    return _named(part, told, ("toolCallId", "toolName", "input", "args", "toolCallType"))


def _result(part: Mapping[str, Json]) -> Json:
    output = part.get("output")
    result = output["value"] if isinstance(output, Mapping) and "value" in output else output
    told = {
        "type": "tool_call_response",
        "id": part.get("toolCallId"),
        "name": part.get("toolName"),
        "response": part.get("result") if result is None else result,
    }
    return _named(part, told, ("toolCallId", "toolName", "output", "result"))


def _media(part: Mapping[str, Json]) -> Json:
    data = part.get("data", part.get("image", part.get("url")))
    mime = text(part.get("mediaType")) or text(part.get("mimeType"))
    modality = mime.partition("/")[0] if mime else "image" if part.get("type") == "image" else None
    if not isinstance(data, str):
        return messages.part(part)
    is_address = data.startswith(("http://", "https://"))
    told = {"type": "uri" if is_address else "blob", "modality": modality, "mime_type": mime}
    told["uri" if is_address else "content"] = data
    return _named(part, told, ("data", "image", "url", "mediaType", "mimeType"))


_PARTS = {"tool-call": _call, "tool-result": _result, "file": _media, "image": _media}
