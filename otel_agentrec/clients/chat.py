"""OpenAI's chat completions, which many servers speak: prompts out, answers and streams in.

Source of the shapes: the OpenAI API reference, "Chat"; ``reasoning_content`` is what DeepSeek, vLLM and others add to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from otel_agentrec.clients.wire import (
    call_text,
    data_url,
    function_of,
    given,
    instructions_of,
    message_of,
    plain_text,
    result_of,
    without_nulls,
)
from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentPrompt, AgentToolCall

__all__ = ["ChatWire"]

Json = Any

_REASONING = ("reasoning_content", "reasoning")
_CHOICES = ("auto", "none", "required")


class ChatWire:
    """The API.

    Args:
        system_role: role of the messages that hold system prompt and instructions (``developer`` for some models).
        max_tokens_name: how the limit of the answer is called (``max_tokens`` for older servers).
    """

    def __init__(self, system_role: str = "system", max_tokens_name: str = "max_completion_tokens") -> None:
        self.system_role = system_role
        self.max_tokens_name = max_tokens_name

    def request(self, prompt: AgentPrompt, *, stream: bool) -> dict[str, Json]:
        extra = dict(prompt.extra_body or {})
        if "stop_sequences" in extra:  # the name under which records have it
            extra.setdefault("stop", extra.pop("stop_sequences"))
        messages = [{"role": self.system_role, "content": _content([p])} for p in instructions_of(prompt)]
        for item in prompt.items:
            messages.extend(_messages(message_of(item)))
        body = given(
            model=prompt.model,
            messages=messages,
            tools=[_tool(tool) for tool in prompt.tools] if prompt.tools is not None else None,
            tool_choice=_choice(prompt.tool_choice),
            parallel_tool_calls=prompt.parallel_tool_calls,
            temperature=prompt.temperature,
            top_p=prompt.top_p,
            store=prompt.store,
            user=prompt.user,
            **_reasoning(prompt.reasoning),
            **{self.max_tokens_name: prompt.max_output_tokens},
        )
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return {**body, **extra}

    def result(self, raw: Json) -> AgentModelResult:
        choices = [c for c in raw.get("choices") or () if isinstance(c, Mapping)]
        message = choices[0].get("message") if choices else None
        message = message if isinstance(message, Mapping) else {}
        calls = [
            AgentToolCall(str(f.get("name") or ""), f.get("arguments", f.get("input")), call.get("id"))
            for call in message.get("tool_calls") or ()
            for f in [call.get("function") or call.get("custom") or {}]
        ]
        reasoning = next((message[key] for key in _REASONING if isinstance(message.get(key), str)), None)
        return AgentModelResult(
            output_text=_said(message),
            raw_response=raw,
            tool_calls=calls,
            reasoning_text=reasoning or None,
            usage=raw.get("usage"),
            finish_reasons=[c["finish_reason"] for c in choices if c.get("finish_reason")],
            memory_items=[_to_send_back(message)] if message else [],
        )

    def merging(self) -> _Merging:
        return _Merging()


def _said(message: Mapping[str, Json]) -> str | None:
    """The text of an answer: its content, or the refusal that stands in its place."""
    content = message.get("content")
    if isinstance(content, list):  # Mistral's reasoning models
        content = "".join(p["text"] for p in content if isinstance(p, Mapping) and isinstance(p.get("text"), str))
    return content or message.get("refusal") or None


def _to_send_back(message: Mapping[str, Json]) -> Json:
    out = {key: value for key, value in without_nulls(message).items() if key != "annotations"}
    if isinstance(out.get("audio"), Mapping):
        out["audio"] = {"id": out["audio"].get("id")}
    return out


def _reasoning(told: Json) -> dict[str, Json]:
    if isinstance(told, str):
        return {"reasoning_effort": told}
    if isinstance(told, Mapping) and told.keys() == {"effort"}:
        return {"reasoning_effort": told["effort"]}
    return {"reasoning": told}


def _choice(told: Json) -> Json:
    if isinstance(told, str) and told not in _CHOICES:
        return {"type": "function", "function": {"name": told}}
    return told


def _tool(tool: Json) -> Json:
    if not isinstance(tool, Mapping) or "function" in tool:
        return tool
    function = function_of(tool)
    return tool if function is None else {"type": "function", "function": function}


# --- messages of the schema ---------------------------------------------------------------------------------------------


def _messages(item: Json) -> Iterator[Json]:
    """An item as messages of the API: one for each result of a tool, one for all else."""
    if not isinstance(item, Mapping) or not isinstance(item.get("parts"), (list, tuple)):
        yield item
        return
    parts = [p if isinstance(p, Mapping) else {"type": "text", "content": p} for p in item["parts"]]
    results = [p for p in parts if p.get("type") == "tool_call_response"]
    for part in results:
        yield {"role": "tool", "tool_call_id": part.get("id"), "content": result_of(part.get("response"))}
    rest = [p for p in parts if p.get("type") != "tool_call_response"]
    if not rest and results:
        return
    calls = [p for p in rest if p.get("type") == "tool_call"]
    thoughts = [p for p in rest if p.get("type") == "reasoning"]
    said = [p for p in rest if p.get("type") not in ("tool_call", "reasoning")]
    message = {key: value for key, value in item.items() if key not in ("parts", "role")}
    message = {"role": item.get("role") or "user", **message}
    if said or not calls:
        message["content"] = _content(said)
    # a thought with a signature is another provider's
    if thoughts and all(p.keys() <= {"type", "content"} for p in thoughts):
        message["reasoning_content"] = "\n".join(str(p.get("content") or "") for p in thoughts)
    if calls:
        message["tool_calls"] = [_call(p) for p in calls]
    yield message


def _call(part: Mapping[str, Json]) -> Json:
    arguments = part.get("arguments")
    function = {"name": part.get("name"), "arguments": "{}" if arguments is None else call_text(arguments)}
    return {"id": part.get("id"), "type": "function", "function": function}


def _content(parts: list[Json]) -> Json:
    text = plain_text(parts)
    return [_part(p) for p in parts] if text is None else text


def _part(part: Json) -> Json:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind, modality = part.get("type"), part.get("modality")
    if kind == "text" and "content" in part:
        return {"type": "text", "text": part["content"], **_rest(part, "type", "content")}
    if kind == "uri" and modality in (None, "image"):
        return {"type": "image_url", "image_url": {"url": part.get("uri")}}
    if kind == "file":
        return {"type": "file", "file": {"file_id": part.get("file_id")}}
    if kind != "blob":
        return part
    if modality == "audio":
        sort = str(part.get("mime_type") or "audio/wav").rpartition("/")[2].removeprefix("x-")
        return {"type": "input_audio", "input_audio": {"data": part.get("content"), "format": _SORTS.get(sort, sort)}}
    if modality in (None, "image"):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    return {"type": "file", "file": {"filename": part.get("filename") or "file", "file_data": data_url(part)}}


_SORTS = {"mpeg": "mp3", "wave": "wav"}


def _rest(part: Mapping[str, Json], *known: str) -> dict[str, Json]:
    return {key: value for key, value in part.items() if key not in known}


# --- streams ------------------------------------------------------------------------------------------------------------


class _Merging:
    def __init__(self) -> None:
        self._head: dict[str, Json] = {}
        self._choices: dict[int, dict[str, Json]] = {}

    def add(self, event: Mapping[str, Json]) -> Iterator[AgentModelChunk]:
        for key, value in event.items():
            if key not in ("choices", "object") and (value is not None or key not in self._head):
                self._head[key] = value
        for choice in event.get("choices") or ():
            at = choice.get("index") or 0
            held = self._choices.setdefault(at, {"index": at, "message": {"role": "assistant"}, "finish_reason": None})
            yield from self._delta(held["message"], choice.get("delta") or {}, at or None)
            if isinstance(choice.get("logprobs"), Mapping):
                _append(held, "logprobs", choice["logprobs"])
                yield AgentModelChunk("event", index=at or None, data={"logprobs": choice["logprobs"]})
            if choice.get("finish_reason"):
                held["finish_reason"] = choice["finish_reason"]
                yield AgentModelChunk("finish", choice["finish_reason"], at or None)
        if event.get("usage"):
            yield AgentModelChunk("usage", data=event["usage"])

    def whole(self) -> dict[str, Json]:
        choices = [self._choices[at] for at in sorted(self._choices)]
        for choice in choices:
            choice["message"].setdefault("content", None)
        return {"object": "chat.completion", **self._head, "choices": choices}

    def _delta(self, message: dict[str, Json], delta: Mapping[str, Json], at: int | None) -> Iterator[AgentModelChunk]:
        for key, value in delta.items():
            if value is None or value == "":
                continue
            if key == "role":
                message["role"] = value
            elif key == "tool_calls":
                for call in value:
                    yield self._call(message.setdefault("tool_calls", []), call)
            elif isinstance(value, str):
                message[key] = message.get(key, "") + value
                if key in ("content", "refusal"):
                    yield AgentModelChunk("text", value, at)
                elif key in _REASONING:
                    if key == next(k for k in _REASONING if k in message):  # some servers send both
                        yield AgentModelChunk("reasoning", value, at)
                else:
                    yield AgentModelChunk("event", index=at, data={key: value})
            else:
                _append(message, key, value)
                yield AgentModelChunk("event", index=at, data={key: value})

    def _call(self, calls: list[Json], piece: Mapping[str, Json]) -> AgentModelChunk:
        """A piece of a call. One without a place is the next call when it brings an id, else goes on with the last."""
        at = piece.get("index")
        if at is None or (piece.get("id") and at < len(calls) and calls[at].get("id") not in (None, "", piece["id"])):
            at = len(calls) if piece.get("id") or not calls else len(calls) - 1
        while len(calls) <= at:
            calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
        call, function = calls[at], piece.get("function") or {}
        call["id"] = piece.get("id") or call["id"]
        name, arguments = function.get("name") or "", function.get("arguments") or ""
        call["function"]["name"] += name
        call["function"]["arguments"] += arguments if isinstance(arguments, str) else call_text(arguments)
        return AgentModelChunk("tool_call", call_text(arguments), at, name or None, piece.get("id") or None)


def _append(held: dict[str, Json], key: str, value: Json) -> None:
    """Join what comes in pieces: lists and the lists in objects grow, the rest is replaced."""
    before = held.get(key)
    if isinstance(before, list) and isinstance(value, list):
        held[key] = [*before, *value]
    elif isinstance(before, Mapping) and isinstance(value, Mapping):
        merged = dict(before)
        for name, inner in value.items():
            if inner is not None:
                _append(merged, name, inner)
        held[key] = merged
    else:
        held[key] = value
