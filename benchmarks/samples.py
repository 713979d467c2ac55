"""The data that is measured: an event, a chat and its spans, always the same for the same arguments."""

from __future__ import annotations

import random
from typing import Any

Json = Any

WORDS = [
    "the",
    "agent",
    "asked",
    "for",
    "a",
    "forecast",
    "and",
    "the",
    "model",
    "answered",
    "that",
    "rain",
    "is",
    "likely",
    "after",
    "noon",
    "so",
    "a",
    "train",
    "at",
    "nine",
    "would",
    "be",
    "better",
    "than",
    "one",
    "at",
    "ten",
    "because",
    "the",
    "platform",
    "is",
    "crowded",
    "and",
    "3.5",
    "minutes",
    "are",
    "lost",
    "»schade«",
    "東京",
    "résumé",
]


def text(size: int, seed: int = 0) -> str:
    """Words of ``size`` bytes in UTF-8, or up to three more."""
    chosen = random.Random(seed)
    out, length = [], 0
    while length < size:
        word = chosen.choice(WORDS)
        out.append(word)
        length += len(word.encode()) + 1
    return " ".join(out).encode()[:size].decode(errors="ignore")


def message(role: str, size: int, seed: int = 0) -> Json:
    """One message in the schema of the OTel GenAI conventions, its text about ``size`` bytes long."""
    return {"role": role, "parts": [{"type": "text", "content": text(size, seed)}]}


def chat(messages: int, size: int) -> list[Json]:
    """A history of ``messages`` messages of ``size`` bytes, the user's and the model's in turns."""
    return [message("assistant" if n % 2 else "user", size, n) for n in range(messages)]


def event(size: int) -> Json:
    """An event of about ``size`` canonical bytes as a model call gives it with its content inline."""
    head: Json = {
        "id": "0b7f5a52-5f0e-4f7e-9a38-6d2f1c1f4f3e",
        "v": "agentrec/1",
        "stream": "20260131T120000Z-4711-9f3cab12",
        "seq": 1234,
        "ts": 1769860800123,
        "mono": "123456789012345",
        "type": "NODE_RECORDED",
        "trace": {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "path": []},
        "payload": {
            "type": "MODEL",
            "name": "chat gpt-5-mini",
            "startedAt": "1769860799000000000",
            "endedAt": "1769860800123000000",
            "facts": {"model": "gpt-5-mini", "inputTokens": 812, "outputTokens": 96, "temperature": 0.7},
        },
    }
    left = size - 650
    head["payload"]["facts"]["messages"] = chat(4, left // 4 - 55)
    return head
