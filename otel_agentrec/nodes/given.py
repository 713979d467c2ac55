"""Records that came as records (another recorder's file), not as spans: they read as they were given.

What an event's ``given`` holds stands as it is; what its facts tell just so is read from them, so that a chat history that is
sent again with every call is stored once. Whoever writes such an event builds it with :func:`said`, and puts into ``given``
what that would not give back.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from otel_agentrec.nodes.text import calls_in, reasoning_in, text_in
from otel_agentrec.records import JournalRef, NodeIoRecord, NodeType, camel

__all__ = ["CONTENT", "MODEL_INPUTS", "TOOL_INPUTS", "fault_of", "given_record", "said"]

Json = Any

CONTENT = ("inputs", "outputText", "outputs", "reasoningText", "toolCalls", "error", "attributes")
"""Fields of a record that hold what was said; the others are names, ids, counts, times and status."""

MODEL_INPUTS = {"model", "messages", "systemInstructions", "tools", "parameters"}
TOOL_INPUTS = {"name", "arguments", "callId"}
"""The keys of ``inputs``."""

_FIELDS = {camel(f.name): f.name for f in dataclasses.fields(NodeIoRecord)}
_HINTS = {camel(name): hint for name, hint in typing.get_type_hints(NodeIoRecord).items()}
_APART = {*CONTENT, "journal", "nodeType", "evaluations", "copiesSeen"}


def said(kind: str, facts: dict[str, Json], header: dict[str, Json]) -> dict[str, Json]:
    """The fields of :data:`CONTENT` as facts and the payload of a REQUEST_HEADER tell them."""
    failed = facts.get("errorType") is not None or facts.get("errorMessage") is not None
    common = {
        "error": {"type": facts.get("errorType"), "message": facts.get("errorMessage")} if failed else None,
        "attributes": facts.get("attributes"),
    }
    if kind == NodeType.TOOL:
        call = {"name": facts.get("toolName"), "arguments": facts.get("arguments"), "callId": facts.get("toolCallId")}
        return {
            "inputs": call,
            "outputText": facts.get("outputText"),
            "outputs": facts.get("result"),
            "reasoningText": facts.get("reasoningText"),
            "toolCalls": None,
            **common,
        }
    messages, raw = facts.get("outputMessages"), facts.get("outputRaw")
    text, reasoning = facts.get("outputText"), facts.get("reasoningText")
    return {
        "inputs": {
            "model": facts.get("model"),
            "messages": facts.get("messages"),
            "systemInstructions": header.get("instructions"),
            "tools": header.get("tools"),
            "parameters": header.get("parameters"),
        },
        "outputText": text if text is not None else text_in(messages),
        "outputs": messages if raw is None else raw,
        "reasoningText": reasoning if reasoning is not None else reasoning_in(messages),
        "toolCalls": calls_in(messages) if isinstance(messages, list) else None,
        **common,
    }


def fault_of(key: str, value: Json) -> str | None:
    """What is wrong with the value of a record's field (its name in JSON); None when it is what the field can hold."""
    hint = _HINTS.get(key)
    return (
        None if hint is None or key in ("nodeType", "journal") or _fits(value, hint) else f"{key} is not {_name(hint)}"
    )


def _fits(value: Json, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, a) for a in arguments)
    if origin is list:
        return isinstance(value, list) and all(_fits(x, arguments[0]) for x in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(x, arguments[1]) for x in value.values())
    return type(value) is hint


def _name(hint: Any) -> str:
    told = (
        [a for a in typing.get_args(hint) if a is not type(None)] if typing.get_origin(hint) is types.UnionType else []
    )
    kind = typing.get_origin(told[0] if told else hint) or (told[0] if told else hint)
    return {str: "text", int: "a whole number", bool: "true or false", list: "such a list"}.get(kind, "such an object")


def given_record(
    kind: str,
    record_id: str,
    given: dict[str, Json],
    facts: dict[str, Json],
    header: dict[str, Json],
    place: JournalRef,
    *,
    contents: bool,
) -> NodeIoRecord:
    """The record of an event with ``given``; its evaluations and copies are for the caller to tell.

    Args:
        contents: also what was said; without it messages, texts, arguments and results are None.
    """
    fields: dict[str, Any] = {
        _FIELDS[key]: value
        for key, value in given.items()
        if key in _FIELDS and key not in _APART and fault_of(key, value) is None
    }
    if contents:
        more = given.get("content")
        told = said(kind, facts, header)
        told.update({key: v for key, v in more.items() if _is_content(kind, key, v)} if isinstance(more, dict) else {})
    else:
        told = _without_words(given, facts)
    fields.update({_FIELDS[key]: value for key, value in told.items()})
    fields.update(record_id=record_id, node_type=NodeType(kind), journal=place)
    fields.setdefault("node_id", "")
    return NodeIoRecord(**fields)


def _is_content(kind: str, key: str, value: Json) -> bool:
    """Is this a field of content, and what it can hold?"""
    if key == "inputs":
        return isinstance(value, dict) and value.keys() == (MODEL_INPUTS if kind == NodeType.MODEL else TOOL_INPUTS)
    return key in CONTENT and fault_of(key, value) is None


def _without_words(given: dict[str, Json], facts: dict[str, Json]) -> dict[str, Json]:
    """What can be told of content without reading it: the kind of an error, ids and names of calls."""
    calls, failed = facts.get("calls"), facts.get("errorType")
    return {
        "error": None if failed is None else {"type": failed, "message": None},
        "toolCalls": None
        if calls is None
        else [{"id": c.get("id"), "name": c.get("name"), "arguments": None} for c in calls],
    }
