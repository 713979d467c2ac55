"""A chat history inside the text of a request, left as text: it grows with every call, and the journal parses only what is new.

Only where each message is read for itself: chat completions and Anthropic's Messages API, and lists of such messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects import messages, openai, raw
from otel_agentrec.capture.dialects.exchange import INSTRUCTING, Asked
from otel_agentrec.journal.facts import RawList
from otel_agentrec.journal.jsontext import parse_members

__all__ = ["asked"]

Json = Any

_FEW = 8
"""So many messages are parsed as quickly as they are compared."""


def asked(value: Json) -> Asked | None:
    """What the text of a request tells, its messages still text; None for all other values, which ``raw`` may know."""
    if not isinstance(value, str):
        return None
    try:
        request, places = parse_members(value)
    except ValueError:
        return None
    told = request.get("messages")
    if not isinstance(told, list) or len(told) <= _FEW or not openai.is_chat(told):
        return None
    found = raw.asked({**request, "messages": told[-1:]})
    if found is not None:
        start, end = places["messages"]
        found.messages = RawList(value[start:end], messages.message)
        found.instructed = any(isinstance(m, Mapping) and m.get("role") in INSTRUCTING for m in told)
    return found
