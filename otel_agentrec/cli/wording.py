"""How times, spans of time, tokens and calls are put into words; the same in every command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from otel_agentrec.cli.terminal import plain
from otel_agentrec.nodes.text import legible
from otel_agentrec.records import NodeIoRecord, NodeType

if TYPE_CHECKING:
    from otel_agentrec.nodes.runs import Run

__all__ = [
    "STATUS_STYLE",
    "asked",
    "clock",
    "count",
    "duration",
    "judged",
    "judgement",
    "moment",
    "on_wire",
    "run_duration",
    "run_notes",
    "said",
    "token_pair",
    "tokens",
    "unknown_effects",
]

Json = Any

STATUS_STYLE: Mapping[str, str] = {
    "ok": "green",
    "error": "red",
    "interrupted": "yellow",
    "partial": "yellow",
    "open": "cyan",
}


def moment(epoch_ms: int | None) -> str:
    """Local date and time to the second; ``-`` when unknown."""
    return _local(epoch_ms, "%Y-%m-%d %H:%M:%S")


def clock(epoch_ms: int | None) -> str:
    """Local time of day to the millisecond; ``-`` when unknown."""
    text = _local(epoch_ms, "%H:%M:%S.%f")
    return text if text == "-" else text[:-3]


def _local(epoch_ms: int | None, form: str) -> str:
    if epoch_ms is None:
        return "-"
    try:
        return datetime.fromtimestamp(epoch_ms / 1000).strftime(form)
    except (ValueError, OverflowError, OSError):
        return "-"


def duration(ms: int | None) -> str:
    """``12 ms``, ``3.4 s``, ``2 min 05 s``, ``3 h 07 min``; ``-`` when unknown."""
    if ms is None:
        return "-"
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(ms // 1000, 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def tokens(record: NodeIoRecord) -> str:
    """``120 in (100 cached), 8 out``; empty when the telemetry does not tell."""
    parts = []
    if record.input_tokens is not None:
        cached = f" ({record.cache_read_tokens} cached)" if record.cache_read_tokens else ""
        parts.append(f"{record.input_tokens} in{cached}")
    if record.output_tokens is not None:
        parts.append(f"{record.output_tokens} out")
    return ", ".join(parts)


def on_wire(record: NodeIoRecord) -> str:
    """``wire 2.3/0.8 KB``: the exact sizes of request and response; with the rung where the call was not exactly this span's,
    and with what is wrong. Empty when the wire was not seen."""
    told = record.wire
    if told is None:
        return ""
    sizes = "/".join(_kilobytes(told.get(key)) for key in ("requestBytes", "responseBytes"))
    rung, flags = told.get("rung"), told.get("flags") or []
    notes = [f"by {rung}".replace("_", " ")] if rung in ("ancestor", "response_id", "content") else []
    notes += ["no span of its own"] if rung == "none" else []
    notes += ["not complete"] if told.get("complete") is False else []
    notes += [flag for flag in flags if flag in ("redacted", "withheld")]
    return f"wire {sizes} KB" + (f" ({', '.join(notes)})" if notes else "")


def _kilobytes(size: Json) -> str:
    return f"{size / 1000:.1f}" if isinstance(size, int) else "-"


def count(number: int, one: str, many: str | None = None) -> str:
    """``1 call``, ``2 calls``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def token_pair(sums: Mapping[str, int | None]) -> str:
    """``136/62`` of a run's ``{input, output}``; ``-`` where unknown, empty when both are."""
    given = [sums.get("input"), sums.get("output")]
    return "" if given == [None, None] else "/".join("-" if n is None else str(n) for n in given)


def run_duration(run: Run) -> int | None:
    """Milliseconds from a run's start to its end; None while it runs."""
    if run.started_ms is None or run.ended_ms is None:
        return None
    return max(0, run.ended_ms - run.started_ms)


