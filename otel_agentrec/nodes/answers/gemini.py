"""Chunks of Gemini's ``streamGenerateContent`` -> what ``generateContent`` would have answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["is_whole", "merge"]

Json = Any


def merge(chunks: Sequence[dict[str, Json]]) -> tuple[dict[str, Json], bool]:
    """-> (the answer, whether each candidate has said why it ended, or the prompt was refused)."""
    whole: dict[str, Json] = {}
    candidates: dict[int, dict[str, Json]] = {}
    for chunk in chunks:
        whole.update({key: value for key, value in chunk.items() if key != "candidates" and value is not None})
        for told in chunk.get("candidates") or ():
            if isinstance(told, dict):
                index = told["index"] if isinstance(told.get("index"), int) else 0
                _add(candidates.setdefault(index, {}), told)
    if candidates:
        whole["candidates"] = [candidates[index] for index in sorted(candidates)]
    return whole, is_whole(whole)


def is_whole(answer: dict[str, Json]) -> bool:
    """Whether an answer says why it ended."""
    candidates = answer.get("candidates")
    if candidates:
        return all(isinstance(c, dict) and bool(c.get("finishReason")) for c in candidates)
    feedback = answer.get("promptFeedback")
    return isinstance(feedback, dict) and bool(feedback.get("blockReason"))


def _add(candidate: dict[str, Json], told: dict[str, Json]) -> None:
    for key, value in told.items():
        if key != "content" or not isinstance(value, dict):
            candidate[key] = value
            continue
        content = candidate.setdefault("content", {})
        content.update({k: v for k, v in value.items() if k != "parts"})
        parts = content.setdefault("parts", [])
        for part in value.get("parts") or ():
            if parts and _goes_on(parts[-1], part):
                parts[-1] = {**parts[-1], **part, "text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)


def _goes_on(last: Json, part: Json) -> bool:
    """Whether a part goes on with the text, or the thought, of the one before it."""
    both = isinstance(last, dict) and isinstance(part, dict)
    if not both or not isinstance(last.get("text"), str) or not isinstance(part.get("text"), str):
        return False
    return bool(last.get("thought")) == bool(part.get("thought")) and "thoughtSignature" not in last
