"""Message lists as pieces that can be compared position by position.

A chat API sends the whole history on every call, in forms that vary: an answer comes back as one message or as two, its
arguments as text or parsed, its reasoning not at all. A *piece* is what stays the same: what a user or the model said, one
tool call, one result. Two pieces are the same when role, text, tool call id, name and arguments are.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from otel_agentrec.journal.canonical import canonical_any, from_canonical
from otel_agentrec.journal.gate import Gate
from otel_agentrec.nodes.text import parsed

__all__ = ["ASSISTANT", "CALL", "OTHER", "RESULT", "SYSTEM", "USER", "Piece", "Reading", "key_of", "message_of"]

Json = Any

USER, ASSISTANT, CALL, RESULT, SYSTEM, OTHER = "user", "assistant", "call", "result", "system", "other"
_ROLES = {"user": USER, "human": USER, "assistant": ASSISTANT, "model": ASSISTANT, "ai": ASSISTANT}
_SYSTEM = ("system", "developer")
_DIGITS = re.compile(rb"(REDACTED\([a-z0-9.-]{1,64})~[0-9a-f]{8}\)")
_TOOL = ("tool", "function")
MAX_KNOWN = 8_192
"""Messages whose pieces are remembered: a history is sent again on every call."""


class Piece(NamedTuple):
    """``key``: equal for equal pieces; ``at``: index of its message; ``parts``: which parts of it."""

    kind: str
    key: bytes
    at: int
    parts: tuple[int, ...]
    call_id: str | None = None


class Reading:
    """Takes messages apart.

    Args:
        gate: what was said passes it on its way into the journal; pieces are compared as they stand there.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._known: OrderedDict[bytes, tuple[Piece, ...]] = OrderedDict()

    def pieces(self, messages: Sequence[Json], fact: str = "messages") -> list[Piece]:
        """The pieces of messages that are still as the program said them.

        Args:
            fact: name of the fact that they are, which rules for paths may ask for.
        """
        found: list[Piece] = []
        for at, message in enumerate(messages):
            found.extend(piece._replace(at=at) for piece in self._of_message(message, fact))
        return found

    def stored(self, messages: Sequence[Json]) -> list[Piece]:
        """The pieces of messages that were read from the journal."""
        return [piece._replace(at=at) for at, message in enumerate(messages) for piece in _pieces(message)]

    def _of_message(self, message: Json, fact: str) -> tuple[Piece, ...]:
        try:
            data = orjson.dumps(message)
        except (TypeError, ValueError, RecursionError):
            data = canonical_any(message)
        digest = blake2b(data, digest_size=16).digest()
        known = self._known.get(digest)
        if known is None:
            (kept,) = self._gate.elements([canonical_any(message)], ("facts", fact))
            known = self._known[digest] = tuple(_pieces(from_canonical(kept)))
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(digest)
        return known


def message_of(kind: str, payload: dict[str, Json]) -> Json:
    """The message that an event of a session stands for, with a ``kind`` of this module."""
    if kind == CALL:
        part = {"type": "tool_call", "id": payload.get("callId"), "name": payload.get("name")}
        return {"role": "assistant", "parts": [{**part, "arguments": payload.get("arguments")}]}
    if kind == RESULT:
        part = {"type": "tool_call_response", "id": payload.get("callId"), "response": payload.get("result")}
        return {"role": "tool", "parts": [part]}
    content = payload.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "content": content}]
    return {"role": kind, "parts": parts}


def _pieces(message: Json) -> Iterator[Piece]:
    parts = message.get("parts") if isinstance(message, dict) else None
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        yield Piece(OTHER, key_of(OTHER, message), 0, ())
        return
    said: list[int] = []
    for n, part in enumerate(parts):
        type_ = part.get("type")
        if type_ not in ("tool_call", "tool_call_response"):
            said.append(n)
            continue
        yield from _said(role, parts, said)
        said = []
        call_id = part.get("id") if isinstance(part.get("id"), str) else None
        if type_ == "tool_call":
            arguments = parsed(part.get("arguments"))
            key = key_of(CALL, call_id, part.get("name"), arguments if arguments not in (None, "") else {})
            yield Piece(CALL, key, 0, (n,), call_id)
        else:
            yield Piece(
                RESULT, key_of(RESULT, call_id, _result(part.get("response", part.get("result")))), 0, (n,), call_id
            )
    yield from _said(role, parts, said)


def _said(role: Json, parts: list[Json], which: list[int]) -> Iterator[Piece]:
    """What was said in some parts; nothing where there is no more than reasoning or an empty text."""
    texts: list[Json] = []
    others: list[Json] = []
    for n in which:
        part = parts[n]
        if part.get("type") == "text":
            texts.append(part.get("content"))
        elif part.get("type") != "reasoning":
            others.append(part)
    text: Json = "".join(texts).strip() if all(isinstance(t, str) for t in texts) else texts
    if not text and not others:
        return
    if role in _TOOL:
        yield Piece(RESULT, key_of(RESULT, None, _result(text)), 0, tuple(which))
        return
    kind = _ROLES.get(role, SYSTEM if role in _SYSTEM else OTHER) if isinstance(role, str) else OTHER
    yield Piece(kind, key_of(kind, role if kind == OTHER else "", text, others), 0, tuple(which))


def _result(value: Json) -> Json:
    """A tool's result in one form: frameworks hand it on as a value, as JSON text, or as one part of text."""
    value = parsed(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and value[0].get("type") == "text":
        return parsed(value[0].get("text", value[0].get("content")))
    return value


def key_of(*told: Json) -> bytes:
    """Stands for values as they are in the journal. The digits of a marker of a secret are another process's others."""
    data = canonical_any(list(told))
    if b"REDACTED(" in data:
        data = _DIGITS.sub(rb"\1)", data)
    return blake2b(data, digest_size=16).digest()
