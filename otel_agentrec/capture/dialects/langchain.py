"""Messages, requests and answers as LangChain serialises them.

A message comes in one of three forms: constructor ``{lc, type: "constructor", id: […, "AIMessage"], kwargs: {…}}``, dict
``{type: "ai", data: {…}}``, plain ``{type: "ai", content, …}``. A chat model is asked with ``{messages: [[message]]}`` and
answers with an LLMResult: ``{generations: [[{text, message, generation_info}]], llm_output}`` (in JavaScript
``generationInfo``, ``llmOutput``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects import messages
from otel_agentrec.capture.dialects.exchange import Asked, Said
from otel_agentrec.capture.dialects.values import text

__all__ = ["asked", "listed", "message", "said", "tool_message"]

Json = Any

_LISTS = (list, tuple)
_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "tool",
}


def asked(value: Json) -> Asked | None:
    """What ``{messages: [[message]]}`` or ``{prompts: [text]}`` tells; None when ``value`` is neither."""
    if not isinstance(value, Mapping):
        return None
    batches, prompts = value.get("messages"), value.get("prompts")
    if isinstance(batches, _LISTS) and batches:
        flat = [m for batch in batches for m in batch] if all(isinstance(b, _LISTS) for b in batches) else batches
        found = listed(flat)
        return None if found is None else Asked(found)
    if isinstance(prompts, _LISTS) and prompts and all(isinstance(p, str) for p in prompts):
        return Asked([{"role": "user", "parts": [messages.part(p)]} for p in prompts])
    return None


def said(value: Json) -> Said | None:
    """What an LLMResult tells; None when ``value`` is none."""
    generations = value.get("generations") if isinstance(value, Mapping) else None
    if not isinstance(generations, _LISTS):
        return None
    flat = [g for batch in generations for g in (batch if isinstance(batch, _LISTS) else [batch])]
    told: list[Json] = []
    reasons: list[str] = []
    told_of: list[Mapping[str, Json]] = []
    for generation in (g for g in flat if isinstance(g, Mapping)):
        held = _fields(generation.get("message"))
        made = message(generation.get("message")) if held is not None else _plain_answer(generation)
        if made is not None:
            told.append(made)
        info = generation.get("generation_info", generation.get("generationInfo"))
        details = [_mapping(info), _mapping((held or {}).get("response_metadata"))]
        told_of.extend(details)
        reason = _first(details, ("finish_reason", "stop_reason"))
        if reason is None and _first(details, ("status",)) == "completed":  # the Responses API tells no reason
            reason = "tool_calls" if messages.calls_of([made]) else "stop"
        if reason is not None:
            reasons.append(reason)
    told_of.append(_mapping(value.get("llm_output", value.get("llmOutput"))))
    return Said(told, reasons or None, _first(told_of, ("id",)), _first(told_of, ("model_name", "model")))


def listed(value: Json) -> list[Json] | None:
    """A list of messages in the schema; None when there is anything else in it, or nothing."""
    if not isinstance(value, _LISTS) or not value:
        return None
    made: list[Json] = []
    for m in value:
        told = message(m)
        if told is None:
            return None
        made.append(told)
    return made


def message(value: Json) -> Json:
    """One message in the schema; None when ``value`` is none."""
    held = _fields(value)
    if held is None:
        return None
    kind = held.get("type") if held.get("type") != "chat" else held.get("role")
    role = _role(kind)
    out: dict[str, Json] = {"role": role, "parts": []}
    if text(held.get("name")):
        out["name"] = held["name"]
    content = held.get("content")
    if held.get("tool_call_id") is not None:
        out["parts"].append({"type": "tool_call_response", "id": held["tool_call_id"], "response": content})
        return out
    parts = out["parts"]
    extra = _mapping(held.get("additional_kwargs"))
    if text(extra.get("reasoning_content")):
        parts.append({"type": "reasoning", "content": extra["reasoning_content"]})
    calls = _calls(held)
    if isinstance(content, _LISTS):
        parts.extend(_block(block, calls) for block in content)
    elif isinstance(content, str) and content:
        parts.append(messages.part(content))
    placed = [id(p) for p in parts]
    parts.extend(call for call in calls if id(call) not in placed)
    return out


def _calls(held: Mapping[str, Json]) -> list[dict[str, Json]]:
    """The tool calls beside the content, also those whose arguments are no JSON."""
    out: list[dict[str, Json]] = []
    for key in ("tool_calls", "invalid_tool_calls"):
        for call in held[key] if isinstance(held.get(key), _LISTS) else ():
            if isinstance(call, Mapping):
                told = {"id": call.get("id"), "name": call.get("name"), "arguments": call.get("args")}
                out.append({"type": "tool_call", **{k: v for k, v in told.items() if v is not None}})
    return out


def _block(block: Json, calls: list[dict[str, Json]]) -> Json:
    """A block of content. A call that stands beside the content as well is told better there: of streamed answers, the
    block has no arguments."""
    if isinstance(block, Mapping):
        block = {key: v for key, v in block.items() if key != "index"}  # its place in a stream
    part = messages.part(block)
    if isinstance(part, dict) and part.get("type") == "tool_call" and part.get("id") is not None:
        return next((call for call in calls if call.get("id") == part["id"]), part)
    return part


def tool_message(value: Json) -> Mapping[str, Json] | None:
    """The fields of a tool's result: a ToolMessage, or a graph's ``{update: {messages: [ToolMessage]}}``; else None."""
    held = _fields(value)
    if held is not None:
        return held if held.get("type") == "tool" else None
    update = value.get("update") if isinstance(value, Mapping) else None
    inner = update.get("messages") if isinstance(update, Mapping) else None
    if isinstance(inner, _LISTS) and len(inner) == 1:
        return tool_message(inner[0])
    return None


def _fields(value: Json) -> Mapping[str, Json] | None:
    """The fields of a message in any of the three forms; ``type`` is its kind."""
    if not isinstance(value, Mapping):
        return None
    kwargs = value.get("kwargs")
    if "lc" in value and isinstance(kwargs, Mapping):
        path = value.get("id")
        name = path[-1] if isinstance(path, _LISTS) and path else None
        kind = kwargs.get("type") if _role(kwargs.get("type")) else _kind_of_class(name)
        return {**kwargs, "type": kind} if _role(kind) or kind == "chat" else None
    kind, data = value.get("type"), value.get("data")
    if not (_role(kind) or kind == "chat"):
        return None
    if isinstance(data, Mapping) and "content" in data:
        return {**data, "type": kind}
    return value if "content" in value else None


def _role(kind: Json) -> str | None:
    """The role for a message's ``type``, or for its class as streamed answers name it (``AIMessageChunk``)."""
    if not isinstance(kind, str):
        return None
    return _ROLES.get(kind) or _ROLES.get(_kind_of_class(kind) or "")


def _kind_of_class(name: Json) -> str | None:
    if not isinstance(name, str) or "Message" not in name:
        return None
    return name.partition("Message")[0].lower()


def _plain_answer(generation: Mapping[str, Json]) -> Json:
    told = generation.get("text")
    return {"role": "assistant", "parts": [messages.part(told)]} if isinstance(told, str) else None


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _first(told: list[Mapping[str, Json]], keys: tuple[str, ...]) -> str | None:
    return next((t for held in told for key in keys if (t := text(held.get(key))) is not None), None)
