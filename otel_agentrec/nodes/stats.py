"""The numbers of a recording: calls, tokens, times, errors, losses, judgements, and what it cost.

Made in one pass over the records of the fold, without what was said in them. The memory for the numbers does not grow with
the recording: what can have any number of names is counted under the first thousand, the rest under ``(other)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, TypeVar

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.durations import Durations
from otel_agentrec.nodes.fold import View
from otel_agentrec.nodes.passed_on import passes_on
from otel_agentrec.nodes.prices import Prices
from otel_agentrec.nodes.skeleton import ENDED, MERGED, OPEN, OTHER_EXPORT, SAID, Span
from otel_agentrec.records import NodeIoRecord, NodeType

__all__ = ["Calls", "Cost", "Evaluated", "Stats", "Tokens", "stats_of"]

Json = Any
MOST_NAMES = 1_000
REST = "(other)"
MOST_TOKENS = 2**31 - 1
"""More tokens than this in one call are no count; runs don't add them up either."""
MOST_SCORE = 1e300
"""Scores beyond it, infinities and NaN are counted, but in no mean."""
Where = Callable[[str | None, str | None, int | None], bool]
"""(run id, session id, start in ms) -> whether it counts"""


@dataclass(slots=True)
class Tokens:
    """Sums; None where nothing tells. ``input`` includes what came from a cache, ``output`` reasoning where the provider
    counts it so."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    other: Counter[str] = field(default_factory=Counter)

    def add(self, record: NodeIoRecord) -> None:
        self.input = _sum(self.input, record.input_tokens)
        self.output = _sum(self.output, record.output_tokens)
        self.cache_read = _sum(self.cache_read, record.cache_read_tokens)
        self.cache_write = _sum(self.cache_write, record.cache_write_tokens)
        self.reasoning = _sum(self.reasoning, record.reasoning_tokens)
        for name, count in (record.other_tokens or {}).items():
            if type(count) is int:
                _add(self.other, name, count)

    def add_span(self, s: Span) -> None:
        """Add what a span that is no model call tells."""
        self.input, self.output = _sum(self.input, s.tokens_in), _sum(self.output, s.tokens_out)

    def to_json(self) -> dict[str, Json]:
        return {
            "input": self.input,
            "output": self.output,
            "cacheRead": self.cache_read,
            "cacheWrite": self.cache_write,
            "reasoning": self.reasoning,
            "other": dict(self.other),
        }


@dataclass(slots=True)
class Cost:
    """US dollars over the ``priced`` calls; of ``unpriced`` ones no price is known, or their tokens."""

    usd: Decimal = Decimal(0)
    priced: int = 0
    unpriced: int = 0

    def add(self, price: Decimal | None) -> None:
        if price is None:
            self.unpriced += 1
        else:
            self.usd += price
            self.priced += 1

    def to_json(self) -> dict[str, Json]:
        return {"usd": float(self.usd) if self.priced else None, "priced": self.priced, "unpriced": self.unpriced}


@dataclass(slots=True)
class Calls:
    """Model calls, tool calls, steps or all of them, under one name. ``latency`` is of those that ended."""

    count: int = 0
    status: Counter[str] = field(default_factory=Counter)
    latency: Durations = field(default_factory=Durations)
    tokens: Tokens = field(default_factory=Tokens)
    retried: int = 0
    """Calls that were tried more than once."""
    retries: int = 0
    """Attempts that failed before the last."""
    streamed: int = 0
    cost: Cost | None = None

    def to_json(self) -> dict[str, Json]:
        return {
            "count": self.count,
            "status": _statuses(self.status),
            "latencyMs": self.latency.to_json(),
            "tokens": self.tokens.to_json(),
            "retried": self.retried,
            "retries": self.retries,
            "streamed": self.streamed,
            "cost": self.cost.to_json() if self.cost is not None else None,
        }


@dataclass(slots=True)
class Evaluated:
    """Judgements of one name. ``mean``, ``min`` and ``max`` are over scores that are numbers; true is 1, false is 0."""

    count: int = 0
    scored: int = 0
    sum: float = 0.0
    min: float | None = None
    max: float | None = None
    labels: Counter[str] = field(default_factory=Counter)

    def add(self, evaluation: Mapping[str, Json]) -> None:
        self.count += 1
        score, label = evaluation.get("score"), evaluation.get("label")
        if isinstance(score, (int, float)) and abs(score) <= MOST_SCORE:
            value = float(score)
            self.scored += 1
            self.sum += value
            self.min = value if self.min is None else min(self.min, value)
            self.max = value if self.max is None else max(self.max, value)
        if label is not None:
            _add(self.labels, str(label), 1)

    def to_json(self) -> dict[str, Json]:
        mean = self.sum / self.scored if self.scored else None
        return {
            "count": self.count,
            "scored": self.scored,
            "mean": mean,
            "min": self.min,
            "max": self.max,
            "labels": dict(self.labels),
        }


T = TypeVar("T")


class Named(Generic[T]):
    """Numbers by name, for at most :data:`MOST_NAMES` names and the rest together."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._found: dict[str | None, T] = {}

    def of(self, name: str | None) -> T:
        found = self._found.get(name)
        if found is None:
            key = name if len(self._found) < MOST_NAMES else REST
            found = self._found.setdefault(key, self._make())
        return found

    def items(self) -> list[tuple[str | None, T]]:
        """Most calls first."""
        return sorted(self._found.items(), key=lambda item: (-getattr(item[1], "count", 0), item[0] or ""))


