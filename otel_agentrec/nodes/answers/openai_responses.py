"""Events of OpenAI's Responses API -> the response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["ENDS", "merge"]

Json = Any
ENDS = ("response.completed", "response.incomplete", "response.failed")
_DELTAS = {
    "response.output_text.delta": ("content", "content_index", "text", "output_text"),
    "response.refusal.delta": ("content", "content_index", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "content_index", "text", "reasoning_text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "text", "summary_text"),
}
"""Event -> (list of the item, key of the index in it, key of the text, type of a part that was not announced)."""
_ARGUMENTS = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.code_interpreter_call_code.delta": "code",
}


def merge(events: Sequence[dict[str, Json]]) -> tuple[dict[str, Json], bool]:
    """-> (the response, whether it came to its end). The last event holds all of it; of a stream that was cut, what was told."""
    whole: dict[str, Json] = {}
    items: dict[int, dict[str, Json]] = {}
    for event in events:
        kind, held = event.get("type"), event.get("response")
        if isinstance(held, dict):
            if kind in ENDS:
                return held, True
            whole = {**whole, **held}
        elif isinstance(event.get("output_index"), int):
            _add(items, event["output_index"], event)
    if items:
        whole["output"] = [items[index] for index in sorted(items)]
    return whole, False


def _add(items: dict[int, dict[str, Json]], index: int, event: dict[str, Json]) -> None:
    kind, item = str(event.get("type")), event.get("item")
    if isinstance(item, dict):  # announced, or done
        items[index] = {**item, **{k: [*v] for k, v in item.items() if isinstance(v, list)}}
        return
    into = items.setdefault(index, {})
    delta = event.get("delta")
    if kind in _DELTAS and isinstance(delta, str):
        listed, place, key, type_ = _DELTAS[kind]
        parts = into.setdefault(listed, [])
        number = event.get(place) if isinstance(event.get(place), int) else 0
        while len(parts) <= min(int(number or 0), 1 << 12):
            parts.append({"type": type_, key: ""})
        part = parts[min(int(number or 0), 1 << 12)] = {**parts[min(int(number or 0), 1 << 12)]}
        part[key] = (part.get(key) or "") + delta
    elif kind in _ARGUMENTS and isinstance(delta, str):
        key = _ARGUMENTS[kind]
        into[key] = (into.get(key) or "") + delta
