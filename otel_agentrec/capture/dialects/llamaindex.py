"""Messages and answers as LlamaIndex serialises them.

A ChatMessage is ``{role, blocks: [block], additional_kwargs}``; a block has no type in JSON, its keys tell what it is. A
ChatResponse is ``{message, raw}``, ``raw`` being the provider's own payload.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects import messages, openai
from otel_agentrec.capture.dialects.exchange import Said
from otel_agentrec.capture.dialects.values import text

__all__ = ["message", "said", "tool_output"]

Json = Any

_LISTS = (list, tuple)


def message(value: Json) -> Json:
    """A ChatMessage in the schema; None when ``value`` is none."""
    if not isinstance(value, Mapping) or not isinstance(value.get("blocks"), _LISTS) or "role" not in value:
        return None
    extra = value.get("additional_kwargs")
    extra = extra if isinstance(extra, Mapping) else {}
    parts = [_part(block) for block in value["blocks"]]
    out: dict[str, Json] = {"role": text(value["role"]), "parts": parts}
    if text(extra.get("tool_call_id")):
        said_to_it = [p["content"] for p in parts if isinstance(p, Mapping) and p.get("type") == "text"]
        response = said_to_it[0] if len(said_to_it) == len(parts) == 1 else parts
        out["parts"] = [{"type": "tool_call_response", "id": extra["tool_call_id"], "response": response}]
    elif not messages.calls_of([out]) and isinstance(extra.get("tool_calls"), _LISTS):
        parts.extend(messages.part(call) for call in extra["tool_calls"])
    return out


def said(value: Json) -> Said | None:
    """What a ChatResponse tells; None when ``value`` is none."""
    made = message(value.get("message")) if isinstance(value, Mapping) else None
    if made is None:
        return None
    answer = openai.said(value.get("raw"))
    if answer is None:
        return Said([made])
    answer.messages = [made]
    return answer


def tool_output(value: Json) -> tuple[Json, bool] | None:
    """(result, whether it is an error) of a ToolOutput; None when ``value`` is none."""
    if not isinstance(value, Mapping) or "raw_output" not in value or "tool_name" not in value:
        return None
    result = value["raw_output"]
    blocks = value.get("blocks")
    if result is None and isinstance(blocks, _LISTS):
        result = "".join(b["text"] for b in blocks if isinstance(b, Mapping) and isinstance(b.get("text"), str)) or None
    return result, value.get("is_error") is True


def _part(block: Json) -> Json:
    if not isinstance(block, Mapping):
        return messages.part(block)
    if "tool_kwargs" in block or "tool_call_id" in block:
        part = {"id": block.get("tool_call_id"), "name": block.get("tool_name"), "arguments": block.get("tool_kwargs")}
        return {"type": "tool_call", **{key: v for key, v in part.items() if v is not None}}
    if isinstance(block.get("text"), str):
        return messages.part(block["text"])
    if isinstance(block.get("content"), str):
        return {"type": "reasoning", "content": block["content"]}
    kind = text(block.get("block_type")) or text(block.get("type")) or next((k for k in _MEDIA if k in block), "block")
    if text(block.get("url")):
        return {"type": "uri", "modality": kind, "uri": block["url"]}
    return {"type": kind, **{key: v for key, v in block.items() if v is not None and key not in ("block_type", "type")}}


_MEDIA = ("image", "audio", "video", "document")