@dataclass(slots=True)
class Stats:
    """The numbers of a recording, or of a part of it. Records are model and tool calls, each counted once."""

    runs: int = 0
    models: Calls = field(default_factory=Calls)
    tools: Calls = field(default_factory=Calls)
    by_model: Named[Calls] = field(default_factory=lambda: Named(Calls))
    by_tool: Named[Calls] = field(default_factory=lambda: Named(Calls))
    by_agent: Named[Calls] = field(default_factory=lambda: Named(Calls))
    """Model calls by the agent that made them. An agent without model calls of its own that tells of its use (a remote
    one) counts its tokens here."""
    steps: Named[Calls] = field(default_factory=lambda: Named(Calls))
    """Embeddings, retrieval and other steps: no records, their tokens are in no sum but their own."""
    tokens: Tokens = field(default_factory=Tokens)
    """Of all model calls, and of agents without model calls."""
    errors: Counter[str] = field(default_factory=Counter)
    """type -> failed calls; ``(unknown)`` where the telemetry does not tell"""
    open: int = 0
    """Calls that a live process has not finished; they are in no other number."""
    recovered: int = 0
    """Tool calls without a span."""
    answered: int = 0
    """Calls that were answered from a recording."""
    content_missing: int = 0
    """Model calls that came without their messages."""
    content_off: int = 0
    """Model calls whose messages were not recorded because the settings say so."""
    reexports: int = 0
    """Calls that were exported again under new ids; they are in no other number."""
    evaluations: Named[Evaluated] = field(default_factory=lambda: Named(Evaluated))
    evaluations_unmatched: int = 0
    """Judgements of what is not in the recording, or not in this part of it."""
    dropped: Counter[str] = field(default_factory=Counter)
    """reason -> things that should have been recorded and were not, in the whole recording"""
    counters: Counter[str] = field(default_factory=Counter)
    """what processes counted besides, in the whole recording"""
    started_ms: int | None = None
    ended_ms: int | None = None

    @property
    def records(self) -> int:
        """Model and tool calls."""
        return self.models.count + self.tools.count

    def to_json(self) -> dict[str, Json]:
        """camelCase keys, ready for JSON; the same keys always."""
        return {
            "runs": self.runs,
            "records": self.records,
            "startedAtEpochMs": self.started_ms,
            "endedAtEpochMs": self.ended_ms,
            "status": _statuses(self.models.status + self.tools.status),
            "open": self.open,
            "tokens": self.tokens.to_json(),
            "cost": self.models.cost.to_json() if self.models.cost is not None else None,
            "models": self.models.to_json(),
            "tools": self.tools.to_json(),
            "byModel": [{"model": name, **calls.to_json()} for name, calls in self.by_model.items()],
            "byTool": [{"tool": name, **calls.to_json()} for name, calls in self.by_tool.items()],
            "byAgent": [{"agent": name, **calls.to_json()} for name, calls in self.by_agent.items()],
            "steps": [{"kind": name, **calls.to_json()} for name, calls in self.steps.items()],
            "errors": [{"type": name, "count": n} for name, n in _most_first(self.errors)],
            "recovered": self.recovered,
            "answered": self.answered,
            "contentMissing": self.content_missing,
            "contentOff": self.content_off,
            "reexports": self.reexports,
            "evaluations": [{"name": name, **found.to_json()} for name, found in self.evaluations.items()],
            "evaluationsUnmatched": self.evaluations_unmatched,
            "dropped": sum(self.dropped.values()),
            "droppedByReason": [{"reason": name, "count": n} for name, n in _most_first(self.dropped)],
            "swallowed": self.counters["swallowed"],
            "counters": dict(sorted(self.counters.items())),
        }


def stats_of(view: View, where: Where | None = None, prices: Prices | None = None) -> Stats:
    """The numbers of a view.

    Args:
        where: what counts; default: everything. Losses are always those of the whole recording.
        prices: also say what calls cost.
    """
    return _Pass(view, where or (lambda *_: True), prices).stats


