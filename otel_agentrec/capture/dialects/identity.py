"""Ids that a program gives its spans itself, in any convention."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from otel_agentrec.capture.callkeys import take_keys
from otel_agentrec.capture.dialects import tokens
from otel_agentrec.capture.dialects.values import text
from otel_agentrec.journal.facts import Facts

__all__ = ["take_given"]

_ASSOCIATED = "traceloop.association.properties."
"""Traceloop's SDK puts what a program associates with a run on all spans below, of whatever instrumentation."""
_SESSIONS = [f"{_ASSOCIATED}{name}" for name in ("session_id", "conversation_id", "chat_id", "thread_id")]


def take_given(rest: MutableMapping[str, Any], facts: Facts) -> None:
    """Move ``agentrec.*``, the caller's user and an associated session from a span's attributes into the facts."""
    take = rest.pop
    facts.user_id = text(take("user.id", None)) or text(take("enduser.id", None))
    facts.user_id = facts.user_id or text(take(f"{_ASSOCIATED}user_id", None))
    session = next((key for key in _SESSIONS if text(rest.get(key))), None)
    facts.session_id = text(take(session)) if session is not None else None
    facts.run_id = text(take("agentrec.run.id", None))
    facts.turn_id = text(take("agentrec.turn.id", None))
    facts.step = tokens.count(take("agentrec.step", None))
    facts.keys = take_keys(rest)
    facts.retry_count = tokens.count(take("agentrec.retry_count", None))