def run_notes(run: Run) -> str:
    """What a person must know of a run: what is open, unknown or missing."""
    notes = []
    if run.open:
        notes.append(f"{count(len(run.open), 'call')} under way")
    if run.unpaired:
        notes.append(f"{count(len(run.unpaired), 'call')} with unknown outcome")
    if run.unknown:
        notes.append(f"{count(len(run.unknown), 'effect')} with unknown outcome")
    if run.attempt > 1:
        notes.append(f"attempt {run.attempt} of {plain(run.root, 12)}")
    if run.missing_parents:
        notes.append("spans above it were not recorded")
    return ", ".join(notes)


def unknown_effects(runs: Iterable[Run], recording: str) -> list[str]:
    """Two lines for each effect that must be settled: what it was, and the command that settles it, to be copied."""
    lines = []
    for run in runs:
        for effect in run.unknown:
            given = _brief(effect.arguments, 120)
            why = f"its result is {effect.lost}" if effect.lost else "nobody knows whether it happened"
            lines.append(f"UNKNOWN {plain(effect.name, 60)}({given}) begun {moment(effect.started_ms)}: {why}")
            command = f"otel-agentrec resolve {shlex.quote(recording)} {effect.id}"
            lines.append(f"  {command} --done OUTPUT    (or --not-done)")
    return lines


def asked(record: NodeIoRecord, limit: int) -> str:
    """What went in, in one line: a tool's arguments, or the last message to a model."""
    inputs = record.inputs if isinstance(record.inputs, dict) else {}
    if record.node_type is NodeType.TOOL:
        return _brief(inputs.get("arguments"), limit)
    messages = inputs.get("messages")
    return _message(messages[-1], limit) if isinstance(messages, list) and messages else ""


def said(record: NodeIoRecord, limit: int) -> str:
    """What came out, in one line: the error, the text, the calls asked for, or the result."""
    if record.error:
        error = record.error
        words = [legible(word) or str(word) for word in (error.get("type"), error.get("message")) if word]
        return plain(": ".join(words), limit)
    if record.output_text:
        return plain(record.output_text, limit)
    if record.tool_calls:
        named = [f"{call.get('name')}({_brief(call.get('arguments'), limit)})" for call in record.tool_calls]
        return plain("calls " + ", ".join(named), limit)
    if record.node_type is NodeType.TOOL:
        return _brief(record.outputs, limit)
    return ""


def judged(record: NodeIoRecord) -> str:
    """``quality=0.8, tone=friendly``: what evaluations say of a call; empty when there are none."""
    return ", ".join(judgement(evaluation) for evaluation in record.evaluations)


def judgement(evaluation: Mapping[str, Json]) -> str:
    """``quality=0.8 (pass)``, ``tone=friendly``."""
    name, score, label = (evaluation.get(key) for key in ("name", "score", "label"))
    if score is None:
        return f"{name}={label if label is not None else '?'}"
    return f"{name}={json.dumps(score, default=str)}" + (f" ({label})" if label is not None else "")


def _message(message: Json, limit: int) -> str:
    if not isinstance(message, dict):
        return _brief(message, limit)
    words = []
    for part in message.get("parts") or ():
        if isinstance(part, dict):
            kind = part.get("type")
            value = {"tool_call": part.get("arguments"), "tool_call_response": part.get("response")}.get(
                str(kind), part.get("content")
            )
            words.append(_brief(value, limit))
    return plain(f"{message.get('role') or '?'}: {' '.join(words)}", limit)


def _brief(value: Json, limit: int) -> str:
    """A value in one line: text as it is, an object without its outer braces as ``key=value``."""
    if value is None:
        return ""
    text = legible(value)
    if text is not None:
        return plain(text, limit)
    if isinstance(value, dict) and value and all(not isinstance(v, (dict, list)) for v in value.values()):
        return plain(", ".join(f"{k}={_scalar(v)}" for k, v in value.items()), limit)
    return plain(json.dumps(value, ensure_ascii=False, default=str), limit)


def _scalar(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
