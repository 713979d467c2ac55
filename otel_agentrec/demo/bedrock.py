"""Bedrock's runtime as a scripted model speaks it: Converse, ConverseStream, and InvokeModel with Anthropic's bodies.

Source of the shapes: AWS's API reference of the Bedrock runtime, and "Event stream encoding" of the SDK documentation.
The model's id stands in the path. Signatures of requests are not looked at.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from otel_agentrec.demo.script import Asked, Turn
from otel_agentrec.demo.wording import arguments_text, content_text, count, pieces, said, said_pieces

__all__ = ["body", "chunk", "error", "error_type", "events", "frame", "read"]

Json = Any


def read(request: Mapping[str, Json], model: str) -> Asked:
    """What a Converse request asks; wrong shapes read as empty."""
    messages: list[tuple[str, str]] = []
    results: list[str] = []
    step = 1
    if request.get("system"):
        messages.append(("system", content_text(request["system"])))
    for message in request.get("messages") or ():
        if not isinstance(message, dict):
            continue
        role = str(message.get("role") or "")
        blocks = [block for block in message.get("content") or () if isinstance(block, dict)]
        told = [_result_text(block["toolResult"]) for block in blocks if "toolResult" in block]
        if role == "assistant":
            step, results = step + 1, []
        elif told:
            results.extend(told)
            messages.extend(("tool", text) for text in told)
        else:
            step, results = 1, []
        text = content_text(blocks)
        if text or not told:
            messages.append((role, text))
    return Asked("bedrock", model, tuple(messages), step, tuple(results))


def body(turn: Turn, asked: Asked, answer_id: str, created: int = 0) -> dict[str, Json]:
    """The whole answer of Converse."""
    content: list[Json] = []
    if turn.reasoning:
        content.append(
            {"reasoningContent": {"reasoningText": {"text": turn.reasoning, "signature": _signed(answer_id)}}}
        )
    text = said(turn, asked)
    if text or not turn.tool_calls:
        content.append({"text": text})
    for call_id, name, arguments in _calls(turn, asked, answer_id):
        content.append({"toolUse": {"toolUseId": call_id, "name": name, "input": json.loads(arguments)}})
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _stop_reason(turn),
        "usage": _usage(turn, asked),
        "metrics": {"latencyMs": 1},
    }


def events(turn: Turn, asked: Asked, answer_id: str, created: int = 0) -> Iterator[tuple[str, dict[str, Json]]]:
    """The answer of ConverseStream as (type of event, payload)."""
    yield "messageStart", {"role": "assistant"}
    blocks: list[tuple[Json, list[Json]]] = []
    if turn.reasoning:
        held: list[Json] = [{"reasoningContent": {"text": piece}} for piece in pieces(turn.reasoning)]
        blocks.append((None, [*held, {"reasoningContent": {"signature": _signed(answer_id)}}]))
    if said(turn, asked) or not turn.tool_calls:
        blocks.append((None, [{"text": piece} for piece in said_pieces(turn, asked)]))
    for call_id, name, arguments in _calls(turn, asked, answer_id):
        middle = len(arguments) // 2
        parts = [{"toolUse": {"input": part}} for part in (arguments[:middle], arguments[middle:])]
        blocks.append(({"toolUse": {"toolUseId": call_id, "name": name}}, parts))
    for index, (start, deltas) in enumerate(blocks):
        if start is not None:  # text and reasoning begin without
            yield "contentBlockStart", {"start": start, "contentBlockIndex": index}
        for delta in deltas:
            yield "contentBlockDelta", {"delta": delta, "contentBlockIndex": index}
        yield "contentBlockStop", {"contentBlockIndex": index}
    yield "messageStop", {"stopReason": _stop_reason(turn)}
    yield "metadata", {"usage": _usage(turn, asked), "metrics": {"latencyMs": 1}}


def chunk(event: Mapping[str, Json]) -> bytes:
    """An event of the model's own stream inside InvokeModelWithResponseStream."""
    return frame("chunk", {"bytes": base64.b64encode(json.dumps(event).encode()).decode()})


def frame(kind: str, payload: Json) -> bytes:
    """One message of AWS's event stream encoding."""
    data = json.dumps(payload, ensure_ascii=False).encode()
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in named.items()
    )
    prelude = struct.pack(">II", 16 + len(headers) + len(data), len(headers))
    head = prelude + struct.pack(">I", zlib.crc32(prelude))
    whole = head + headers + data
    return whole + struct.pack(">I", zlib.crc32(whole))


def error(status: int, message: str) -> dict[str, Json]:
    """The body of an answer with this HTTP status."""
    return {"message": message}


def error_type(status: int) -> str:
    """What the header ``x-amzn-errortype`` says with this HTTP status."""
    kinds = {400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException"}
    kinds |= {429: "ThrottlingException", 503: "ServiceUnavailableException"}
    return kinds.get(status, "InternalServerException" if status >= 500 else "ValidationException")


def _calls(turn: Turn, asked: Asked, answer_id: str) -> Iterator[tuple[str, str, str]]:
    for at, call in enumerate(turn.tool_calls):
        yield call.id or f"tooluse_{answer_id.rpartition('-')[2]}_{at}", call.name, arguments_text(call, asked)


def _signed(answer_id: str) -> str:
    return base64.b64encode(f"signed {answer_id}".encode()).decode()


def _stop_reason(turn: Turn) -> str:
    return turn.finish_reason or ("tool_use" if turn.tool_calls else "end_turn")


def _result_text(result: Json) -> str:
    blocks = result.get("content") if isinstance(result, dict) else None
    held = [block for block in blocks or () if isinstance(block, dict)]
    return "".join(content_text(block["json"]) if "json" in block else str(block.get("text") or "") for block in held)


def _usage(turn: Turn, asked: Asked) -> dict[str, Json]:
    usage = turn.usage or count(turn, asked)
    return {
        "inputTokens": usage.input - usage.cached,
        "outputTokens": usage.output,
        "totalTokens": usage.input + usage.output,
        "cacheReadInputTokens": usage.cached,
        "cacheWriteInputTokens": 0,
    }
