"""Loops that are told as one model call: an SDK that runs the tools itself makes one span for all requests."""

from __future__ import annotations

from collections.abc import Mapping

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.nodes.source import Source
from otel_agentrec.nodes.text import answers_last

__all__ = ["Loops"]


class Loops:
    """Finds the loop that a tool call ran in.

    Args:
        leader: merged span -> the span that leads its call.
    """

    def __init__(self, source: Source, leader: Mapping[Span, Span]) -> None:
        self._source, self._leader = source, leader
        self._answered: dict[Span, bool] = {}

    def around(self, tool: Span) -> Span | None:
        """The model call around a tool call, if its answer was given after the tool had ended; None: there is none.

        The model did not ask for the tool in that answer, or it went on speaking after it had asked.
        """
        if tool.kind != Kind.TOOL:
            return None
        model = next((a for a in tool.lineage() if a.is_node or a.kind == Kind.AGENT), None)
        if model is None or model.kind != Kind.MODEL or tool.end is None or model.end is None or tool.end > model.end:
            return None
        model = self._leader.get(model, model)
        if tool.asked != model:
            return model
        if model not in self._answered:
            messages = self._source.facts(model.place, ("outputMessages",)).get("outputMessages")
            self._answered[model] = answers_last(messages)
        return model if self._answered[model] else None
