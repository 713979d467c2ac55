"""Answers of models beside the recorded ones, as tables and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from rich.table import Table
from rich.text import Text

from otel_agentrec.cli.terminal import console, plain
from otel_agentrec.cli.wording import asked as wording_asked
from otel_agentrec.cli.wording import count
from otel_agentrec.prompts import AgentModelResult, ModelClient
from otel_agentrec.records import NodeIoRecord
from otel_agentrec.replay.compare import Comparison, Trial, call_differences, word_diff
from otel_agentrec.replay.measure import Measure, Spent

__all__ = ["Asked", "print_comparison", "to_json"]

Json = Any
SHOWN = 100
"""Characters of an answer in the table."""
DIFF = 600
"""Characters of a text whose words are compared on the terminal; ``--json`` has them all."""
CALL_DIFFS = 4
STYLE = {"=": "dim", "-": "red strike", "+": "green"}
MARK = {"-": ("[-", "-]"), "+": ("{+", "+}")}


@dataclass
class Asked:
    """One recorded call: ``chosen`` label -> model, ``providers`` label -> provider; and what came of asking."""

    record: NodeIoRecord
    chosen: Mapping[str, str]
    providers: Mapping[str, str]
    clients: Mapping[str, ModelClient]
    recorded: AgentModelResult | None = None
    trials: list[Trial] = field(default_factory=list)

    def is_same(self, trial: Trial) -> bool:
        return Comparison(None, self.recorded, ()).same_as_recorded(trial)  # type: ignore[arg-type]

    def spent(self, trial: Trial, measure: Measure) -> Spent:
        if trial.result is None:
            return Spent()
        return measure.live(self.record, trial.result, self.chosen[trial.client], self.providers[trial.client])


def to_json(
    todo: Sequence[Asked], skipped: Iterable[tuple[NodeIoRecord, str]], measure: Measure, recording: str, calls: int
) -> Json:
    """``{recording, live, calls, nodes: [{…, recorded, trials}], skipped, summary}``; times in seconds, money in US dollars."""
    return {
        "recording": recording,
        "live": True,
        "calls": calls,
        "nodes": [
            {
                "nodeId": asked.record.node_id,
                "recordId": asked.record.record_id,
                "runId": asked.record.run_id,
                "step": asked.record.step,
                "recorded": _recorded_json(asked, measure),
                "trials": [_trial_json(asked, trial, measure) for trial in asked.trials],
            }
            for asked in todo
        ],
        "skipped": [{"nodeId": r.node_id, "recordId": r.record_id, "why": why} for r, why in skipped],
        "summary": [_summary(label, todo, measure) for label in _labels(todo)],
    }


def _recorded_json(asked: Asked, measure: Measure) -> Json:
    record, spent = asked.record, measure.recorded(asked.record)
    seconds = record.duration_ms / 1000 if record.duration_ms is not None else None
    return {"model": record.model_id, **_answer_json(asked.recorded), **_spent_json(spent), "seconds": seconds}


def _answer_json(result: AgentModelResult | None) -> dict[str, Json]:
    if result is None:
        return {"text": None, "toolCalls": None, "finishReasons": None}
    calls = [{"name": call.name, "arguments": call.parsed} for call in result.tool_calls]
    return {"text": result.output_text, "toolCalls": calls, "finishReasons": list(result.finish_reasons)}


def _spent_json(spent: Spent) -> dict[str, Json]:
    usd = float(spent.usd) if spent.usd is not None else None
    return {"inputTokens": spent.input_tokens, "outputTokens": spent.output_tokens, "usd": usd}


def _trial_json(asked: Asked, trial: Trial, measure: Measure) -> Json:
    told: dict[str, Json] = {
        "label": trial.client,
        "model": asked.chosen[trial.client],
        "repeat": trial.repeat,
        "seconds": round(trial.seconds, 4),
        **_answer_json(trial.result),
        **_spent_json(asked.spent(trial, measure)),
        "same": asked.is_same(trial),
        "error": None,
    }
    if trial.error is not None:
        told["error"] = {"type": type(trial.error).__name__, "message": str(trial.error)}
    if trial.result is not None and asked.recorded is not None and not told["same"]:
        words = word_diff(asked.recorded.output_text, trial.result.output_text)
        told["textDiff"] = [[sign, text] for sign, text in words]
        told["callDiff"] = [d.to_json() for d in call_differences(asked.recorded, trial.result)]
    return told


def _labels(todo: Sequence[Asked]) -> list[str]:
    return list(dict.fromkeys(label for asked in todo for label in asked.chosen))


def _summary(label: str, todo: Sequence[Asked], measure: Measure) -> dict[str, Json]:
    mine = [(asked, trial) for asked in todo for trial in asked.trials if trial.client == label]
    answered = [(asked, trial) for asked, trial in mine if trial.error is None]
    spent = [asked.spent(trial, measure) for asked, trial in answered]
    usd = [one.usd for one in spent if one.usd is not None]
    return {
        "label": label,
        "model": next(asked.chosen[label] for asked in todo if label in asked.chosen),
        "calls": len(mine),
        "failed": len(mine) - len(answered),
        "same": sum(asked.is_same(trial) for asked, trial in answered),
        "inputTokens": _sum(one.input_tokens for one in spent),
        "outputTokens": _sum(one.output_tokens for one in spent),
        "medianSeconds": round(statistics.median(t.seconds for _, t in answered), 4) if answered else None,
        "usd": float(sum(usd)) if usd else None,
        "unpriced": len(spent) - len(usd),
    }


def _sum(counts: Iterable[int | None]) -> int | None:
    told = [number for number in counts if number is not None]
    return sum(told) if told else None


# --- for people ---------------------------------------------------------------------------------------------------------


def print_comparison(todo: Sequence[Asked], skipped: Sequence[tuple[NodeIoRecord, str]], measure: Measure) -> None:
    """A table per recorded call with the differences below it, then the sums."""
    out = console()
    for asked in todo:
        if not asked.trials:
            continue
        step = asked.record.step if asked.record.step is not None else "-"
        out.print(f"step {step}  {plain(asked.record.node_id)}", style="bold")
        out.print(f"  {plain(wording_asked(asked.record, 160))}", style="dim")
        out.print(_table(asked, measure))
        for trial in asked.trials:
            _print_difference(asked, trial)
        out.print()
    for record, why in skipped:
        out.print(f"not asked: {plain(record.node_id)}: {plain(why)}", style="yellow")
    out.print(_sums(todo, measure))
    if not measure.has_prices:
        console(stderr=True).print("costs need the extra prices: pip install 'otel-agentrec[prices]'", style="dim")


def _table(asked: Asked, measure: Measure) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("", "model", "answer", "", "in/out", "seconds", "cost"):
        right = title in ("in/out", "seconds", "cost")
        table.add_column(title, justify="right" if right else "left", no_wrap=right, overflow="fold")
    record, spent = asked.record, measure.recorded(asked.record)
    seconds = f"{record.duration_ms / 1000:.2f}" if record.duration_ms is not None else "-"
    table.add_row(
        "recorded",
        Text(plain(record.model_id or "-", 40)),
        Text(_said(asked.recorded)),
        "",
        _tokens(spent),
        seconds,
        _usd(spent.usd),
    )
    for trial in asked.trials:
        spent = asked.spent(trial, measure)
        name = trial.client if trial.repeat == 1 else f"{trial.client} #{trial.repeat}"
        failed = trial.error is not None
        said = f"{type(trial.error).__name__}: {trial.error}" if failed else _said(trial.result)
        verdict = "failed" if failed else "same" if asked.is_same(trial) else "differs"
        style = {"failed": "red", "same": "green", "differs": "yellow"}[verdict]
        table.add_row(
            Text(plain(name, 40)),
            Text(plain(asked.chosen[trial.client], 40)),
            Text(plain(said, SHOWN), style="red" if failed else ""),
            Text(verdict if asked.recorded is not None or failed else "", style=style),
            _tokens(spent),
            f"{trial.seconds:.2f}",
            _usd(spent.usd),
        )
    return table


def _print_difference(asked: Asked, trial: Trial) -> None:
    if trial.result is None or asked.recorded is None or asked.is_same(trial):
        return
    out = console()
    name = plain(trial.client if trial.repeat == 1 else f"{trial.client} #{trial.repeat}", 40)
    old, new = asked.recorded.output_text or "", trial.result.output_text or ""
    if old != new and old and new and len(old) + len(new) <= 2 * DIFF:
        line = Text(f"  {name}: ")
        for sign, words in word_diff(old, new):
            before, after = MARK.get(sign, ("", ""))
            shown = before + _safe(words) + after if not out.is_terminal else _safe(words)
            line.append(shown, style=STYLE[sign])
        out.print(line)
    calls = call_differences(asked.recorded, trial.result)
    for difference in calls[:CALL_DIFFS]:
        told = difference.to_json()
        words = " -> ".join(_value(told[key]) if key in told else "(absent)" for key in ("recorded", "asked"))
        out.print(Text(f"  {name}: {plain(difference.where)}: {words}", style="yellow"))
    if len(calls) > CALL_DIFFS:
        out.print(f"  {name}: and {len(calls) - CALL_DIFFS} more; --json lists all", style="dim")


def _safe(words: str) -> str:
    """Words that are safe for a terminal, with the white space between them as single blanks."""
    inner = plain(words)
    if not inner:
        return " " if words else ""
    return (" " if words[0].isspace() else "") + inner + (" " if words[-1].isspace() else "")


def _value(value: Json) -> str:
    import json

    return plain(json.dumps(value, ensure_ascii=False, default=str), 120)


def _sums(todo: Sequence[Asked], measure: Measure) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("", "model", "calls", "failed", "same", "in/out", "median s", "cost"):
        table.add_column(title, justify="left" if title in ("", "model") else "right", no_wrap=True)
    for label in _labels(todo):
        told = _summary(label, todo, measure)
        usd = None if told["usd"] is None else Decimal(str(told["usd"]))
        table.add_row(
            Text(plain(label, 40)),
            Text(plain(told["model"], 40)),
            str(told["calls"]),
            str(told["failed"] or ""),
            f"{told['same']} of {told['calls'] - told['failed']}",
            _tokens(Spent(told["inputTokens"], told["outputTokens"])),
            "-" if told["medianSeconds"] is None else f"{told['medianSeconds']:.2f}",
            _usd(usd) + (f" + {count(told['unpriced'], 'call')} without a price" if usd and told["unpriced"] else ""),
        )
    return table


def _said(result: AgentModelResult | None) -> str:
    if result is None:
        return "-"
    words = [result.output_text] if result.output_text else []
    words += [f"{call.name}({_value(call.parsed)})" for call in result.tool_calls]
    return plain(" ".join(words), SHOWN)


def _tokens(spent: Spent) -> str:
    return "/".join("-" if n is None else str(n) for n in (spent.input_tokens, spent.output_tokens))


def _usd(usd: Decimal | None) -> str:
    return "-" if usd is None else f"${usd:,.2f}" if usd >= 1 else f"${usd:.6f}"
