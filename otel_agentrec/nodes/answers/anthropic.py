"""Events of Anthropic's Messages API -> the message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

__all__ = ["TYPES", "merge"]

Json = Any
TYPES = frozenset(
    [
        "message_start",
        "message_delta",
        "message_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "ping",
    ]
)
_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def merge(events: Sequence[dict[str, Json]]) -> tuple[dict[str, Json], bool]:
    """-> (the message, whether it came to its end)."""
    message: dict[str, Json] = {}
    blocks: dict[int, dict[str, Json]] = {}
    inputs: dict[int, str] = {}
    ended = False
    for event in events:
        kind = event.get("type")
        index = event["index"] if isinstance(event.get("index"), int) else 0
        if kind == "message_start" and isinstance(event.get("message"), dict):
            message = dict(event["message"])
        elif kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            blocks[index] = dict(event["content_block"])
        elif kind == "content_block_delta" and isinstance(event.get("delta"), dict):
            _add(blocks.setdefault(index, {}), event["delta"], inputs, index)
        elif kind == "message_delta":
            delta, usage = event.get("delta"), event.get("usage")
            message.update(delta if isinstance(delta, dict) else {})
            if isinstance(usage, dict):
                known = message.get("usage")
                told = {key: value for key, value in usage.items() if value is not None}
                message["usage"] = {**(known if isinstance(known, dict) else {}), **told}
            message.update({k: v for k, v in event.items() if k not in ("type", "delta", "usage")})
        elif kind == "message_stop":
            ended = True
    for index, text in inputs.items():
        blocks[index]["input"] = _parsed(text)
    if blocks:
        message["content"] = [blocks[index] for index in sorted(blocks)]
    return message, ended


def _add(block: dict[str, Json], delta: dict[str, Json], inputs: dict[int, str], index: int) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta":
        inputs[index] = inputs.get(index, "") + str(delta.get("partial_json") or "")
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
    elif kind in _TEXTS:
        key = _TEXTS[kind]
        block[key] = (block.get(key) or "") + str(delta.get(key) or "")


def _parsed(text: str) -> Json:
    """The input of a tool; the text itself where the stream was cut in the middle of it."""
    try:
        return json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return text
