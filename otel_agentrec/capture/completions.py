"""What a completion hook was told, on its way into the record of its span."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from otel_agentrec.capture.opening import Key
from otel_agentrec.capture.spans import SpanView
from otel_agentrec.journal.facts import Facts

__all__ = ["Completion", "fill"]


class Completion(NamedTuple):
    """What a completion hook was told of an operation that is done.

    Args:
        facts: by name of :class:`Facts` fields.
        is_recording: its span is open and will end.
        view: what is known of the span.
        unseen: what to record when no processor will ever see the span; None when it may be no model call.
    """

    key: Key
    facts: Mapping[str, Any]
    is_recording: bool
    view: SpanView
    unseen: tuple[str, Facts] | None


def fill(facts: Facts, told: Mapping[str, Any]) -> None:
    """Put in what the facts do not tell, or tell only in part because a limit cut it."""
    for name, value in told.items():
        flag = {"messages": "input_truncated", "output_messages": "output_truncated"}.get(name)
        if getattr(facts, name) is None or flag in facts.flags:
            setattr(facts, name, value)
            facts.flags = [one for one in facts.flags if one != flag]
