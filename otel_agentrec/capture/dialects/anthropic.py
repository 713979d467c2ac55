"""Requests and answers of Anthropic's Messages API.

``{model, system, messages: [{role, content: text | blocks}], tools, max_tokens, …}`` -> ``{id, model, role, content: blocks,
stop_reason, usage}``. The blocks themselves are read by ``messages.part``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects import messages, openai
from otel_agentrec.capture.dialects.exchange import Asked, Said
from otel_agentrec.capture.dialects.values import text

__all__ = ["asked", "said"]

Json = Any

_LISTS = (list, tuple)


def asked(value: Json) -> Asked | None:
    """What a request tells that has its instructions beside the messages; None when ``value`` is none."""
    system = value.get("system") if isinstance(value, Mapping) else None
    if not system or not isinstance(system, (str, *_LISTS)):
        return None
    request = openai.asked(value)
    if request is not None:
        request.instructions = [messages.part(p) for p in ([system] if isinstance(system, str) else system)]
    return request


def said(value: Json) -> Said | None:
    """What an answer tells; None when ``value`` is none."""
    if not isinstance(value, Mapping) or not isinstance(value.get("content"), _LISTS):
        return None
    if value.get("type") != "message" and "stop_reason" not in value:
        return None
    parts = [messages.part(block) for block in value["content"]]
    reason = text(value.get("stop_reason"))
    message = {"role": text(value.get("role")) or "assistant", "parts": parts}
    return Said([message], [reason] if reason else None, text(value.get("id")), text(value.get("model")), value)
