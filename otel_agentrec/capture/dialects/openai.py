"""Requests and answers of OpenAI's APIs: chat completions, completions, Responses. Many servers speak them.

Chat: ``{model, messages, tools, …}`` -> ``{id, model, choices: [{message, finish_reason}], usage}``. Responses: ``{model,
input, instructions, tools, …}`` -> ``{id, model, output: [item], status, usage}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import messages
from otel_agentrec.capture.dialects.exchange import Asked, Said, parameters
from otel_agentrec.capture.dialects.values import text

__all__ = ["asked", "is_chat", "items", "listed", "said"]

Json = Any

_LISTS = (list, tuple)
_APART = frozenset({"messages", "input", "instructions", "model", "tools", "stream", "prompt", "system"})


def asked(value: Json) -> Asked | None:
    """What a request tells; None when ``value`` is none."""
    if not isinstance(value, Mapping):
        return None
    found: list[Json] | None = None
    if isinstance(value.get("messages"), _LISTS):
        found = listed(value["messages"])
    elif isinstance(value.get("input"), str):
        found = [_user(value["input"])]
    elif isinstance(value.get("input"), _LISTS):
        found = listed(value["input"])
    elif "model" in value and isinstance(value.get("prompt"), str):
        found = [_user(value["prompt"])]
    if found is None:
        return None
    instructions, tools, stream = value.get("instructions"), value.get("tools"), value.get("stream")
    return Asked(
        messages=found,
        instructions=[messages.part(instructions)] if isinstance(instructions, str) and instructions else None,
        tools=[messages.definition(tool) for tool in tools] if isinstance(tools, _LISTS) and tools else None,
        model=text(value.get("model")),
        streamed=stream if isinstance(stream, bool) else None,
        parameters=parameters(value, _APART),
    )


def said(value: Json) -> Said | None:
    """What an answer tells; None when ``value`` is none."""
    if not isinstance(value, Mapping):
        return None
    choices, output = value.get("choices"), value.get("output")
    if isinstance(choices, _LISTS) and all(isinstance(c, Mapping) for c in choices):
        told = [m for c in choices if (m := _choice(c)) is not None]
        reasons = [r for c in choices if (r := text(c.get("finish_reason")))]
    elif isinstance(output, _LISTS) and ("status" in value or value.get("object") == "response"):
        told, reasons = items(output), _reasons(value, output)
    else:
        return None
    return Said(told, reasons or None, text(value.get("id")), text(value.get("model")), value)


def listed(value: Sequence[Json]) -> list[Json] | None:
    """Messages of the chat API or items of the Responses API; None when there is anything else in it, or nothing.

    Other APIs have messages with roles too, but blocks of content whose type only their keys tell.
    """
    return items(value) if value and all(_is_message(m) or _is_item(m) for m in value) else None


def is_chat(value: Sequence[Json]) -> bool:
    """Whether all of a list are chat messages, each of which is read for itself."""
    return bool(value) and all(_is_message(m) and "type" not in m for m in value)


def items(value: Sequence[Json]) -> list[Json]:
    """Items of the Responses API, and chat messages among them, as messages. Parallel tool calls become one message."""
    out: list[Json] = []
    calling = False
    for item in value:
        kind = item.get("type") if isinstance(item, Mapping) else None
        reader = _ITEMS.get(kind) if isinstance(kind, str) else None
        made = reader(item) if reader else messages.message(item)
        is_call = reader in _CALLS
        if is_call and calling:
            out[-1]["parts"].extend(made["parts"])
        elif made is not None:
            out.append(made)
        calling = is_call
    return out


def _is_message(m: Json) -> bool:
    if not isinstance(m, Mapping) or "role" not in m:
        return False
    content = m.get("content")
    return not isinstance(content, _LISTS) or all(isinstance(b, str) or _has_type(b) for b in content)


def _is_item(m: Json) -> bool:
    return isinstance(m, Mapping) and isinstance(m.get("type"), str) and m["type"] in _ITEMS


def _has_type(block: Json) -> bool:
    return isinstance(block, Mapping) and isinstance(block.get("type"), str)


# --- chat completions ---------------------------------------------------------------------------------------------------


def _choice(choice: Mapping[str, Json]) -> Json:
    message = choice.get("message")
    if isinstance(message, Mapping):
        made = messages.message(message)
        return made if "parts" in made else {**made, "parts": []}
    told = choice.get("text")
    return {"role": "assistant", "parts": [messages.part(told)]} if isinstance(told, str) else None


def _user(told: str) -> Json:
    return {"role": "user", "parts": [messages.part(told)]}


# --- Responses ----------------------------------------------------------------------------------------------------------


def _message(item: Mapping[str, Json]) -> Json:
    return messages.message({key: v for key, v in item.items() if key not in ("type", "id", "status", "phase")})


def _assistant(*parts: Json) -> Json:
    return {"role": "assistant", "parts": list(parts)}


def _function_call(item: Mapping[str, Json]) -> Json:
    arguments = item.get("arguments", item.get("input", item.get("action")))
    call_id = item.get("call_id") or item.get("id")
    name = item.get("name") or ("computer" if item.get("type") == "computer_call" else None)
    part = {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}
    return _assistant({key: v for key, v in part.items() if v is not None})


def _function_call_output(item: Mapping[str, Json]) -> Json:
    part = {"type": "tool_call_response", "id": item.get("call_id") or item.get("id"), "response": item.get("output")}
    return {"role": "tool", "parts": [part]}


def _reasoning(item: Mapping[str, Json]) -> Json:
    """None when the item only marks that the model thought."""
    blocks = [b for key in ("summary", "content") if isinstance(item.get(key), _LISTS) for b in item[key]]
    parts: list[Json] = [
        {"type": "reasoning", "content": b["text"]}
        for b in blocks
        if isinstance(b, Mapping) and isinstance(b.get("text"), str)
    ]
    sealed = item.get("encrypted_content")
    if sealed is not None:
        parts.append({"type": "reasoning", "encrypted_content": sealed})
    return _assistant(*parts) if parts else None


def _server_side(item: Mapping[str, Json]) -> Json:
    """A call of a tool that the server runs itself, or anything else: kept as it is."""
    return _assistant({key: v for key, v in item.items() if v is not None})


_CALLS = (_function_call,)
_ITEMS = {
    "message": _message,
    "function_call": _function_call,
    "custom_tool_call": _function_call,
    "computer_call": _function_call,
    "function_call_output": _function_call_output,
    "custom_tool_call_output": _function_call_output,
    "computer_call_output": _function_call_output,
    "reasoning": _reasoning,
    **dict.fromkeys(
        (
            "code_interpreter_call",
            "compaction",
            "file_search_call",
            "image_generation_call",
            "item_reference",
            "local_shell_call",
            "local_shell_call_output",
            "mcp_approval_request",
            "mcp_approval_response",
            "mcp_call",
            "mcp_list_tools",
            "web_search_call",
        ),
        _server_side,
    ),
}
_REASONS = {"max_output_tokens": "length"}


def _reasons(value: Mapping[str, Json], output: Sequence[Json]) -> list[str]:
    """Finish reasons as the chat API names them, from the status of a response and of its items."""
    status = value.get("status")
    if status in ("failed", "cancelled"):
        return ["error"]
    if status == "incomplete":
        details = value.get("incomplete_details")
        reason = text(details.get("reason")) if isinstance(details, Mapping) else None
        return [_REASONS.get(reason, reason)] if reason else ["incomplete"]
    if status != "completed":
        return []
    kinds = [item.get("type") for item in output if isinstance(item, Mapping)]
    readers = [_ITEMS.get(k) for k in kinds if isinstance(k, str)]
    reasons = ["tool_calls" if r is _function_call else "stop" for r in readers if r in (_function_call, _message)]
    return list(dict.fromkeys(reasons)) or ["stop"]
