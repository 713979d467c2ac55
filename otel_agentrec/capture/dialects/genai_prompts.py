"""The oldest form of the GenAI conventions: all that was said as one JSON text.

Attributes ``gen_ai.prompt`` and ``gen_ai.completion`` hold ``[{role, content}]``, on the span or on the span events
``gen_ai.content.prompt`` and ``gen_ai.content.completion``. Other tools use the same names for shapes of their own: those
are left where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects.messages import message
from otel_agentrec.capture.spans import SpanEvent
from otel_agentrec.journal.jsontext import parse

__all__ = ["NAMES", "take"]

Json = Any

_PROMPT, _COMPLETION = "gen_ai.prompt", "gen_ai.completion"
_EVENTS = {"gen_ai.content.prompt": _PROMPT, "gen_ai.content.completion": _COMPLETION}
NAMES = tuple(_EVENTS)


def take(rest: MutableMapping[str, Any], events: Sequence[SpanEvent]) -> tuple[list[Json] | None, list[Json] | None]:
    """(messages, output messages) as they came; what was read is taken out of ``rest``."""
    found: dict[str, list[Json]] = {}
    for key in (_PROMPT, _COMPLETION):
        listed = _messages(rest.get(key))
        if listed is not None:
            found[key] = listed
            del rest[key]
    for event in events:
        key = _EVENTS.get(event.name, "")
        if key and key not in found:
            listed = _messages(event.attributes.get(key))
            if listed is not None:
                found[key] = listed
    return found.get(_PROMPT), found.get(_COMPLETION)


def _messages(value: Any) -> list[Json] | None:
    if isinstance(value, str):
        if value[:1] not in ("[", "{"):
            return [message(value)] if value else None
        try:
            value = parse(value)
        except ValueError:
            return None
    listed = [value] if isinstance(value, Mapping) else value
    if not isinstance(listed, (list, tuple)) or not listed:
        return None
    return list(listed) if all(isinstance(m, Mapping) and "role" in m for m in listed) else None
