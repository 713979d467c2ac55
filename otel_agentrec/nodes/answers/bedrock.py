"""Events of Bedrock's ``converse-stream`` -> what ``converse`` would have answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

__all__ = ["merge"]

Json = Any


def merge(events: Sequence[tuple[str, dict[str, Json]]]) -> tuple[dict[str, Json], bool]:
    """-> (the answer, whether the message came to its end).

    Args:
        events: (event type, payload) in order.
    """
    role = "assistant"
    whole: dict[str, Json] = {}
    blocks: dict[int, dict[str, Json]] = {}
    ended = False
    for kind, held in events:
        index = held["contentBlockIndex"] if isinstance(held.get("contentBlockIndex"), int) else 0
        if kind == "messageStart":
            role = str(held.get("role") or role)
        elif kind == "contentBlockStart" and isinstance(held.get("start"), dict):
            blocks[index] = {key: dict(v) if isinstance(v, dict) else v for key, v in held["start"].items()}
        elif kind == "contentBlockDelta" and isinstance(held.get("delta"), dict):
            _add(blocks.setdefault(index, {}), held["delta"])
        elif kind == "messageStop":
            ended = True
            whole.update({key: v for key, v in held.items() if key != "p"})
        elif kind == "metadata":
            whole.update({key: v for key, v in held.items() if key != "p"})
    for block in blocks.values():
        if isinstance(block.get("toolUse"), dict):
            block["toolUse"]["input"] = _parsed(block["toolUse"].get("input", ""))
    content = [blocks[index] for index in sorted(blocks)]
    return {"output": {"message": {"role": role, "content": content}}, **whole}, ended


def _add(block: dict[str, Json], delta: dict[str, Json]) -> None:
    for key, value in delta.items():
        if key == "text" and isinstance(value, str):
            block["text"] = block.get("text", "") + value
        elif key == "toolUse" and isinstance(value, dict):
            held = block.setdefault("toolUse", {})
            held["input"] = str(held.get("input") or "") + str(value.get("input") or "")
        elif key == "reasoningContent" and isinstance(value, dict):
            _add_reasoning(block.setdefault("reasoningContent", {}), value)
        else:
            block[key] = value


def _add_reasoning(held: dict[str, Json], value: dict[str, Json]) -> None:
    for key, told in value.items():
        if key in ("text", "signature") and isinstance(told, str):
            text = held.setdefault("reasoningText", {})
            text[key] = text.get(key, "") + told
        else:
            held[key] = told


def _parsed(text: Json) -> Json:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return text
