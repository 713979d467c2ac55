"""The runs of a recording: what belongs to each, whether it is complete, and what it cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.belonging import Belonging
from otel_agentrec.nodes.effects import Effect
from otel_agentrec.nodes.lineage import Lineages
from otel_agentrec.nodes.pairing import call_ids, calls_of
from otel_agentrec.nodes.passed_on import passes_on
from otel_agentrec.nodes.skeleton import ENDED, FAILED, MERGED, OPEN, OTHER_EXPORT, REEXPORT, ROOT_MISSING, Span
from otel_agentrec.nodes.source import Source
from otel_agentrec.nodes.table import Table

__all__ = ["Run", "agents_alone", "runs_of"]

Json = Any


@dataclass(frozen=True)
class Run:
    """One run of an agent, or one trace without an agent. Times are milliseconds since the epoch.

    ``members`` are the span ids of its agents, steps, model and tool calls, and of foreign spans below them;
    ``missing_parents`` the ids of spans that its members name as parents and nobody delivered; ``open`` the span ids of
    calls that a live process has not finished.

    ``unpaired`` lists calls that a model asked for and nobody answered:
    ``{callId, toolName, requestedBy, status: "unknown_outcome"}``.

    ``tokens`` = ``{input, output}`` over its model calls, each counted once, and over agents that tell of their use but
    have no model call below them (a remote agent); None where nothing tells.
    """

    id: str
    session: str | None = None
    agent: str | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    status: str = "ok"
    """``open``, ``ok``, ``error`` or ``interrupted``."""
    complete: bool = True
    missing_parents: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    records: int = 0
    """Model and tool calls, recovered ones too, probable re-exports not."""
    open: list[str] = field(default_factory=list)
    unpaired: list[dict[str, Json]] = field(default_factory=list)
    tokens: dict[str, int | None] = field(default_factory=dict)
    """Calls that were answered from a recording cost nothing and are not in it."""
    root: str = ""
    """Id of the first attempt, itself unless it resumes another run."""
    attempt: int = 1
    """Which attempt of its root it is."""
    unknown: list[Effect] = field(default_factory=list)
    """Of the root's last attempt: effects that must be settled before the run can go on."""

    def to_json(self) -> dict[str, Json]:
        """The run with camelCase keys, ready for JSON."""
        return {
            "id": self.id,
            "session": self.session,
            "agent": self.agent,
            "startedAtEpochMs": self.started_ms,
            "endedAtEpochMs": self.ended_ms,
            "status": self.status,
            "complete": self.complete,
            "missingParents": self.missing_parents,
            "members": self.members,
            "records": self.records,
            "open": self.open,
            "unpaired": self.unpaired,
            "tokens": self.tokens,
            "root": self.root,
            "attempt": self.attempt,
            "unknownEffects": [effect.to_json() for effect in self.unknown],
        }


def runs_of(
    table: Table,
    source: Source,
    belonging: Belonging,
    recovered: Iterable[Span],
    unanswered: Iterable[tuple[Span, int]],
    lineages: Lineages,
    effects: Iterable[Effect],
) -> list[Run]:
    """All runs, the earliest first.

    Args:
        recovered: for each tool call without a span whose result was found, the model call that asked for it.
        unanswered: calls that nobody answered: (model call, index of the call).
        lineages: which run resumes which.
        effects: all that were journalled.
    """
    found = Counter(belonging.run(model) for model in recovered)
    spans_of: dict[str, list[Span]] = defaultdict(list)
    for s in table:
        spans_of[belonging.run(s)].append(s)
    unpaired: dict[str, list[dict[str, Json]]] = defaultdict(list)
    for model, i in unanswered:
        unpaired[belonging.run(model)].append(
            {
                "callId": call_ids(source, model)[i],
                "toolName": calls_of(model)[i][1],
                "requestedBy": model.span,
                "status": "unknown_outcome",
            }
        )
    foreign: dict[str, list[str]] = defaultdict(list)
    for child, above in table.foreign_below():
        foreign[belonging.run(above)].append(child)
    cut = _cut_off(spans_of, table.cut_off)
    runs = [
        _run(run, spans, foreign.get(run, []), unpaired.get(run, []), table, belonging, found[run], run in cut)
        for run, spans in spans_of.items()
        if not all(map(passes_on, spans))
    ]
    runs.sort(key=lambda r: (r.started_ms or 0, r.id))
    return _attempts(runs, lineages, effects)


