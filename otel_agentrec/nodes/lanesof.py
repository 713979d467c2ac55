"""The lanes of recorded calls: read off the spans around them."""

from __future__ import annotations

from collections.abc import Iterator

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.belonging import Belonging
from otel_agentrec.nodes.lanes import AgentStep, Around, Lane, lane_path
from otel_agentrec.nodes.pairing import Pairing
from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.nodes.source import Source

__all__ = ["Lanes"]


class Lanes:
    """Answers for one view. What is known of a span around many calls is read once."""

    def __init__(self, source: Source, belonging: Belonging, pairing: Pairing) -> None:
        self._source, self._belonging, self._pairing = source, belonging, pairing
        self._paths: dict[Span | None, tuple[AgentStep, ...]] = {}

    def of(self, s: Span) -> Lane:
        """The lane of a call. ``root`` is the id of its own run; whose attempt that was is for the lineage to say."""
        top = _outermost_of_call(s, self._belonging)
        inside = top.up
        if inside is None and s.asked is not None:  # a tool in a trace of its own
            return self.of(s.asked)
        if inside not in self._paths:
            self._paths[inside] = lane_path(self._around(inside))
        return Lane(self._belonging.run(s), self._paths[inside])

    def inside(self, s: Span) -> Lane:
        """The lane of a call that was made directly inside this span."""
        return Lane(self._belonging.run(s), lane_path(self._around(s)))

    def _around(self, inside: Span | None) -> Iterator[Around]:
        at = inside
        while at is not None:
            call_id = None
            if at.kind == Kind.TOOL:
                leader = self._belonging.leader.get(at, at)
                told = self._source.facts(leader.place, {"toolCallId"}).get("toolCallId")
                call_id = told if isinstance(told, str) else self._pairing.implied_id(leader)
            yield Around(at.kind or "", self._name(at), call_id)
            at = at.up

    def _name(self, at: Span) -> str | None:
        """The name that telemetry gives an agent. That of its span does not stand in for it: it may hold an id of the process,
        and is not known to be all there is when a call is made.
        """
        if at.kind != Kind.AGENT or at.name is None:
            return at.name
        told = self._source.facts(at.place, {"agentName"}).get("agentName")
        return None if told is None and at.name == self._source.outline(at.place).payload.get("name") else at.name


def _outermost_of_call(s: Span, belonging: Belonging) -> Span:
    """The outermost of the spans that tell of the same call: none of them starts an agent for its own call."""
    top = s
    leader = belonging.leader.get(s, s)
    for above in s.lineage():
        if belonging.leader.get(above, above) == leader:
            top = above
    return top
