"""The responses API as a scripted model speaks it: a request read, an answer rendered whole or as a stream of events.

Source of the shapes: the OpenAI API reference, "Responses" and "Streaming events".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from otel_agentrec.demo.script import Asked, Turn
from otel_agentrec.demo.wording import arguments_text, content_text, count, pieces, said, said_pieces

__all__ = ["body", "events", "read", "sse"]

Json = Any


def read(request: Mapping[str, Json], before: Sequence[Json] = ()) -> tuple[Asked, list[Json]]:
    """What a request body asks, and all its items; ``before`` are those of the response that it continues."""
    given = request.get("input")
    items: list[Json] = [*before]
    if isinstance(given, str):
        items.append({"role": "user", "content": given})
    elif isinstance(given, list):
        items.extend(item for item in given if isinstance(item, dict))
    messages: list[tuple[str, str]] = []
    if isinstance(request.get("instructions"), str):
        messages.append(("system", request["instructions"]))
    results: list[str] = []
    step, answering = 1, False
    for item in items:
        kind = item.get("type") or "message"
        role, text = str(item.get("role") or kind), content_text(item.get("content"))
        answer = role == "assistant" or kind in ("function_call", "reasoning")
        if kind == "function_call_output":
            role, text = "tool", content_text(item.get("output"))
            results.append(text)
        elif role == "user":
            step, results = 1, []
        elif answer and not answering:
            # the items of one answer follow one another
            step, results = step + 1, []
        answering = answer
        if kind in ("message", "function_call_output"):
            messages.append((role, text))
    return Asked("responses", str(request.get("model") or ""), tuple(messages), step, tuple(results)), items


def body(turn: Turn, asked: Asked, answer_id: str, created: int) -> dict[str, Json]:
    """The whole answer."""
    done = {"output": _items(turn, asked, answer_id), "usage": _usage(turn, asked)}
    return {**_frame(asked, answer_id, created, "completed"), **done}


def events(turn: Turn, asked: Asked, answer_id: str, created: int) -> Iterator[dict[str, Json]]:
    """The answer as the events of a stream, ``sequence_number`` included."""
    for number, event in enumerate(_events(turn, asked, answer_id, created)):
        yield {**event, "sequence_number": number}


def _events(turn: Turn, asked: Asked, answer_id: str, created: int) -> Iterator[dict[str, Json]]:
    begun = _frame(asked, answer_id, created, "in_progress")
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for at, item in enumerate(_items(turn, asked, answer_id)):
        where = {"item_id": item["id"], "output_index": at}
        if item["type"] == "function_call":
            yield _item("added", at, {**item, "arguments": "", "status": "in_progress"})
            arguments = item["arguments"]
            middle = len(arguments) // 2
            for part in filter(None, (arguments[:middle], arguments[middle:])):
                yield {"type": "response.function_call_arguments.delta", **where, "delta": part}
            done = {"arguments": arguments, "name": item["name"]}
            yield {"type": "response.function_call_arguments.done", **where, **done}
        elif item["type"] == "reasoning":
            place = {**where, "summary_index": 0}
            yield _item("added", at, {**item, "summary": []})
            for piece in pieces(turn.reasoning):
                yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
            yield {"type": "response.reasoning_summary_text.done", **place, "text": turn.reasoning}
        else:
            part, place = item["content"][0], {**where, "content_index": 0}
            yield _item("added", at, {**item, "content": [], "status": "in_progress"})
            yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
            for piece in said_pieces(turn, asked):
                yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
            yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done", **place, "part": part}
        yield _item("done", at, item)
    yield {"type": "response.completed", "response": body(turn, asked, answer_id, created)}


def _item(what: str, at: int, item: dict[str, Json]) -> dict[str, Json]:
    return {"type": f"response.output_item.{what}", "output_index": at, "item": item}


def _items(turn: Turn, asked: Asked, answer_id: str) -> list[dict[str, Json]]:
    tail = answer_id.rpartition("-")[2]
    items: list[dict[str, Json]] = []
    if turn.reasoning:
        summary = [{"type": "summary_text", "text": turn.reasoning}]
        items.append({"type": "reasoning", "id": f"rs_{tail}", "summary": summary})
    if said(turn, asked) or not turn.tool_calls:
        content = [{"type": "output_text", "text": said(turn, asked), "annotations": [], "logprobs": []}]
        items.append(
            {"type": "message", "id": f"msg_{tail}", "role": "assistant", "status": "completed", "content": content}
        )
    for at, call in enumerate(turn.tool_calls):
        named = {"call_id": call.id or f"call_{tail}_{at}", "name": call.name}
        filled = {"arguments": arguments_text(call, asked), "status": "completed"}
        items.append({"type": "function_call", "id": f"fc_{tail}_{at}", **named, **filled})
    return items


def _frame(asked: Asked, answer_id: str, created: int, status: str) -> dict[str, Json]:
    return {
        "id": answer_id,
        "object": "response",
        "created_at": created,
        "status": status,
        "model": asked.model,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def _usage(turn: Turn, asked: Asked) -> dict[str, Json]:
    usage = turn.usage or count(turn, asked)
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def sse(event: Mapping[str, Json]) -> bytes:
    """One server-sent event, named by its type."""
    name = str(event["type"]).encode()
    return b"event: " + name + b"\ndata: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"