class _Pass:
    """One pass over a view."""

    def __init__(self, view: View, where: Where, prices: Prices | None) -> None:
        self.stats = stats = Stats()
        self._view, self._where, self._prices = view, where, prices
        judged = 0
        if prices is not None:
            stats.models.cost = Cost()
        for s, record in view.calls(contents=False):
            if where(record.run_id, record.session_id, record.started_at_epoch_ms):
                self._record(s, record)
                judged += self._judge(record.evaluations)
        self._spans()
        judged += self._judged_spans()
        stats.evaluations_unmatched = len(view.evaluations) - judged
        stats.dropped.update(view.losses.dropped)
        stats.counters.update(view.losses.counters)

    def _record(self, s: Span, record: NodeIoRecord) -> None:
        stats = self.stats
        if "probable_reexport" in record.flags:
            stats.reexports += 1
            return
        ended = s.state == ENDED and record.dialect != "recovered"
        if record.node_type is NodeType.MODEL:
            price = self._prices.of(record) if self._prices is not None else None
            # another export of the same call: it was paid for once; an answer from a recording: not at all
            spends = not s.marks & OTHER_EXPORT and record.answered_from is None
            groups = (stats.models, stats.by_model.of(record.model_id), stats.by_agent.of(record.agent_name))
            for calls in groups:
                _count(calls, record, ended)
                if spends:
                    calls.tokens.add(record)
                    if self._prices is not None:
                        calls.cost = calls.cost or Cost()
                        calls.cost.add(price)
            if spends:
                stats.tokens.add(record)
            self._content(s, record)
        else:
            for calls in (stats.tools, stats.by_tool.of(record.tool_name)):
                _count(calls, record, ended)
        if record.status == "error":
            _add(stats.errors, (record.error or {}).get("type") or "(unknown)", 1)
        stats.recovered += record.dialect == "recovered"
        stats.answered += record.answered_from is not None
        self._span_of_time(record.started_at_epoch_ms, record.captured_at_epoch_ms)

    def _content(self, s: Span, record: NodeIoRecord) -> None:
        if any(member.marks & SAID for member in s.members()):
            return
        if any(isinstance(value, dict) for value in (record.inputs["messages"], record.outputs, record.output_text)):
            self.stats.content_off += 1  # the mark of what was left out
        else:
            self.stats.content_missing += 1

    def _spans(self) -> None:
        """What the skeletons alone tell: runs, open calls, steps, and agents without model calls."""
        stats, view = self.stats, self._view
        runs: set[str] = set()
        for s in view.spans():
            if not self._counts(s):
                continue
            if not passes_on(s):
                runs.add(view.run(s))
            if s.kind == Kind.STEP:
                _count_step(stats.steps.of(s.name), s)
            elif s.is_node and s.state == OPEN and not s.marks & MERGED:
                stats.open += 1
        stats.runs = len(runs)
        for agent in view.agents_alone:
            if self._counts(agent):
                stats.tokens.add_span(agent)
                if agent.tokens_in is not None or agent.tokens_out is not None:
                    stats.by_agent.of(agent.name).tokens.add_span(agent)

    def _judged_spans(self) -> int:
        """Judgements of agents and steps."""
        evaluations = self._view.evaluations
        if not len(evaluations):
            return 0
        others = (s for s in self._view.spans() if not s.is_node and self._counts(s))
        return sum(self._judge(evaluations.of([s], contents=False)) for s in others)

    def _judge(self, evaluations: list[dict[str, Json]]) -> int:
        for evaluation in evaluations:
            self.stats.evaluations.of(str(evaluation.get("name"))).add(evaluation)
        return len(evaluations)

    def _counts(self, s: Span) -> bool:
        start = s.start
        return self._where(self._view.run(s), self._view.session(s), None if start is None else start // 1_000_000)

    def _span_of_time(self, start: int | None, end: int | None) -> None:
        stats = self.stats
        if start is not None:
            stats.started_ms = start if stats.started_ms is None else min(stats.started_ms, start)
        if end is not None:
            stats.ended_ms = end if stats.ended_ms is None else max(stats.ended_ms, end)


def _count(calls: Calls, record: NodeIoRecord, ended: bool) -> None:
    calls.count += 1
    calls.status[record.status] += 1
    calls.retried += record.retry_count > 0
    calls.retries += record.retry_count
    calls.streamed += record.streamed is True
    if ended and record.duration_ms is not None:
        calls.latency.add(record.duration_ms)


def _count_step(calls: Calls, s: Span) -> None:
    calls.count += 1
    calls.status["open" if s.state == OPEN else "ok" if s.state == ENDED else "interrupted"] += 1
    calls.tokens.add_span(s)
    start, end = s.start, s.end
    if s.state == ENDED and start is not None and end is not None:
        calls.latency.add((end - start) // 1_000_000)


def _sum(a: int | None, b: int | None) -> int | None:
    if b is not None and abs(b) > MOST_TOKENS:
        return a
    return a if b is None else b if a is None else a + b


def _add(counts: Counter[str], name: str, count: int) -> None:
    counts[name if name in counts or len(counts) < MOST_NAMES else REST] += count


def _statuses(counts: Mapping[str, int]) -> dict[str, int]:
    return {**dict.fromkeys(("ok", "error", "interrupted", "partial"), 0), **counts}


def _most_first(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
