"""What an agent was asked and what it answered, where its own span does not tell: as its model calls have it.

Most instrumentations put messages on model calls only. The lists of viewers show the input and output of a trace's first
span, which is the agent's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.spanattributes import answered_by, asked_of

__all__ = ["AgentSaid"]

Json = Any
Said = tuple[Json, Json]
REMEMBERED = 1_024
"""Open steps of which something is known; of the oldest beyond that nothing is."""


class AgentSaid:
    """Is told of each span that ends, children before their parents, and knows the first question and the last answer of the
    model calls below a span that has not ended."""

    def __init__(self) -> None:
        self._below: OrderedDict[tuple[str, str], Said] = OrderedDict()

    def ended(self, trace: str, span: str, parent: str | None, kind: str | None, facts: Mapping[str, Json]) -> Said:
        """A span ended.

        Args:
            trace: ids of the span, in hex; ``parent`` is None for the first of its process.
            kind: of :class:`~otel_agentrec.journal.facts.Kind`; None for a span that is no step.
            facts: what a model call told, content in place.

        Returns: what its agent was asked and answered as far as the calls below it tell; None where they do not.
        """
        asked, answered = self._below.pop((trace, span), (None, None))
        above = self._below.get((trace, parent), (None, None)) if parent else (None, None)
        if kind == Kind.MODEL:
            asked = asked_of(facts) if above[0] is None else None  # long lists are not parsed for nothing
            answered = answered_by(facts)
        if parent and (asked is not None or answered is not None):
            self._below[trace, parent] = (
                asked if above[0] is None else above[0],
                above[1] if answered is None else answered,
            )
            self._below.move_to_end((trace, parent))
            if len(self._below) > REMEMBERED:
                self._below.popitem(last=False)
        return asked, answered
