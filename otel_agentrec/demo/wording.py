"""Text in and out of the APIs: message contents as text, answers cut into pieces, tokens counted roughly."""

from __future__ import annotations

import json
import re
from typing import Any

from otel_agentrec.demo.script import Asked, Call, Turn, Usage, fill

__all__ = ["arguments_text", "content_text", "count", "pieces", "said", "said_pieces"]

Json = Any


def content_text(content: Json) -> str:
    """The text of a message content: a string, or the joined texts of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return "" if content is None else json.dumps(content, ensure_ascii=False)


def arguments_text(call: Call, asked: Asked) -> str:
    """The arguments of a call as the JSON text that a model sends, placeholders replaced in its strings."""
    if isinstance(call.arguments, str):
        return call.arguments
    filled = {k: fill(v, asked) if isinstance(v, str) else v for k, v in call.arguments.items()}
    return json.dumps(filled, ensure_ascii=False)


def pieces(text: str) -> list[str]:
    """The pieces of a streamed text: one per word, the space before it included; joined they are the text."""
    return re.findall(r"\s*\S+|\s+$", text)


def said(turn: Turn, asked: Asked) -> str:
    """What the model says in this turn, placeholders replaced."""
    return "".join(turn.chunks) if turn.chunks is not None else fill(turn.text, asked)


def said_pieces(turn: Turn, asked: Asked) -> list[str]:
    """The same as the pieces of a stream."""
    return list(turn.chunks) if turn.chunks is not None else pieces(fill(turn.text, asked))


def count(turn: Turn, asked: Asked) -> Usage:
    """A plausible token count, four characters to a token; the same request always gives the same count."""
    calls = "".join(call.name + arguments_text(call, asked) for call in turn.tool_calls)
    answer = said(turn, asked) + turn.reasoning + calls
    heard = sum(len(text) + 12 for _, text in asked.messages)
    return Usage(max(1, heard // 4), max(1, len(answer) // 4), reasoning=len(turn.reasoning) // 4)
