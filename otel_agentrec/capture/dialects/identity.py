"""Ids that a program gives its spans itself, in any convention."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from otel_agentrec.capture.dialects import tokens
from otel_agentrec.capture.dialects.values import text
from otel_agentrec.journal.facts import Facts

__all__ = ["take_given"]


def take_given(rest: MutableMapping[str, Any], facts: Facts) -> None:
    """Move ``agentrec.*`` and the caller's user from a span's attributes into the facts."""
    take = rest.pop
    facts.user_id = text(take("user.id", None)) or text(take("enduser.id", None))
    facts.run_id = text(take("agentrec.run.id", None))
    facts.turn_id = text(take("agentrec.turn.id", None))
    facts.step = tokens.count(take("agentrec.step", None))
    facts.retry_count = tokens.count(take("agentrec.retry_count", None))
