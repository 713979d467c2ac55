"""The chat completions API as a scripted model speaks it: a request read, an answer rendered whole or as a stream.

Source of the shapes: the OpenAI API reference, "Chat" (object ``chat.completion`` and ``chat.completion.chunk``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from otel_agentrec.demo.script import Asked, Turn
from otel_agentrec.demo.wording import arguments_text, content_text, count, pieces, said, said_pieces

__all__ = ["body", "events", "read"]

Json = Any


def read(request: Mapping[str, Json]) -> Asked:
    """What a request body asks; wrong shapes read as empty."""
    messages: list[tuple[str, str]] = []
    results: list[str] = []
    step = 1
    for message in request.get("messages") or ():
        if not isinstance(message, dict):
            continue
        role, text = str(message.get("role") or ""), content_text(message.get("content"))
        messages.append((role, text))
        if role == "user":
            step, results = 1, []
        elif role == "assistant":
            step, results = step + 1, []
        elif role == "tool":
            results.append(text)
    return Asked("chat", str(request.get("model") or ""), tuple(messages), step, tuple(results))


def body(turn: Turn, asked: Asked, answer_id: str, created: int) -> dict[str, Json]:
    """The whole answer."""
    message: dict[str, Json] = {"role": "assistant", "content": said(turn, asked) or None, "refusal": None}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.tool_calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in _calls(turn, asked, answer_id)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(turn)}
    return {
        "id": answer_id,
        "object": "chat.completion",
        "created": created,
        "model": asked.model,
        "choices": [choice],
        "usage": _usage(turn, asked),
        "system_fingerprint": "fp_scripted",
    }


def events(
    turn: Turn, asked: Asked, answer_id: str, created: int, *, include_usage: bool, whole_calls: bool = False
) -> Iterator[dict[str, Json]]:
    """The answer as the chunks of a stream. Parallel calls come interleaved, as OpenAI may send them; or, ``whole_calls``,
    each in one piece, as Mistral sends them."""
    head = {"id": answer_id, "object": "chat.completion.chunk", "created": created, "model": asked.model}

    def chunk(delta: dict[str, Json], finish: str | None = None) -> dict[str, Json]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        # with include_usage every chunk but the last has a null usage
        return {**head, "choices": [choice], **({"usage": None} if include_usage else {})}

    yield chunk({"role": "assistant", "content": None if turn.tool_calls and not said(turn, asked) else ""})
    for piece in pieces(turn.reasoning):
        yield chunk({"reasoning_content": piece})
    for piece in said_pieces(turn, asked):
        yield chunk({"content": piece})
    calls = list(_calls(turn, asked, answer_id))
    for at, (call_id, name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": arguments if whole_calls else ""}
        yield chunk({"tool_calls": [{"index": at, "id": call_id, "type": "function", "function": function}]})
    for half in () if whole_calls else (0, 1):
        for at, (_, _, arguments) in enumerate(calls):
            middle = len(arguments) // 2
            part = arguments[middle:] if half else arguments[:middle]
            if part:
                yield chunk({"tool_calls": [{"index": at, "function": {"arguments": part}}]})
    yield chunk({}, _finish_reason(turn))
    if include_usage:
        yield {**head, "choices": [], "usage": _usage(turn, asked)}


def _calls(turn: Turn, asked: Asked, answer_id: str) -> Iterator[tuple[str, str, str]]:
    for at, call in enumerate(turn.tool_calls):
        yield call.id or f"call_{answer_id.rpartition('-')[2]}_{at}", call.name, arguments_text(call, asked)


def _finish_reason(turn: Turn) -> str:
    return turn.finish_reason or ("tool_calls" if turn.tool_calls else "stop")


def _usage(turn: Turn, asked: Asked) -> dict[str, Json]:
    usage = turn.usage or count(turn, asked)
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }


def sse(event: Mapping[str, Json]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"


SSE_END = b"data: [DONE]\n\n"