def _attempts(runs: list[Run], lineages: Lineages, effects: Iterable[Effect]) -> list[Run]:
    """The runs, each with its root; the last attempt of a root with the effects that must be settled."""
    unknown: dict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        if effect.needs_settling:
            unknown[effect.root].append(effect)
    last = {lineages.root(run.id): run.id for run in runs}
    counted: Counter[str] = Counter()
    out = []
    for run in runs:
        root = lineages.root(run.id)
        counted[root] += 1
        settle = unknown.get(root, []) if last[root] == run.id else []
        out.append(replace(run, root=root, attempt=counted[root], unknown=settle))
    return out


def _cut_off(spans_of: Mapping[str, list[Span]], streams: Collection[str]) -> set[str]:
    """The runs that may have been under way when their process was killed: nothing that began later in the same process tells
    that it had gone on to something else. It matters where no agent's span tells of a run's end.

    Args:
        streams: those of processes that are gone and did not say so.
    """
    last: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for run, spans in spans_of.items() if streams else ():
        for stream in {s.stream for s in spans} & set(streams):
            here = [s for s in spans if s.stream == stream]
            last[stream].append((max(s.start or 0 for s in here), max(s.end or s.start or 0 for s in here), run))
    return {
        run
        for runs in last.values()
        for _, end, run in runs
        if not any(start > end and other != run for start, _, other in runs)
    }


def _run(
    run: str,
    spans: list[Span],
    foreign: list[str],
    unpaired: list[dict[str, Json]],
    table: Table,
    belonging: Belonging,
    recovered: int,
    is_cut: bool,
) -> Run:
    agents = sorted(belonging.agents(run), key=lambda s: (s.start or 0, s.place))
    counted = [s for s in spans if s.is_node and not s.marks & (MERGED | REEXPORT)]
    unended = [s for s in spans if s.state != ENDED]
    live = [s for s in unended if s.state == OPEN]
    missing = sorted({p for s in spans if s.marks & ROOT_MISSING and (p := table.missing_parent(s))})
    outer = agents or counted
    if live:
        status = "open"
    elif any(s.state != ENDED for s in outer) or (is_cut and not agents):
        status = "interrupted"
    else:
        last = max(outer, key=lambda s: (s.end or 0, s.place), default=None)
        status = "error" if last is not None and last.marks & FAILED else "ok"
    starts = [s.start for s in spans if s.start is not None]
    ends = [s.end for s in spans if s.end is not None]
    models = [s for s in counted if s.kind == Kind.MODEL and not s.marks & OTHER_EXPORT]
    spenders = [*(s for s in models if s.answered_from is None), *agents_alone(spans)]
    sessions = {x for s in (agents or counted) if (x := belonging.session(s))} or {
        s.session for s in counted if s.session
    }
    return Run(
        id=run,
        session=sessions.pop() if len(sessions) == 1 else None,
        agent=next((s.name for s in agents if s.name), None),
        started_ms=min(starts) // 1_000_000 if starts else None,
        ended_ms=max(ends) // 1_000_000 if ends and not live else None,
        status=status,
        complete=not missing and not unended,
        missing_parents=missing,
        members=sorted({*(s.span for s in spans if s.trace), *foreign}),
        records=recovered + sum(1 for s in counted if s.state != OPEN),
        open=sorted(s.span for s in live),
        unpaired=unpaired,
        tokens={"input": _total(spenders, "tokens_in"), "output": _total(spenders, "tokens_out")},
    )


def agents_alone(spans: Iterable[Span]) -> list[Span]:
    """Agents without a model call below them (remote ones): what they say of tokens counts. Of nested ones the outermost.

    Args:
        spans: is gone through more than once.
    """
    with_models = {above for s in spans if s.kind == Kind.MODEL for above in s.lineage()}
    alone = {s: None for s in spans if s.kind == Kind.AGENT and s not in with_models}
    return [s for s in alone if not any(above in alone for above in s.lineage())]


def _total(models: list[Span], which: str) -> int | None:
    """The sum over model calls; of each call, the span that the record takes its tokens from counts."""
    told = []
    for model in models:
        counting = [s for s in model.members() if s.tokens_in is not None or s.tokens_out is not None]
        both = (s for s in counting if s.tokens_in is not None and s.tokens_out is not None)
        span = next(both, counting[0] if counting else model)
        told.append(getattr(span, which))
    known = [n for n in told if n is not None]
    return sum(known) if known else None
