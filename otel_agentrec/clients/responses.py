"""OpenAI's Responses: prompts out, answers and streams in.

Source of the shapes: the OpenAI API reference, "Responses" and "Streaming events".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from otel_agentrec.clients.wire import (
    as_text,
    call_text,
    data_url,
    function_of,
    given,
    instructions_of,
    message_of,
    plain_text,
    result_of,
    texts,
    without_nulls,
)
from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentPrompt, AgentToolCall

__all__ = ["ResponsesWire"]

Json = Any

_CHOICES = ("auto", "none", "required")
_CALLS = ("function_call", "custom_tool_call")


class ResponsesWire:
    """The API."""

    def request(self, prompt: AgentPrompt, *, stream: bool) -> dict[str, Json]:
        extra = dict(prompt.extra_body or {})
        items: list[Json] = []
        for item in prompt.items:
            items.extend(_items(message_of(item)))
        reasoning = {"effort": prompt.reasoning} if isinstance(prompt.reasoning, str) else prompt.reasoning
        body = given(
            model=prompt.model,
            input=items,
            instructions=as_text(instructions_of(prompt)) or None,
            tools=[_tool(tool) for tool in prompt.tools] if prompt.tools is not None else None,
            tool_choice=_choice(prompt.tool_choice),
            parallel_tool_calls=prompt.parallel_tool_calls,
            temperature=prompt.temperature,
            top_p=prompt.top_p,
            max_output_tokens=prompt.max_output_tokens,
            reasoning=reasoning,
            store=prompt.store,
            user=prompt.user,
        )
        return {**body, **({"stream": True} if stream else {}), **extra}

    def result(self, raw: Json) -> AgentModelResult:
        output = [item for item in raw.get("output") or () if isinstance(item, Mapping)]
        said = [_text(item) for item in output if item.get("type") == "message"]
        thoughts = [t for item in output if item.get("type") == "reasoning" for t in _thoughts(item)]
        calls = [
            AgentToolCall(str(item.get("name") or ""), item.get("arguments", item.get("input")), item.get("call_id"))
            for item in output
            if item.get("type") in _CALLS
        ]
        reason = _reason(raw)
        return AgentModelResult(
            output_text="".join(said) or None,
            raw_response=raw,
            tool_calls=calls,
            reasoning_text="\n".join(thoughts) or None,
            usage=raw.get("usage"),
            finish_reasons=[reason] if reason else [],
            memory_items=[without_nulls(item) for item in output],
        )

    def merging(self) -> _Merging:
        return _Merging()


def _reason(raw: Mapping[str, Json]) -> str | None:
    """Why an answer ended: its status, or what made it incomplete."""
    details = raw.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    status = raw.get("status")
    return reason or (status if status not in ("in_progress", "queued") else None)


def _text(item: Mapping[str, Json]) -> str:
    parts = [p for p in item.get("content") or () if isinstance(p, Mapping)]
    return "".join(str(p.get("text") or p.get("refusal") or "") for p in parts)


def _thoughts(item: Mapping[str, Json]) -> list[str]:
    blocks = [*(item.get("summary") or ()), *(item.get("content") or ())]
    return texts(blocks, ("summary_text", "reasoning_text"))


def _choice(told: Json) -> Json:
    if isinstance(told, str) and told not in _CHOICES:
        return {"type": "function", "name": told}
    inner = told.get("function") if isinstance(told, Mapping) else None
    return {"type": "function", "name": inner.get("name")} if isinstance(inner, Mapping) else told


def _tool(tool: Json) -> Json:
    function = function_of(tool) if isinstance(tool, Mapping) else None
    return tool if function is None else {"type": "function", **function}


# --- messages of the schema ---------------------------------------------------------------------------------------------


def _items(item: Json) -> Iterator[Json]:
    """An item as input items of the API, in the order of its parts."""
    if not isinstance(item, Mapping) or not isinstance(item.get("parts"), (list, tuple)):
        yield item
        return
    role, said = item.get("role") or "user", []
    for part in item["parts"]:
        made = _own_item(part)
        if made is None:
            said.append(part)
            continue
        if said:
            yield _message(role, said)
            said = []
        if made:
            yield made
    if said:
        yield _message(role, said)


def _own_item(part: Json) -> dict[str, Json] | None:
    """Parts that are items of their own here; ``{}`` for one that can't be sent; None for what belongs into a message."""
    if not isinstance(part, Mapping):
        return None
    kind = part.get("type")
    if kind == "tool_call":
        arguments = part.get("arguments")
        text = "{}" if arguments is None else call_text(arguments)
        return {"type": "function_call", "call_id": part.get("id"), "name": part.get("name"), "arguments": text}
    if kind == "tool_call_response":
        return {"type": "function_call_output", "call_id": part.get("id"), "output": result_of(part.get("response"))}
    if kind == "reasoning":  # only a sealed thought can be shown to the model again
        sealed = part.get("encrypted_content")
        content = part.get("content")
        summary = [{"type": "summary_text", "text": content}] if isinstance(content, str) else []
        return {"type": "reasoning", "summary": summary, "encrypted_content": sealed} if sealed is not None else {}
    return None


