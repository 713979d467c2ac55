"""The Gemini API as a scripted model speaks it: ``generateContent`` and ``streamGenerateContent``.

Source of the shapes: Google's reference of the Gemini API, "Generating content". The model's name stands in the path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from otel_agentrec.demo.script import Asked, Turn
from otel_agentrec.demo.wording import arguments_text, content_text, count, pieces, said, said_pieces

__all__ = ["body", "error", "events", "read", "sse"]

Json = Any


def read(request: Mapping[str, Json], model: str) -> Asked:
    """What a request body asks; wrong shapes read as empty."""
    messages: list[tuple[str, str]] = []
    results: list[str] = []
    step = 1
    system = request.get("systemInstruction")
    if isinstance(system, dict):
        messages.append(("system", content_text(system.get("parts"))))
    for content in request.get("contents") or ():
        if not isinstance(content, dict):
            continue
        role = "assistant" if content.get("role") == "model" else str(content.get("role") or "user")
        parts = [part for part in content.get("parts") or () if isinstance(part, dict)]
        told = [_result_text(part["functionResponse"]) for part in parts if "functionResponse" in part]
        if role == "assistant":
            step, results = step + 1, []
        elif told:
            results.extend(told)
            messages.extend(("tool", text) for text in told)
        else:
            step, results = 1, []
        text = content_text(parts)
        if text or not told:
            messages.append((role, text))
    return Asked("gemini", model, tuple(messages), step, tuple(results))


def body(turn: Turn, asked: Asked, answer_id: str, created: int = 0) -> dict[str, Json]:
    """The whole answer."""
    parts: list[Json] = [{"text": turn.reasoning, "thought": True}] if turn.reasoning else []
    text = said(turn, asked)
    if text or not turn.tool_calls:
        parts.append({"text": text})
    parts.extend(_calls(turn, asked, answer_id))
    return _frame(asked, answer_id, parts, turn.finish_reason or "STOP", _usage(turn, asked))


def events(turn: Turn, asked: Asked, answer_id: str, created: int = 0) -> Iterator[dict[str, Json]]:
    """The answer as the chunks of a stream; a call comes in one piece, the last chunk tells why it ended."""
    parts: list[Json] = [{"text": piece, "thought": True} for piece in pieces(turn.reasoning)]
    parts += [{"text": piece} for piece in said_pieces(turn, asked)]
    parts += _calls(turn, asked, answer_id)
    usage = _usage(turn, asked)
    for part in parts:
        yield _frame(asked, answer_id, [part], None, {"promptTokenCount": usage["promptTokenCount"]})
    yield _frame(asked, answer_id, [{"text": ""}], turn.finish_reason or "STOP", usage)


def error(status: int, message: str) -> dict[str, Json]:
    """The body of an answer with this HTTP status."""
    kind = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
    kind |= {500: "INTERNAL", 503: "UNAVAILABLE"}
    return {"error": {"code": status, "message": message, "status": kind.get(status, "UNKNOWN")}}


def _frame(asked: Asked, answer_id: str, parts: list[Json], reason: str | None, usage: Json) -> dict[str, Json]:
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": asked.model, "responseId": answer_id}


def _calls(turn: Turn, asked: Asked, answer_id: str) -> list[Json]:
    """Only ids that the script gives: Gemini itself gives none."""
    return [
        {
            "functionCall": {
                **({"id": call.id} if call.id else {}),
                "name": call.name,
                "args": json.loads(arguments_text(call, asked)),
            }
        }
        for call in turn.tool_calls
    ]


def _result_text(response: Json) -> str:
    held = response.get("response") if isinstance(response, dict) else response
    if isinstance(held, dict) and len(held) == 1:
        held = next(iter(held.values()))  # {"result": …} or {"output": …}
    return content_text(held)


def _usage(turn: Turn, asked: Asked) -> dict[str, Json]:
    """Gemini counts thoughts beside the tokens of the answer."""
    usage = turn.usage or count(turn, asked)
    return {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": usage.input + usage.output,
        "cachedContentTokenCount": usage.cached,
        "thoughtsTokenCount": usage.reasoning,
    }


def sse(event: Mapping[str, Json]) -> bytes:
    """One server-sent event."""
    return b"data: %s\r\n\r\n" % json.dumps(event, ensure_ascii=False).encode()
