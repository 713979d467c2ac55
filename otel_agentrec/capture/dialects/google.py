"""Requests and answers of Google's Gemini API, as Google's libraries serialise them (snake_case, or camelCase of the API).

``{model, contents: [{role: user | model, parts}], config: {system_instruction, tools: [{function_declarations}], …}}`` ->
``{candidates: [{content, finish_reason}]}`` or, of ADK, ``{content, finish_reason, …}``. A part has one key that tells what
it is: ``text`` (with ``thought: true`` of reasoning), ``function_call``, ``function_response``, ``inline_data``, ``file_data``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects import messages
from otel_agentrec.capture.dialects.exchange import Asked, Said, parameters
from otel_agentrec.capture.dialects.values import text

__all__ = ["asked", "said"]

Json = Any

_LISTS = (list, tuple)
_ROLES = {"model": "assistant"}
_APART = frozenset({"system_instruction", "systemInstruction", "tools"})


def asked(value: Json) -> Asked | None:
    """What a request tells; None when ``value`` is none."""
    contents = value.get("contents") if isinstance(value, Mapping) else None
    if not isinstance(contents, _LISTS):
        return None
    config = value.get("config")
    config = config if isinstance(config, Mapping) else {}
    system = _either(config, "system_instruction", "systemInstruction")
    parts = system.get("parts") if isinstance(system, Mapping) else system
    parts = parts if isinstance(parts, _LISTS) else [parts] if parts is not None else []
    return Asked(
        [_content(c) for c in contents],
        instructions=[_part(p) for p in parts] or None,
        tools=_tools(config.get("tools")),
        model=text(value.get("model")),
        parameters=parameters(config, _APART),
    )


def said(value: Json) -> Said | None:
    """What an answer tells; None when ``value`` is none."""
    if not isinstance(value, Mapping):
        return None
    candidates = value.get("candidates")
    listed = candidates if isinstance(candidates, _LISTS) else [value]
    told = [c for c in listed if isinstance(c, Mapping) and isinstance(c.get("content"), Mapping)]
    if not any("parts" in c["content"] for c in told):
        return None
    reasons = [r for c in told if (r := text(_either(c, "finish_reason", "finishReason")))]
    return Said(
        [_content(c["content"]) for c in told],
        reasons or None,
        text(_either(value, "response_id", "responseId")),
        text(_either(value, "model_version", "modelVersion")),
    )


def _content(value: Json) -> Json:
    parts = value.get("parts") if isinstance(value, Mapping) else None
    if not isinstance(parts, _LISTS):
        return messages.message(value)
    role = text(value.get("role")) or "user"
    return {"role": _ROLES.get(role, role), "parts": [_part(part) for part in parts]}


def _part(value: Json) -> Json:
    if not isinstance(value, Mapping):
        return messages.part(value)
    part = {key: v for key, v in value.items() if v is not None}
    for names, read in _PARTS:
        name = next((n for n in names if n in part), None)
        if name is not None:
            held = part.pop(name)
            thought = part.pop("thought", None) is True
            made = read(held, thought)
            return made if made is None or not part else {**part, **made}
    return messages.part(part)


def _text(held: Json, thought: bool) -> dict[str, Json]:
    return {"type": "reasoning" if thought else "text", "content": held}


def _call(held: Json, thought: bool) -> dict[str, Json]:
    told = held if isinstance(held, Mapping) else {}
    return _present(type="tool_call", id=told.get("id"), name=told.get("name"), arguments=told.get("args"))


def _response(held: Json, thought: bool) -> dict[str, Json]:
    told = held if isinstance(held, Mapping) else {}
    return _present(type="tool_call_response", id=told.get("id"), name=told.get("name"), response=told.get("response"))


def _data(held: Json, thought: bool) -> dict[str, Json]:
    told = held if isinstance(held, Mapping) else {}
    mime = text(_either(told, "mime_type", "mimeType"))
    uri = _either(told, "file_uri", "fileUri")
    modality = mime.partition("/")[0] if mime else None
    if uri is not None:
        return _present(type="uri", modality=modality, mime_type=mime, uri=uri)
    return _present(type="blob", modality=modality, mime_type=mime, content=told.get("data"))


_PARTS = (
    (("function_call", "functionCall"), _call),
    (("function_response", "functionResponse"), _response),
    (("inline_data", "inlineData", "file_data", "fileData"), _data),
    (("text",), _text),
)


def _present(**told: Json) -> dict[str, Json]:
    return {key: value for key, value in told.items() if value is not None}


def _tools(value: Json) -> list[Json] | None:
    if not isinstance(value, _LISTS):
        return None
    out: list[Json] = []
    for tool in value:
        declared = _either(tool, "function_declarations", "functionDeclarations") if isinstance(tool, Mapping) else None
        out.extend(declared if isinstance(declared, _LISTS) else [tool])
    return [messages.definition(tool) for tool in out] or None


def _either(held: Mapping[str, Json], *keys: str) -> Json:
    return next((held[key] for key in keys if held.get(key) is not None), None)
