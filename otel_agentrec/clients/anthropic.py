"""Anthropic's messages: prompts out, answers and streams in.

Source of the shapes: Anthropic's API reference, "Messages", "Streaming messages".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from otel_agentrec.clients.wire import function_of, given, instructions_of, message_of, result_of, without_nulls
from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentPrompt, AgentToolCall

__all__ = ["AnthropicWire"]

Json = Any

_INSTRUCTING = ("system", "developer")
_CHOICES = {"auto": "auto", "none": "none", "required": "any", "any": "any"}


class AnthropicWire:
    """The API. It has no ``store``; ``user`` goes out as ``metadata.user_id``.

    Args:
        max_tokens: the limit of an answer where the prompt gives none: the API wants one.
    """

    def __init__(self, max_tokens: int = 4096) -> None:
        self.max_tokens = max_tokens

    def request(self, prompt: AgentPrompt, *, stream: bool) -> dict[str, Json]:
        extra = dict(prompt.extra_body or {})
        stop = extra.pop("stop", None)
        told = instructions_of(prompt)
        messages: list[Json] = []
        for item in map(message_of, prompt.items):
            if isinstance(item, Mapping) and item.get("role") in _INSTRUCTING:
                held = item.get("parts", item.get("content"))
                told.extend(held if isinstance(held, (list, tuple)) else [held])
            else:
                _add(messages, _message(item))
        body = given(
            model=prompt.model,
            max_tokens=prompt.max_output_tokens or extra.pop("max_tokens", None) or self.max_tokens,
            system=_system(told),
            messages=messages,
            tools=[_tool(tool) for tool in prompt.tools] if prompt.tools is not None else None,
            tool_choice=_choice(prompt),
            temperature=prompt.temperature,
            top_p=prompt.top_p,
            stop_sequences=[stop] if isinstance(stop, str) else stop,
            metadata={"user_id": prompt.user} if prompt.user is not None else None,
            **_reasoning(prompt.reasoning),
        )
        return {**body, **({"stream": True} if stream else {}), **extra}

    def result(self, raw: Json) -> AgentModelResult:
        blocks = [block for block in raw.get("content") or () if isinstance(block, Mapping)]
        reason = raw.get("stop_reason")
        return AgentModelResult(
            output_text="".join(str(b.get("text") or "") for b in blocks if b.get("type") == "text") or None,
            raw_response=raw,
            tool_calls=[
                AgentToolCall(str(b.get("name") or ""), b.get("input"), b.get("id"))
                for b in blocks
                if b.get("type") == "tool_use"
            ],
            reasoning_text="\n".join(b["thinking"] for b in blocks if b.get("type") == "thinking" and b.get("thinking"))
            or None,
            usage=raw.get("usage"),
            finish_reasons=[reason] if reason else [],
            memory_items=[{"role": "assistant", "content": [without_nulls(b) for b in blocks]}] if blocks else [],
        )

    def merging(self) -> _Merging:
        return _Merging()


def _system(told: list[Json]) -> Json:
    if not told:
        return None
    blocks = [_block(part) for part in told]
    only = blocks[0]
    return only["text"] if len(blocks) == 1 and only.keys() == {"type", "text"} else blocks


def _reasoning(told: Json) -> dict[str, Json]:
    """``{type: …}`` is Anthropic's own; an effort stands elsewhere there."""
    if isinstance(told, Mapping) and "type" in told:
        return {"thinking": dict(told)}
    effort = told.get("effort") if isinstance(told, Mapping) else told
    return {"output_config": {"effort": effort}} if isinstance(effort, str) else {}


def _choice(prompt: AgentPrompt) -> Json:
    told = prompt.tool_choice
    choice: dict[str, Json] | None = None
    if isinstance(told, str):
        choice = {"type": _CHOICES[told]} if told in _CHOICES else {"type": "tool", "name": told}
    elif isinstance(told, Mapping):
        inner = told.get("function", told)  # OpenAI's forms
        choice = {"type": "tool", "name": inner.get("name")} if told.get("type") == "function" else dict(told)
    if prompt.parallel_tool_calls is False and prompt.tools:
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    return choice


def _tool(tool: Json) -> Json:
    if not isinstance(tool, Mapping) or "input_schema" in tool:
        return tool
    function = function_of(tool)
    if function is None:
        return tool
    schema = function.pop("parameters", None) or {"type": "object", "properties": {}}
    return {**function, "input_schema": schema}


# --- messages of the schema ---------------------------------------------------------------------------------------------


def _message(item: Json) -> Json:
    if not isinstance(item, Mapping) or not isinstance(item.get("parts"), (list, tuple)):
        return item
    role = "assistant" if item.get("role") == "assistant" else "user"
    blocks = [block for part in item["parts"] if (block := _block(part)) is not None]
    only = blocks[0] if len(blocks) == 1 else {}
    return {"role": role, "content": only["text"] if only.keys() == {"type", "text"} else blocks}


def _add(messages: list[Json], message: Json) -> None:
    """Results of one step's tools must stand in one message."""
    last = messages[-1] if messages else None
    if _only_results(message) and last is not None and _only_results(last):
        messages[-1] = {**last, "content": [*last["content"], *message["content"]]}
    else:
        messages.append(message)


