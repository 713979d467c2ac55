"""Content blocks of Bedrock's Converse API, where they stand by themselves. (In messages, ``messages.part`` reads them.)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects.values import loaded

__all__ = ["result"]

Json = Any


def result(value: Json) -> Json:
    """The result of a tool ``[{text} | {json} | …]``, or its JSON text: of one block what it holds, else as it came."""
    blocks = loaded(value)
    if not isinstance(blocks, (list, tuple)) or len(blocks) != 1 or not isinstance(blocks[0], Mapping):
        return value
    held = dict(blocks[0])
    if held.keys() == {"text"} and isinstance(held["text"], str):
        return held["text"]
    return held["json"] if held.keys() == {"json"} else value