def _message(role: str, parts: list[Json]) -> Json:
    text = plain_text(parts)
    if text is not None:
        return {"role": role, "content": text}
    return {"role": role, "content": [_part(p, "output_text" if role == "assistant" else "input_text") for p in parts]}


def _part(part: Json, text_type: str) -> Json:
    if isinstance(part, str):
        return {"type": text_type, "text": part}
    kind, is_image = part.get("type"), part.get("modality") in (None, "image")
    if kind == "text":
        return {"type": text_type, "text": part.get("content")}
    if kind == "uri":
        return (
            {"type": "input_image", "image_url": part.get("uri")}
            if is_image
            else {"type": "input_file", "file_url": part.get("uri")}
        )
    if kind == "file":
        return {
            "type": "input_image" if part.get("modality") == "image" else "input_file",
            "file_id": part.get("file_id"),
        }
    if kind == "blob":
        if is_image:
            return {"type": "input_image", "image_url": data_url(part)}
        return {"type": "input_file", "filename": part.get("filename") or "file", "file_data": data_url(part)}
    return part


# --- streams ------------------------------------------------------------------------------------------------------------

_LAST = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_TEXT = ("response.output_text.delta", "response.refusal.delta")
_REASONING = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ARGUMENTS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_TOLD_ELSEWHERE = (
    "response.created",
    "response.in_progress",
    "response.queued",
    "response.content_part.added",
    "response.content_part.done",
    "response.output_text.done",
    "response.refusal.done",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.done",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.done",
)
"""Events that say again what others say piece by piece."""


class _Merging:
    def __init__(self) -> None:
        self._response: dict[str, Json] = {}
        self._items: dict[int, Json] = {}
        self._calls: dict[Json, int] = {}
        self._blocks: dict[Json, int] = {}

    def add(self, event: Mapping[str, Json]) -> Iterator[AgentModelChunk]:
        kind = event.get("type")
        place = event.get("output_index")
        if isinstance(event.get("response"), Mapping):
            self._response = dict(event["response"])
        if kind in _TEXT:
            yield AgentModelChunk("text", event.get("delta"))
            self._grow(place, "message", event)
        elif kind in _REASONING:
            block = (place, event.get("summary_index"), event.get("content_index"))
            at = self._blocks.setdefault(block, len(self._blocks))
            yield AgentModelChunk("reasoning", event.get("delta"), at)
        elif kind in _ARGUMENTS:
            yield AgentModelChunk("tool_call", event.get("delta"), self._calls.setdefault(place, len(self._calls)))
        elif kind == "response.output_item.added":
            item = event.get("item") or {}
            if item.get("type") in _CALLS:
                at = self._calls.setdefault(place, len(self._calls))
                yield AgentModelChunk("tool_call", "", at, item.get("name"), item.get("call_id"))
        elif kind == "response.output_item.done":
            item = event.get("item") or {}
            if isinstance(place, int):
                self._items[place] = item
            if item.get("type") not in (*_CALLS, "message", "reasoning"):
                yield AgentModelChunk("event", data=dict(event))
        elif kind in _LAST:
            if self._response.get("usage"):
                yield AgentModelChunk("usage", data=self._response["usage"])
            yield AgentModelChunk("finish", _reason(self._response))
        elif kind not in _TOLD_ELSEWHERE:
            yield AgentModelChunk("event", data=dict(event))

    def whole(self) -> dict[str, Json]:
        if self._response.get("output") or self._response.get("status") not in ("in_progress", "queued", None):
            return self._response
        return {**self._response, "output": [self._items[at] for at in sorted(self._items)]}

    def _grow(self, place: Json, kind: str, event: Mapping[str, Json]) -> None:
        """What was said before the stream broke off."""
        if not isinstance(place, int):
            return
        item = self._items.setdefault(
            place, {"type": kind, "role": "assistant", "status": "in_progress", "content": []}
        )
        if not item["content"]:
            item["content"].append({"type": "output_text", "text": ""})
        item["content"][-1]["text"] += str(event.get("delta") or "")
