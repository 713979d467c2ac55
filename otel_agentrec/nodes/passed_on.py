"""What steps of agents tell of tool calls: agents pass on to each other what they called and what came of it, by call id.

Some tool spans tell neither arguments nor result, and these messages are all there is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.skeleton import Span, mark
from otel_agentrec.nodes.source import Source
from otel_agentrec.nodes.text import calls_in, responses_in

__all__ = ["PassedOn", "passes_on"]

Json = Any
_LOOK = 16
"""So many messages with one call id, the nearest in time, are looked at."""


def passes_on(s: Span) -> bool:
    """Is this such a step? Alone they are no run: they stand in traces of their own."""
    return s.kind == Kind.STEP and s.calls_count > 0


class PassedOn:
    """Args:
    spans: all spans of the recording.
    """

    def __init__(self, source: Source, spans: Iterable[Span]) -> None:
        self._source = source
        self._steps: dict[int, list[Span]] = defaultdict(list)
        """mark of a call id -> the steps that tell of such a call"""
        for s in spans:
            if passes_on(s):
                for ident in {ident for ident, _ in s.calls or () if ident}:
                    self._steps[ident].append(s)

    def fill(self, tool: Span, facts: dict[str, Json]) -> None:
        """Put in the arguments and the result of a tool call where they are not known and a step tells them."""
        call_id = facts.get("toolCallId")
        steps = self._steps.get(mark(call_id) or 0, ())
        if not steps or (facts.get("arguments") is not None and facts.get("result") is not None):
            return
        start = tool.start or 0
        for step in sorted(steps, key=lambda s: (abs((s.start or 0) - start), s.place))[:_LOOK]:
            messages = self._source.facts(step.place, ("messages",)).get("messages")
            asked = next((c["arguments"] for c in calls_in(messages) if c["id"] == call_id), None)
            result = next((result for told, result in responses_in(messages) if told == call_id), None)
            for key, value in (("arguments", asked), ("result", result)):
                if facts.get(key) is None and value is not None:
                    facts[key] = value
