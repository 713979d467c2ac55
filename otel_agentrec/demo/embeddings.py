"""OpenAI's embeddings API as a scripted model speaks it: a vector that depends on nothing but the text.

Needs no turn of the script; one with ``when.api == "embeddings"`` can make it fail or be slow.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Mapping
from typing import Any

from otel_agentrec.demo.script import Asked, Turn

__all__ = ["body", "read", "vector"]

Json = Any

SIZE = 8
"""Numbers in a vector, unless the request says ``dimensions``."""


def read(request: Mapping[str, Json]) -> Asked:
    """What a request body asks: each text is a message."""
    held = request.get("input")
    texts = held if isinstance(held, list) and not all(isinstance(x, int) for x in held) else [held]
    messages = tuple(("user", text if isinstance(text, str) else str(text)) for text in texts)
    return Asked("embeddings", str(request.get("model") or ""), messages, 1, ())


def body(turn: Turn, asked: Asked, request: Mapping[str, Json]) -> dict[str, Json]:
    """The whole answer."""
    size = request.get("dimensions")
    vectors = [vector(text, size if isinstance(size, int) else SIZE) for _, text in asked.messages]
    tokens = turn.usage.input if turn.usage else sum(max(1, len(text) // 4) for _, text in asked.messages)
    coded = request.get("encoding_format") == "base64"
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": at, "embedding": _coded(numbers) if coded else numbers}
            for at, numbers in enumerate(vectors)
        ],
        "model": asked.model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def vector(text: str, size: int = SIZE) -> list[float]:
    """Numbers between −1 and 1 that a 32-bit float holds exactly."""
    digest = hashlib.shake_128(text.encode("utf-8", "surrogatepass")).digest(size)
    return [(byte - 128) / 128 for byte in digest]


def _coded(numbers: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