def _only_results(message: Json) -> bool:
    content = message.get("content") if isinstance(message, Mapping) else None
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(b, Mapping) and b.get("type") == "tool_result" for b in content)
    )


def _block(part: Json) -> Json:
    """A part as a content block; None for a thought that is not signed, which the API would refuse."""
    if not isinstance(part, Mapping):
        return {"type": "text", "text": str(part)}
    kind = part.get("type")
    rest = {key: value for key, value in part.items() if key not in _KNOWN}
    if kind == "text":
        return {"type": "text", "text": part.get("content", part.get("text")), **rest}
    if kind == "reasoning":
        signed = {"type": "thinking", "thinking": part.get("content"), **rest}
        return signed if "signature" in part else None
    if kind == "tool_call":
        call = AgentToolCall(str(part.get("name") or ""), part.get("arguments"))
        return {"type": "tool_use", "id": part.get("id"), "name": call.name, "input": call.parsed, **rest}
    if kind == "tool_call_response":
        return {
            "type": "tool_result",
            "tool_use_id": part.get("id"),
            "content": result_of(part.get("response")),
            **rest,
        }
    sources: dict[Json, dict[str, Json]] = {
        "blob": {"type": "base64", "media_type": part.get("mime_type"), "data": part.get("content")},
        "uri": {"type": "url", "url": part.get("uri")},
        "file": {"type": "file", "file_id": part.get("file_id")},
    }
    if kind in sources:
        modality = part.get("modality") or "image"
        return {"type": modality if modality in ("image", "document") else "document", "source": sources[kind], **rest}
    return part


_KNOWN = frozenset(
    {"type", "content", "text", "id", "name", "arguments", "response", "modality", "mime_type", "uri", "file_id"}
)


# --- streams ------------------------------------------------------------------------------------------------------------


class _Merging:
    def __init__(self) -> None:
        self._message: dict[str, Json] = {}
        self._blocks: dict[int, dict[str, Json]] = {}
        self._json: dict[int, str] = {}
        self._order: dict[str, list[int]] = {"tool_use": [], "thinking": []}

    def add(self, event: Mapping[str, Json]) -> Iterator[AgentModelChunk]:
        kind, at = event.get("type"), event.get("index") or 0
        if kind == "message_start":
            self._message = dict(event.get("message") or {})
        elif kind == "content_block_start":
            yield from self._begin(at, dict(event.get("content_block") or {}))
        elif kind == "content_block_delta":
            yield from self._delta(at, event.get("delta") or {})
        elif kind == "content_block_stop":
            self._end(at)
        elif kind == "message_delta":
            self._message.update({k: v for k, v in (event.get("delta") or {}).items() if v is not None})
            if event.get("usage"):
                told = {k: v for k, v in event["usage"].items() if v is not None}
                self._message["usage"] = {**(self._message.get("usage") or {}), **told}
                yield AgentModelChunk("usage", data=self._message["usage"])
            if self._message.get("stop_reason"):
                yield AgentModelChunk("finish", self._message["stop_reason"])
        elif kind not in ("message_stop", "ping"):
            yield AgentModelChunk("event", data=dict(event))

    def whole(self) -> dict[str, Json]:
        for at in list(self._json):
            self._end(at)
        return {**self._message, "content": [self._blocks[at] for at in sorted(self._blocks)]}

    def _place(self, at: int, kind: str) -> int:
        known = self._order[kind]
        if at not in known:
            known.append(at)
        return known.index(at)

    def _begin(self, at: int, block: dict[str, Json]) -> Iterator[AgentModelChunk]:
        self._blocks[at] = block
        kind = block.get("type")
        if kind == "tool_use":
            yield AgentModelChunk("tool_call", "", self._place(at, "tool_use"), block.get("name"), block.get("id"))
        elif kind == "text" and block.get("text"):
            yield AgentModelChunk("text", block["text"])
        elif kind == "thinking" and block.get("thinking"):
            yield AgentModelChunk("reasoning", block["thinking"], self._place(at, "thinking"))
        elif kind not in ("text", "thinking"):
            yield AgentModelChunk("event", data={"content_block": dict(block)})

    def _delta(self, at: int, delta: Mapping[str, Json]) -> Iterator[AgentModelChunk]:
        block, kind = self._blocks.setdefault(at, {}), delta.get("type")
        if kind == "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
            yield AgentModelChunk("text", delta["text"])
        elif kind == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
            yield AgentModelChunk("reasoning", delta["thinking"], self._place(at, "thinking"))
        elif kind == "input_json_delta":
            self._json[at] = self._json.get(at, "") + delta["partial_json"]
            if block.get("type") == "tool_use":
                if delta["partial_json"]:
                    yield AgentModelChunk("tool_call", delta["partial_json"], self._place(at, "tool_use"))
            else:
                yield AgentModelChunk("event", data=dict(delta))
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]
            yield AgentModelChunk("event", data=dict(delta))
        else:
            if kind == "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
            yield AgentModelChunk("event", data=dict(delta))

    def _end(self, at: int) -> None:
        """The input of a call, once it is all there; of a stream that broke off, the text that came."""
        text = self._json.pop(at, "")
        if text:
            try:
                self._blocks[at]["input"] = json.loads(text)
            except ValueError:
                self._blocks[at]["input"] = text
