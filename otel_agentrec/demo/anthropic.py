"""The messages API as a scripted model speaks it: a request read, an answer rendered whole or as a stream of events.

Source of the shapes: Anthropic's API reference, "Messages", "Streaming messages", "Errors".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from otel_agentrec.demo.script import Asked, Turn
from otel_agentrec.demo.wording import arguments_text, content_text, count, pieces, said, said_pieces

__all__ = ["body", "error", "events", "read", "sse"]

Json = Any

PREFIX = "msg_"
"""What ids of answers begin with."""


def read(request: Mapping[str, Json], model: str = "") -> Asked:
    """What a request body asks; wrong shapes read as empty. ``model``: where the path tells it (Bedrock)."""
    messages: list[tuple[str, str]] = []
    results: list[str] = []
    step = 1
    if request.get("system"):
        messages.append(("system", content_text(request["system"])))
    for message in request.get("messages") or ():
        if not isinstance(message, dict):
            continue
        role, content = str(message.get("role") or ""), message.get("content")
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        told = [content_text(b.get("content")) for b in blocks if b.get("type") == "tool_result"]
        if role == "assistant":
            step, results = step + 1, []
        elif told:
            results.extend(told)
            messages.extend(("tool", text) for text in told)
        else:
            step, results = 1, []
        text = content_text(content)
        if text or not told:
            messages.append((role, text))
    return Asked("anthropic", str(request.get("model") or model), tuple(messages), step, tuple(results))


def body(turn: Turn, asked: Asked, answer_id: str, created: int = 0) -> dict[str, Json]:
    """The whole answer."""
    return {
        "id": answer_id,
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": _blocks(turn, asked, answer_id),
        "stop_reason": turn.finish_reason or ("tool_use" if turn.tool_calls else "end_turn"),
        "stop_sequence": None,
        "usage": _usage(turn, asked),
    }


def events(turn: Turn, asked: Asked, answer_id: str, created: int = 0) -> Iterator[dict[str, Json]]:
    """The answer as the events of a stream: each block is begun empty and filled piece by piece."""
    whole = body(turn, asked, answer_id)
    usage = {**whole["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None, "usage": usage}}
    for index, block in enumerate(whole["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **_EMPTY[block["type"]]}}
        for delta in _deltas(block, turn, asked):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def error(status: int, message: str) -> dict[str, Json]:
    """The body of an answer with this HTTP status."""
    kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}


_ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_EMPTY: dict[str, dict[str, Json]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def _blocks(turn: Turn, asked: Asked, answer_id: str) -> list[dict[str, Json]]:
    tail = answer_id.removeprefix(PREFIX)
    blocks: list[dict[str, Json]] = []
    if turn.reasoning:
        blocks.append({"type": "thinking", "thinking": turn.reasoning, "signature": f"signed-{tail}"})
    text = said(turn, asked)
    if text or not turn.tool_calls:
        blocks.append({"type": "text", "text": text})
    for at, call in enumerate(turn.tool_calls):
        given = json.loads(arguments_text(call, asked))
        blocks.append({"type": "tool_use", "id": call.id or f"toolu_{tail}_{at}", "name": call.name, "input": given})
    return blocks


def _deltas(block: Mapping[str, Json], turn: Turn, asked: Asked) -> Iterator[dict[str, Json]]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in said_pieces(turn, asked))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(turn.reasoning))
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        text = json.dumps(block["input"], ensure_ascii=False)
        middle = len(text) // 2
        for part in ("", text[:middle], text[middle:]):
            yield {"type": "input_json_delta", "partial_json": part}


def _usage(turn: Turn, asked: Asked) -> dict[str, Json]:
    """Anthropic counts cached tokens apart."""
    usage = turn.usage or count(turn, asked)
    return {
        "input_tokens": usage.input - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    }


def sse(event: Mapping[str, Json]) -> bytes:
    """One server-sent event, named by its type."""
    return b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), json.dumps(event, ensure_ascii=False).encode())
