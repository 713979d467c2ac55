"""``otel-agentrec stats``: the numbers of a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from otel_agentrec.cli.command import Since, json_option, recording_argument
from otel_agentrec.cli.command import command as make_command

if TYPE_CHECKING:
    from rich.console import RenderableType

    from otel_agentrec.nodes.stats import Calls, Cost, Stats

__all__ = ["command"]

Cell = str
Row = Sequence[Cell]


@make_command(
    examples="""
    otel-agentrec stats agentrec
    otel-agentrec stats agentrec --since 1d --session 'chat-*'
    otel-agentrec stats agentrec --cost
    otel-agentrec stats agentrec --json | jq '.byModel[] | {model, tokens}'
    """
)
@recording_argument
@click.option("--run", metavar="ID", help="Only this run; the beginning of its id is enough.")
@click.option("--session", metavar="ID", help="Only this session; * and ? match any characters.")
@click.option("--since", type=Since(), metavar="TIME", help="Begun since then: 10m, 2h, 3d, or 2026-01-31T12:00.")
@click.option("--cost", is_flag=True, help="Also what model calls cost, where a price is known.")
@json_option
def command(recording: str, run: str | None, session: str | None, since: int | None, cost: bool, as_json: bool) -> None:
    """Count the calls of a recording: tokens, times, errors, retries, evaluations, and what could not be recorded.

    Each call counts once, also where several spans tell of it. Percentiles are exact up to 1,000 calls of a model or tool,
    and within 1 % beyond. What was dropped is counted for the whole recording, whatever is selected.
    """
    from otel_agentrec.cli.filters import Filter
    from otel_agentrec.cli.opened import open_view
    from otel_agentrec.nodes.stats import stats_of

    prices = None
    if cost:
        from otel_agentrec.nodes.prices import Prices

        prices = Prices()
    stats = stats_of(open_view(recording), Filter(run=run, session=session, since=since).place_fits, prices)
    if as_json:
        from otel_agentrec.cli.terminal import print_json

        print_json(stats.to_json())
    else:
        from otel_agentrec.cli.terminal import console

        out = console()
        for part in _parts(stats):
            out.print(part)


def _parts(stats: Stats) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text.assemble(*_summary(stats))
    tables: list[tuple[Row, list[Row]]] = [
        (("model", *_CALLS, *_TOKENS, "cost"), [_model_row(n, c) for n, c in stats.by_model.items()]),
        (("tool", *_CALLS), [(_name(n), *_calls(c)) for n, c in stats.by_tool.items()]),
        (("agent", "calls", *_TOKENS, "cost"), _agent_rows(stats)),
        (("step", *_CALLS, *_TOKENS), [(_name(n), *_calls(c), *_tokens(c)) for n, c in stats.steps.items()]),
        (("error", "calls"), [(_name(n), str(count)) for n, count in stats.errors.most_common()]),
        (("evaluation", "count", "mean", "min", "max", ""), _evaluation_rows(stats)),
        (("not recorded", "count"), [(_name(n), str(count)) for n, count in stats.dropped.most_common()]),
    ]
    for head, rows in tables:
        if rows:
            yield ""
            yield _table(head, rows)
    notes = list(_notes(stats))
    if notes:
        yield ""
        yield from (Text(note, style="yellow") for note in notes)


_CALLS = ("calls", "failed", "unfinished", "retries", "streamed", "mean", "p50", "p95", "max")
_TOKENS = ("in", "cached", "out", "reasoning")


def _summary(stats: Stats) -> Iterator[tuple[str, str]]:
    from otel_agentrec.cli.wording import STATUS_STYLE, count, moment

    models, tools = count(stats.models.count, "model call"), count(stats.tools.count, "tool call")
    yield f"{count(stats.runs, 'run')}, {models}, {tools}", "bold"
    if stats.started_ms is not None:
        yield f"  {moment(stats.started_ms)} to {moment(stats.ended_ms)}", ""
    for status, n in (stats.models.status + stats.tools.status).most_common():
        yield f"  {n} {status}", STATUS_STYLE.get(status, "")
    if stats.open:
        yield f"  {stats.open} under way", STATUS_STYLE["open"]
    tokens = stats.tokens
    if tokens.input is not None or tokens.output is not None:
        cached = f" ({_count(tokens.cache_read)} cached)" if tokens.cache_read else ""
        yield f"\n{_count(tokens.input)} tokens in{cached}, {_count(tokens.output)} out", ""
    if stats.models.cost is not None:
        yield f"  {_usd(stats.models.cost)}", ""


def _model_row(name: str | None, calls: Calls) -> Row:
    return _name(name), *_calls(calls), *_tokens(calls), _usd(calls.cost)


def _agent_rows(stats: Stats) -> list[Row]:
    found = stats.by_agent.items()
    if [name for name, _ in found] == [None]:  # no agent was told
        return []
    return [(_name(name), str(calls.count), *_tokens(calls), _usd(calls.cost)) for name, calls in found]


def _evaluation_rows(stats: Stats) -> list[Row]:
    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.4g}"

    rows: list[Row] = []
    for name, found in stats.evaluations.items():
        mean = found.sum / found.scored if found.scored else None
        labels = ", ".join(f"{label} {n}" for label, n in found.labels.most_common(5))
        rows.append((_name(name), str(found.count), number(mean), number(found.min), number(found.max), _plain(labels)))
    return rows


def _calls(calls: Calls) -> Row:
    from otel_agentrec.cli.wording import duration

    times = calls.latency
    mean = None if times.mean is None else round(times.mean)
    return (
        str(calls.count),
        str(calls.status["error"] or ""),
        str(calls.status["interrupted"] + calls.status["partial"] or ""),
        str(calls.retries or ""),
        str(calls.streamed or ""),
        *(duration(ms) for ms in (mean, times.quantile(0.5), times.quantile(0.95), times.max)),
    )


def _tokens(calls: Calls) -> Row:
    t = calls.tokens
    return tuple(_count(n) for n in (t.input, t.cache_read, t.output, t.reasoning))


def _notes(stats: Stats) -> Iterator[str]:
    """What a person must know before trusting the numbers."""
    from otel_agentrec.cli.wording import count

    def calls(n: int) -> str:
        return count(n, "model call")

    if stats.content_missing:
        yield f"{calls(stats.content_missing)} came without messages: the instrumentation was not asked for content"
    if stats.content_off:
        yield f"{calls(stats.content_off)} without messages, as the settings say"
    if stats.recovered:
        yield f"{count(stats.recovered, 'tool call')} without a span, found in the messages of a later call"
    if stats.answered:
        yield f"{count(stats.answered, 'call')} answered from a recording"
    if stats.reexports:
        yield f"{count(stats.reexports, 'call')} not counted: probably exported a second time"
    if stats.evaluations_unmatched:
        yield f"{count(stats.evaluations_unmatched, 'evaluation')} of calls that are not among these"
    if swallowed := stats.counters["swallowed"]:
        yield f"{count(swallowed, 'exception')} swallowed while recording"
    for name in _COUNTED:
        if n := stats.counters[name]:
            yield f"{n} {_COUNTED[name]}"
    cost = stats.models.cost
    if cost is not None and cost.unpriced:
        names = [_name(n) for n, c in stats.by_model.items() if c.cost is not None and c.cost.unpriced]
        yield f"no price known for {calls(cost.unpriced)}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"


_COUNTED = {
    "late": "events after the recording was closed",
    "evicted": "spans given up because too many were open",
    "abandoned": "spans that were never ended",
    "logs_unjoined": "log records whose span was not open",
    "spans_lost": "spans did not reach the OTLP receiver: otel-agentrec export sends them again",
    "spans_reduced": "spans were too large for the OTLP receiver and went without their large values",
    "forward_unseen": "spans fell out of a full queue behind forward=: otel-agentrec export sends them again",
    "forward_lost": "spans could not be handed on",
    "events_lost": "events did not reach the OTLP receiver: otel-agentrec export --events sends them again",
}


def _count(n: int | None) -> str:
    return "-" if n is None else f"{n:,}"


def _usd(cost: Cost | None) -> str:
    if cost is None:
        return ""
    if not cost.priced:
        return "-"
    return f"${cost.usd:,.2f}" if cost.usd >= 1 else f"${cost.usd:.6f}"


def _plain(text: str) -> str:
    from otel_agentrec.cli.terminal import plain

    return plain(text, 60)


def _name(text: str | None) -> str:
    return "-" if text is None else _plain(text)


def _table(head: Row, rows: list[Row]) -> RenderableType:
    """A table without the columns in which nothing stands."""
    from rich.table import Table
    from rich.text import Text

    def told(at: int) -> bool:
        return at == 0 or any(row[at] not in ("", "-") for row in rows)

    columns = [at for at in range(len(head)) if told(at)]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for at in columns:
        left = at == 0 or not head[at]
        table.add_column(head[at], justify="left" if left else "right", no_wrap=True, overflow="ellipsis")
    styled: Callable[[int, Cell], Any] = lambda at, cell: Text(cell, style="bold" if at == 0 else "")  # noqa: E731
    for row in rows:
        table.add_row(*(styled(at, row[at]) for at in columns))
    return table
