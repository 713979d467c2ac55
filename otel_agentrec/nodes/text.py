"""Reading what was said: JSON text, texts and calls of messages, and the few facts by which duplicates are known."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable
from typing import Any

from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.nodes.source import Source

__all__ = [
    "answers_last",
    "calls_in",
    "is_cut",
    "legible",
    "parsed",
    "reasoning_in",
    "responses_in",
    "said_by_model",
    "said_to_tool",
    "text_in",
]

Json = Any


def _number(text: str) -> Json:
    value = float(text)
    return value if math.isfinite(value) else text


_DECODER = json.JSONDecoder(parse_float=_number, parse_constant=str)


def parsed(value: Json) -> Json:
    """A string that is JSON as its value, anything else as it is.

    Integers stay exact, however long; a number that no double can hold, NaN and infinities stay text.
    """
    if not isinstance(value, str):
        return value
    try:
        return _DECODER.decode(value)
    except (ValueError, RecursionError):
        return value


def legible(value: Json) -> str | None:
    """A text as people read and search it: one with half a character (``{"$u16": …}``) gets U+FFFD there. None: no text."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or len(value) != 1 or not isinstance(value.get("$u16"), str):
        return None
    try:
        return base64.b64decode(value["$u16"], validate=True).decode("utf-16-be", "replace")
    except ValueError:
        return None


def is_cut(value: Json) -> bool:
    """Does this text look like JSON that was cut off?"""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(value)
    except json.JSONDecodeError as e:
        rest = value[e.pos :].strip()
        return (
            e.msg.startswith(("Unterminated", "Invalid \\"))
            or not rest
            or bool(re.fullmatch(r"(\.{3}|…).*", rest, re.S))
        )
    except (ValueError, RecursionError):
        return False
    return False


def _parts(messages: Json) -> Iterable[tuple[int, dict[str, Json]]]:
    """(index of the message, part) of all parts that can be read; markers of lost or cut content are passed over."""
    for i, message in enumerate(messages if isinstance(messages, list) else ()):
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                yield i, part


def _texts(messages: Json, kind: str) -> list[tuple[int, str]]:
    told = [(i, legible(p.get("content"))) for i, p in _parts(messages) if p.get("type") == kind]
    return [(i, text) for i, text in told if text is not None]


def text_in(messages: Json) -> str | None:
    """The text of messages: parts of one message joined as they are, messages with a newline. None when there is none."""
    by_message: dict[int, str] = {}
    for i, text in _texts(messages, "text"):
        by_message[i] = by_message.get(i, "") + text
    return "\n".join(t for t in by_message.values() if t) if by_message else None


def reasoning_in(messages: Json) -> str | None:
    """The reasoning blocks of messages, joined with a newline. None when there is none."""
    blocks = [text for _, text in _texts(messages, "reasoning") if text]
    return "\n".join(blocks) if blocks else None


def calls_in(messages: Json) -> list[dict[str, Json]]:
    """The tool calls in messages: ``[{id, name, arguments}]``, arguments parsed."""
    return [
        {"id": p.get("id"), "name": p.get("name"), "arguments": parsed(p.get("arguments"))}
        for _, p in _parts(messages)
        if p.get("type") == "tool_call"
    ]


def responses_in(messages: Json) -> list[tuple[str, Json]]:
    """The results of tool calls in messages: ``[(call id, result)]``.

    Results without an id, or with ids that no call before them has (an API may count items and calls apart), are those of the
    calls before them that no other result names, in order, where there are as many. What is without an id then is left out.
    """
    found: list[tuple[Json, Json]] = []
    calls: list[str] = []
    results: list[tuple[Json, Json]] = []
    for _, p in _parts(messages):
        if p.get("type") == "tool_call":
            if results:
                found.extend(_named(calls, results))
                calls, results = [], []
            if isinstance(p.get("id"), str):
                calls.append(p["id"])
        elif p.get("type") == "tool_call_response":
            results.append((p.get("id"), p.get("response", p.get("result"))))
    found.extend(_named(calls, results))
    return [(call_id, result) for call_id, result in found if isinstance(call_id, str)]


def _named(calls: list[str], results: list[tuple[Json, Json]]) -> list[tuple[Json, Json]]:
    told, known = {call_id for call_id, _ in results if isinstance(call_id, str)}, set(calls)
    open_calls = [call_id for call_id in calls if call_id not in told]
    unnamed = [i for i, (call_id, _) in enumerate(results) if not isinstance(call_id, str) or call_id not in known]
    if len(open_calls) != len(unnamed):
        return results
    by_place = dict(zip(unnamed, open_calls, strict=True))
    return [(by_place.get(i, call_id), result) for i, (call_id, result) in enumerate(results)]


def answers_last(messages: Json) -> bool:
    """Do the messages end with text, after calls of tools?"""
    kinds = [p.get("type") for _, p in _parts(messages) if p.get("type") in ("text", "tool_call")]
    return "tool_call" in kinds and kinds[-1] == "text"


def said_by_model(source: Source, s: Span) -> dict[str, Json]:
    """What a model said, for comparing two spans: ``{text, calls}``; None for what its span does not tell."""
    facts = source.facts(s.place, ("outputMessages", "outputText"))
    messages = facts.get("outputMessages")
    text = facts.get("outputText") or text_in(messages)
    calls = [[c["name"], c["arguments"]] for c in calls_in(messages)] if isinstance(messages, list) else None
    return {"text": text.strip() if isinstance(text, str) and text.strip() else None, "calls": calls or None}


def said_to_tool(source: Source, s: Span) -> dict[str, Json]:
    """The arguments of a tool call, parsed: ``{arguments}``."""
    return {"arguments": parsed(source.facts(s.place, ("arguments",)).get("arguments"))}
