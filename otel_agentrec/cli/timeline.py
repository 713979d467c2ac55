"""A run as it went: turns, their steps, and the model and tool calls of each; as data and as a tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from otel_agentrec.records import NodeIoRecord, NodeType

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from otel_agentrec.nodes.runs import Run

__all__ = ["Turn", "tree", "turns", "turns_json"]

Json = Any

WORDS = 160
"""Longest preview of what was asked or said, in characters; a terminal shows what fits its width."""


@dataclass
class Turn:
    """One request of the user: its id, and (step, records) in the order of their first record."""

    id: str | None
    steps: list[tuple[int | None, list[NodeIoRecord]]] = field(default_factory=list)


def turns(records: Iterable[NodeIoRecord]) -> list[Turn]:
    """The records of a run, in cause order, by turn and step."""
    by_turn: dict[str | None, Turn] = {}
    by_step: dict[tuple[str | None, int | None], list[NodeIoRecord]] = {}
    for record in records:
        turn = by_turn.setdefault(record.turn_id, Turn(record.turn_id))
        key = (record.turn_id, record.step)
        if key not in by_step:
            by_step[key] = []
            turn.steps.append((record.step, by_step[key]))
        by_step[key].append(record)
    return list(by_turn.values())


def turns_json(records: Iterable[NodeIoRecord]) -> list[dict[str, Json]]:
    """``[{turnId, steps: [{step, nodes: [record]}]}]``, the records as ``nodes --json`` prints them."""
    return [
        {
            "turnId": turn.id,
            "steps": [{"step": step, "nodes": [r.to_json() for r in members]} for step, members in turn.steps],
        }
        for turn in turns(records)
    ]


def tree(run: Run, records: list[NodeIoRecord]) -> Tree:
    """The timeline of a run as a tree: run, turns, steps, calls."""
    from rich.text import Text
    from rich.tree import Tree

    from otel_agentrec.cli.terminal import plain

    root = Tree(_headline(run), guide_style="dim")
    room = min(24, max((len(plain(_name(record))) for record in records), default=0))
    found = turns(records)
    for number, turn in enumerate(found, 1):
        opening = _question(turn)
        at = root.add(Text.assemble((f"turn {number}", "bold"), f"  {plain(opening, WORDS)}" if opening else ""))
        for step, members in turn.steps:
            branch = at if step is None else at.add(Text(f"step {step}", style="dim"))
            for record in members:
                branch.add(_line(run, record, room))
    return root


def _headline(run: Run) -> Text:
    from rich.text import Text

    from otel_agentrec.cli.terminal import plain
    from otel_agentrec.cli.wording import STATUS_STYLE, count, duration, moment, run_duration, run_notes, token_pair

    parts: list[tuple[str, str]] = [("run ", ""), (plain(run.id, 64), "bold")]
    if run.agent:
        parts.append((f"  {plain(run.agent, 60)}", "cyan"))
    if run.session:
        parts.append((f"  session {plain(run.session, 60)}", ""))
    parts += [
        (f"  {run.status}", STATUS_STYLE.get(run.status, "")),
        (f"  {moment(run.started_ms)}  {duration(run_duration(run))}", ""),
        (f"  {count(run.records, 'call')}", ""),
    ]
    if tokens := token_pair(run.tokens):
        parts.append((f"  {tokens} tokens in/out", ""))
    if notes := run_notes(run):
        parts.append((f"  {notes}", "yellow"))
    return Text.assemble(*parts)


def _question(turn: Turn) -> str:
    """The last words of the user before the first model call of a turn."""
    for _, members in turn.steps:
        for record in members:
            messages = (record.inputs or {}).get("messages") if record.node_type is NodeType.MODEL else None
            for message in reversed(messages if isinstance(messages, list) else []):
                if isinstance(message, dict) and message.get("role") == "user":
                    parts = message.get("parts") or []
                    return " ".join(str(p.get("content") or "") for p in parts if isinstance(p, dict))
            return ""
    return ""


def _name(record: NodeIoRecord) -> str:
    return record.tool_name or record.model_id or record.response_model or "?"


def _line(run: Run, record: NodeIoRecord, room: int) -> Text:
    from rich.text import Text

    from otel_agentrec.cli.terminal import plain
    from otel_agentrec.cli.wording import STATUS_STYLE, asked, count, duration, said, tokens

    tool = record.node_type is NodeType.TOOL
    since = None
    if record.started_at_epoch_ms is not None and run.started_ms is not None:
        since = record.started_at_epoch_ms - run.started_ms
    parts: list[tuple[str, str]] = [
        (f"{'tool' if tool else 'model':5} ", "magenta" if tool else "blue"),
        (f"{plain(_name(record), 40):{room}}", "bold"),
        (f"  {record.status}", STATUS_STYLE.get(record.status, "")),
        (f"  {'' if since is None else f'+{since / 1000:.2f} s, '}{duration(record.duration_ms)}", ""),
    ]
    if record.agent_name and record.agent_name != run.agent:
        parts.append((f"  by {plain(record.agent_name, 40)}", "cyan"))
    if count_text := tokens(record):
        parts.append((f"  {count_text}", "dim"))
    if record.retry_count:
        parts.append((f"  {count(record.retry_count, 'retry', 'retries')}", "yellow"))
    if record.answered_from:
        parts.append(("  answered from a recording", "yellow"))
    if record.flags:
        parts.append((f"  [{', '.join(record.flags)}]", "yellow"))
    if tool and (arguments := asked(record, WORDS)):
        parts.append((f"  {arguments}", ""))
    if answer := said(record, WORDS):
        parts.append((f"  → {answer}", ""))
    return Text.assemble(*parts)
