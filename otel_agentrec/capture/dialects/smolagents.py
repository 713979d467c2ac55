"""Messages and answers as smolagents serialises them: ``{role, content, tool_calls, raw, token_usage}``.

Its roles ``tool-call`` and ``tool-response`` exist only inside the framework: models are sent them as ``assistant`` and
``user``, and so they are recorded. ``raw`` is the ``repr`` of the provider's own answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects import messages, openai, pythonrepr
from otel_agentrec.capture.dialects.exchange import Said

__all__ = ["ROLES", "message", "said"]

Json = Any

ROLES = {"tool-call": "assistant", "tool-response": "user"}


def message(value: Json) -> Json:
    """A ChatMessage in the schema; None when ``value`` is none."""
    if not isinstance(value, Mapping) or not {"role", "content", "tool_calls", "raw"} <= value.keys():
        return None
    out = {key: v for key, v in value.items() if key not in ("raw", "token_usage")}
    role = out["role"]
    out["role"] = ROLES.get(role, role) if isinstance(role, str) else role
    calls = out["tool_calls"]
    if isinstance(calls, (list, tuple)):
        out["tool_calls"] = [_without_description(call) for call in calls]
    return messages.message(out)


def said(value: Json) -> Said | None:
    """What an answer tells; None when ``value`` is none. The repr of the provider's answer tells more than the message."""
    made = message(value)
    if made is None:
        return None
    if isinstance(value["raw"], str):
        try:
            answer = openai.said(pythonrepr.parse(value["raw"]))
        except ValueError:
            answer = None
        if answer is not None and answer.messages:
            answer.raw = None  # read from text that was not made to be read
            return answer
    return Said([made])


def _without_description(call: Json) -> Json:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    return {**call, "function": {key: v for key, v in function.items() if key != "description"}}
