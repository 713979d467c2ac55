"""The same answer of each API, whole and as a stream."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

Json = Any


def sse(events: list[Json], *, done: bool = False, named: bool = False) -> bytes:
    lines = [(f"event: {e['type']}\n" if named else "") + f"data: {json.dumps(e)}\n\n" for e in events]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def frame(kind: str, payload: Json) -> bytes:
    """A message of ``application/vnd.amazon.eventstream``."""
    headers = b""
    for name, value in ((":event-type", kind), (":content-type", "application/json"), (":message-type", "event")):
        headers += bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    data = json.dumps(payload).encode()
    head = struct.pack(">II", 16 + len(headers) + len(data), len(headers))
    message = head + struct.pack(">I", zlib.crc32(head)) + headers + data
    return message + struct.pack(">I", zlib.crc32(message))


def _chunk(delta: Json, reason: str | None = None, **more: Json) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [choice], **more}


CHAT = [
    _chunk({"role": "assistant", "content": "", "refusal": None}),
    _chunk({"content": "Grüß "}),
    _chunk({"content": "dich."}),
    _chunk({"tool_calls": [{"index": 0, "id": "t1", "type": "function", "function": {"name": "look", "arguments": ""}}]}),
    _chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]}),
    _chunk({"tool_calls": [{"index": 1, "id": "t2", "type": "function", "function": {"name": "go", "arguments": "{}"}}]}),
    _chunk({"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]}),
    _chunk({}, "tool_calls"),
    {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [], "usage": {"total_tokens": 7}},
]  # fmt: skip
CHAT_WHOLE = {
    "id": "c1", "object": "chat.completion", "created": 5, "model": "m", "usage": {"total_tokens": 7},
    "choices": [{
        "index": 0, "finish_reason": "tool_calls",
        "message": {
            "role": "assistant", "content": "Grüß dich.", "refusal": None,
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}},
                {"id": "t2", "type": "function", "function": {"name": "go", "arguments": "{}"}},
            ],
        },
    }],
}  # fmt: skip

RESPONSE = {"id": "r1", "object": "response", "status": "completed", "model": "m", "output": [
    {"type": "message", "id": "i1", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
    {"type": "function_call", "id": "i2", "call_id": "t1", "name": "look", "arguments": '{"a":1}'},
]}  # fmt: skip
RESPONSES = [
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "i1", "role": "assistant", "content": []}},
    {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "part": {"type": "output_text", "text": ""}},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hel"},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "lo."},
    {"type": "response.output_item.added", "output_index": 1, "item": {**RESPONSE["output"][1], "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a":1}'},
    {"type": "response.output_item.done", "output_index": 1, "item": RESPONSE["output"][1]},
    {"type": "response.completed", "response": RESPONSE},
]  # fmt: skip

MESSAGE = {"id": "m1", "type": "message", "role": "assistant", "model": "c", "stop_reason": "tool_use", "stop_sequence": None,
    "content": [{"type": "thinking", "thinking": "Hm, well", "signature": "S"}, {"type": "text", "text": "Hello."},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}}],
    "usage": {"input_tokens": 3, "output_tokens": 9}}  # fmt: skip
MESSAGES = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None, "usage": {"input_tokens": 3, "output_tokens": 1}}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm, "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "well"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "S"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hello."}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t1", "name": "look", "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]  # fmt: skip

CANDIDATE = {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
    {"text": "Hm.", "thought": True}, {"text": "Hello."}, {"functionCall": {"name": "look", "args": {"a": 1}}}]}}  # fmt: skip
GEMINI_WHOLE = {
    "candidates": [CANDIDATE],
    "usageMetadata": {"totalTokenCount": 9},
    "modelVersion": "g",
    "responseId": "g1",
}


def _part(*parts: Json, **more: Json) -> Json:
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": list(parts)}, **more}], "modelVersion": "g",
            "responseId": "g1", "usageMetadata": {"totalTokenCount": 2}}  # fmt: skip


GEMINI = [
    _part({"text": "Hm.", "thought": True}),
    _part({"text": "Hel"}),
    _part({"text": "lo."}),
    {**_part({"functionCall": {"name": "look", "args": {"a": 1}}}, finishReason="STOP"), "usageMetadata": {"totalTokenCount": 9}},
]  # fmt: skip

CONVERSE_WHOLE = {"output": {"message": {"role": "assistant", "content": [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "S"}}}, {"text": "Hello."},
        {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"a": 1}}}]}},
    "stopReason": "tool_use", "usage": {"inputTokens": 3}, "metrics": {"latencyMs": 4}}  # fmt: skip
CONVERSE = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Hm."}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "S"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "Hel"}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "lo."}}),
    ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "look"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"a":'}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": "1}"}}}),
    ("contentBlockStop", {"contentBlockIndex": 2}),
    ("messageStop", {"stopReason": "tool_use", "p": "abc"}),
    ("metadata", {"usage": {"inputTokens": 3}, "metrics": {"latencyMs": 4}}),
]

OLLAMA_WHOLE = {
    "model": "o",
    "message": {"role": "assistant", "content": "Hello."},
    "done": True,
    "done_reason": "stop",
}
OLLAMA = [
    {"model": "o", "message": {"role": "assistant", "content": "Hel"}, "done": False},
    {"model": "o", "message": {"role": "assistant", "content": "lo."}, "done": False},
    {"model": "o", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
]

EVENTS = "text/event-stream"
STREAMS: dict[str, tuple[str, list[bytes], Json]] = {
    "chat": (EVENTS, [sse([e]) for e in CHAT] + [b"data: [DONE]\n\n"], CHAT_WHOLE),
    "responses": (EVENTS, [sse([e], named=True) for e in RESPONSES], RESPONSE),
    "anthropic": (EVENTS, [sse([e], named=True) for e in MESSAGES], MESSAGE),
    "gemini": (EVENTS, [sse([e]) for e in GEMINI], GEMINI_WHOLE),
    "bedrock": ("application/vnd.amazon.eventstream", [frame(*e) for e in CONVERSE], CONVERSE_WHOLE),
    "ollama": ("application/x-ndjson", [json.dumps(e).encode() + b"\n" for e in OLLAMA], OLLAMA_WHOLE),
}
"""API -> (content type, its pieces in order, the answer as without streaming)."""
