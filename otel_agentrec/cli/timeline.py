"""A run as it went: turns, their steps, and the model and tool calls of each; as data and as a tree.

Both are made while the records are read and keep no contents: in a long run the contents of all calls together are large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from otel_agentrec.cli.terminal import plain
from otel_agentrec.cli.wording import (
    STATUS_STYLE,
    asked,
    count,
    duration,
    judged,
    moment,
    on_wire,
    run_duration,
    run_notes,
    said,
    token_pair,
    tokens,
)
from otel_agentrec.nodes.text import legible
from otel_agentrec.records import NodeIoRecord, NodeType

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from otel_agentrec.nodes.runs import Run

__all__ = ["CONTENTS", "Turn", "brief", "headline", "line", "tree", "turns", "turns_json"]

Json = Any
T = TypeVar("T")

CONTENTS = ("inputs", "outputs", "outputText", "reasoningText", "attributes")
"""Fields of a record that a timeline leaves out."""

WORDS = 160
"""Longest preview of what was asked or said, in characters."""
NAME = 24
"""Names up to this length stand in a column."""


class Turn(Generic[T]):
    """One request of the user: its id, its first words, and ``(step, what was made of each record)`` in order."""

    def __init__(self, turn_id: str | None) -> None:
        self.id = turn_id
        self.question: str | None = None
        self.steps: list[tuple[int | None, list[T]]] = []


def turns(records: Iterable[NodeIoRecord], make: Callable[[NodeIoRecord], T]) -> list[Turn[T]]:
    """The records of a run, given in cause order, by turn and step; ``make`` says what is kept of each."""
    by_turn: dict[str | None, Turn[T]] = {}
    by_step: dict[tuple[str | None, int | None], list[T]] = {}
    for record in records:
        turn = by_turn.setdefault(record.turn_id, Turn(record.turn_id))
        if turn.question is None and record.node_type is NodeType.MODEL:
            turn.question = _question(record)
        key = (record.turn_id, record.step)
        if key not in by_step:
            by_step[key] = []
            turn.steps.append((record.step, by_step[key]))
        by_step[key].append(make(record))
    return list(by_turn.values())


def turns_json(records: Iterable[NodeIoRecord]) -> list[dict[str, Json]]:
    """``[{turnId, steps: [{step, nodes: [record without its contents]}]}]``."""
    return [
        {"turnId": turn.id, "steps": [{"step": step, "nodes": nodes} for step, nodes in turn.steps]}
        for turn in turns(records, brief)
    ]


def brief(record: NodeIoRecord) -> dict[str, Json]:
    """A record without its contents."""
    return {key: value for key, value in record.to_json().items() if key not in CONTENTS}


def line(run: Run, record: NodeIoRecord) -> Text:
    """A call on a line of its own, with its step."""
    from rich.text import Text

    at = "" if record.step is None else f"step {record.step}"
    return Text.assemble((f"  {at:8}", "dim"), *_kind_and_name(record.node_type, _name(record), 0), _rest(run, record))


def _kind_and_name(kind: NodeType, name: str, room: int) -> tuple[tuple[str, str], tuple[str, str]]:
    style = "magenta" if kind is NodeType.TOOL else "blue"
    return (f"{kind.value.lower():5} ", style), (f"{name:{room}}", "bold")


def tree(run: Run, records: Iterable[NodeIoRecord]) -> Tree:
    """The timeline of a run as a tree: run, turns, steps, calls."""
    from rich.text import Text
    from rich.tree import Tree

    root = Tree(headline(run), guide_style="dim")
    found = turns(records, lambda record: (record.node_type, _name(record), _rest(run, record)))
    names = [len(name) for turn in found for _, calls in turn.steps for _, name, _ in calls]
    room = max((length for length in names if length <= NAME), default=0)
    for number, turn in enumerate(found, 1):
        at = root.add(Text.assemble((f"turn {number}", "bold"), f"  {turn.question}" if turn.question else ""))
        for step, calls in turn.steps:
            branch = at if step is None else at.add(Text(f"step {step}", style="dim"))
            for kind, name, rest in calls:
                branch.add(Text.assemble(*_kind_and_name(kind, name, room), rest))
    return root


def headline(run: Run) -> Text:
    """What a run is: id, agent, session, status, times, calls, tokens."""
    from rich.text import Text

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
    if sums := token_pair(run.tokens):
        parts.append((f"  {sums} tokens in/out", ""))
    if notes := run_notes(run):
        parts.append((f"  {notes}", "yellow"))
    return Text.assemble(*parts)


def _question(record: NodeIoRecord) -> str:
    """The last words of the user that a model call was given."""
    messages = record.inputs.get("messages") if isinstance(record.inputs, dict) else None
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            parts = message.get("parts") or []
            words = [legible(p.get("content")) or str(p.get("content") or "") for p in parts if isinstance(p, dict)]
            return plain(" ".join(words), WORDS)
    return ""


def _name(record: NodeIoRecord) -> str:
    return plain(record.tool_name or record.model_id or record.response_model or "?", 60)


def _rest(run: Run, record: NodeIoRecord) -> Text:
    """What follows the name: status, times, tokens, and what was asked and said."""
    from rich.text import Text

    begun = ""
    if record.started_at_epoch_ms is not None and run.started_ms is not None:
        begun = f"+{(record.started_at_epoch_ms - run.started_ms) / 1000:.2f} s, "
    parts: list[tuple[str, str]] = [
        (f"  {record.status}", STATUS_STYLE.get(record.status, "")),
        (f"  {begun}{duration(record.duration_ms)}", ""),
    ]
    if record.agent_name and record.agent_name != run.agent:
        parts.append((f"  by {plain(record.agent_name, 40)}", "cyan"))
    if counted := tokens(record):
        parts.append((f"  {counted}", "dim"))
    if record.retry_count:
        parts.append((f"  {count(record.retry_count, 'retry', 'retries')}", "yellow"))
    if record.wire is not None:
        parts.append((f"  {on_wire(record)}", "dim"))
    if record.answered_from:
        parts.append(("  answered from a recording", "yellow"))
    if record.evaluations:
        parts.append((f"  {plain(judged(record), 80)}", "cyan"))
    if record.flags:
        parts.append((f"  [{plain(', '.join(record.flags), 80)}]", "yellow"))
    if record.node_type is NodeType.TOOL and (arguments := asked(record, WORDS)):
        parts.append((f"  {arguments}", ""))
    if answer := said(record, WORDS):
        parts.append((f"  → {answer}", ""))
    return Text.assemble(*parts)
