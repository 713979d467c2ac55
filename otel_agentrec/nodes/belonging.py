"""Which run, session and turn a span belongs to.

Read from the span itself, then from its ancestors, then from the run's agent; never invented.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.skeleton import ROOT_MISSING, Span
from otel_agentrec.nodes.table import Table

__all__ = ["Belonging"]


class Belonging:
    """Answers for one table whose spans are linked and merged."""

    def __init__(self, table: Table) -> None:
        self.leader: dict[Span, Span] = {}
        """merged span -> the span that leads its call"""
        self._joined: dict[Span, Span] = {}
        """tool at the top of its own trace -> the model call that asked for it in another trace"""
        self._given: dict[str, set[str]] = defaultdict(set)
        self._agents: dict[str, list[Span]] = defaultdict(list)
        """run id -> its outermost agents"""
        for row in table.rows.groups:
            s = Span(table.rows, row)
            self.leader.update(dict.fromkeys(s.group, s))
        for row, extra in table.rows.extras.items():
            s = Span(table.rows, row)
            if extra.run:
                self._given[s.trace].add(extra.run)
        for s in table:
            if s.kind == Kind.AGENT and not any(above.kind == Kind.AGENT for above in s.lineage()):
                self._agents[self.run(s)].append(s)

    def join(self, tool: Span, model: Span) -> None:
        """A tool span in a trace of its own belongs to the run of the model call that asked for it."""
        top = _top(tool)
        if top.trace != model.trace:
            self._joined[top] = model

    def run(self, s: Span) -> str:
        """The run's id: as given, else the trace id of the outermost agent, or of the span itself."""
        for at in _upwards(s):
            if at.extra is not None and at.extra.run:
                return at.extra.run
        asked = self._joined.get(_top(s))
        if asked is not None:
            return self.run(asked)
        given = self._given.get(s.trace)
        if given and len(given) == 1 and s.marks & ROOT_MISSING:
            return next(iter(given))
        return s.trace or s.span

    def session(self, s: Span) -> str | None:
        own = next((m.session for m in s.members() if m.session), None)
        if own:
            return own
        for member in s.members():
            for above in member.lineage():
                if above.session:
                    return above.session
        sessions = {agent.session for agent in self.agents(self.run(s)) if agent.session}
        return sessions.pop() if len(sessions) == 1 else None

    def turn(self, s: Span) -> str | None:
        """The turn's id: as given, else the span id of the outermost agent, else of the model call."""
        for at in _upwards(s):
            if at.extra is not None and at.extra.turn:
                return at.extra.turn
        if s.asked is not None:
            return self.turn(s.asked)
        outermost: Span | None = None
        for at in _upwards(s):
            if at.kind == Kind.AGENT:
                outermost = at
        if outermost is not None:
            return outermost.span
        agents = self.agents(self.run(s))
        if s.marks & ROOT_MISSING and len(agents) == 1 and agents[0].trace == s.trace:
            return agents[0].span
        top = next((at for at in reversed(list(_upwards(s))) if at.kind == Kind.MODEL), None)
        return None if top is None else self.leader.get(top, top).span

    def agents(self, run: str) -> list[Span]:
        """The outermost agents of a run."""
        return self._agents.get(run, [])

    def agent_name(self, s: Span) -> str | None:
        return next((a.name for a in s.lineage() if a.kind == Kind.AGENT and a.name), None)

    def user(self, s: Span) -> str | None:
        return next((a.extra.user for a in s.lineage() if a.extra is not None and a.extra.user), None)


def _upwards(s: Span) -> Iterator[Span]:
    yield s
    yield from s.lineage()


def _top(s: Span) -> Span:
    while s.up is not None:
        s = s.up
    return s
