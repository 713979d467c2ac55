"""Chunks of a chat completion -> the completion. Many servers speak this API, each with fields of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from otel_agentrec.nodes.answers.deltas import add_delta

__all__ = ["merge"]

Json = Any
_OF_CHUNKS = ("choices", "object", "usage", "obfuscation")


def merge(chunks: Sequence[dict[str, Json]]) -> tuple[dict[str, Json], bool]:
    """-> (the completion as without streaming, whether each choice has said why it ended).

    A chunk that has only usage adds usage; it takes nothing away.
    """
    whole: dict[str, Json] = {}
    choices: dict[int, dict[str, Json]] = {}
    for chunk in chunks:
        for key, value in chunk.items():
            if key not in _OF_CHUNKS and value is not None and not (key in whole and value in ("", 0)):
                whole.setdefault(key, value)
        if chunk.get("usage") is not None:
            whole["usage"] = chunk["usage"]
        for told in chunk.get("choices") or ():
            if isinstance(told, dict):
                _add_choice(choices, told)
    kind = chunks[0].get("object") if chunks else None
    whole["object"] = "text_completion" if kind == "text_completion" else "chat.completion"
    for choice in choices.values():
        calls = choice.get("message", {}).get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                call.pop("index", None)  # its place in the stream
    whole["choices"] = [choices[index] for index in sorted(choices)]
    return whole, bool(choices) and all(choice.get("finish_reason") for choice in choices.values())


def _add_choice(choices: dict[int, dict[str, Json]], told: dict[str, Json]) -> None:
    given = told.get("index")
    index = given if isinstance(given, int) else 0
    choice = choices.setdefault(index, {"index": index, "finish_reason": None})
    for key, value in told.items():
        if key == "delta" and isinstance(value, dict):
            add_delta(choice.setdefault("message", {"role": "assistant", "content": None}), value)
        elif key == "text" and isinstance(value, str):
            choice["text"] = choice.get("text", "") + value
        elif key == "logprobs" and isinstance(value, dict):
            add_delta(choice.setdefault("logprobs", {}), value)
        elif key not in ("delta", "index") and value is not None:
            choice[key] = value
