"""Two runs side by side: which calls are the same, which differ and where, and where they first part. Pure.

Calls are compared by what was asked and what came of it. Ids, times and places are not compared; ids of tool calls are
renamed by their first appearance, since every run makes its own, and so are secrets that redaction took out: their marks are
made under a key of the process. Calls are aligned lane by lane (an agent, by the path of
agents that leads to it), so that the order in which a scheduler ran two agents is no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from hashlib import blake2b
from typing import Any

from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.redaction.marker import MARKER, holds_marker
from otel_agentrec.resume.jsondiff import Difference, differences

__all__ = ["Compared", "Pair", "RunDiff", "diff_runs"]

Json = Any
SAME, CHANGED, ONLY_A, ONLY_B = "same", "changed", "only_a", "only_b"


@dataclass(frozen=True, slots=True)
class Compared:
    """A recorded call and its lane (path text)."""

    record: NodeIoRecord
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """A call of A and the call of B that stands for it; ``status``: same, changed, only_a, only_b.

    ``asked``: whether the request differs too, or only what came of it.
    """

    status: str
    a: NodeIoRecord | None
    b: NodeIoRecord | None
    lane: str = ""
    differences: tuple[Difference, ...] = ()

    @property
    def asked(self) -> bool:
        return any(d.path[:1] == ("inputs",) for d in self.differences)

    def to_json(self) -> dict[str, Json]:
        return {
            "status": self.status,
            "lane": self.lane,
            "a": _place(self.a),
            "b": _place(self.b),
            "differences": [d.to_json() for d in self.differences],
        }


@dataclass(frozen=True, slots=True)
class RunDiff:
    """All pairs, in the order of A, what only B has at its place. ``first``: the first one that is not the same."""

    pairs: tuple[Pair, ...]
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        return all(pair.status == SAME for pair in self.pairs)

    @property
    def first(self) -> Pair | None:
        return next((pair for pair in self.pairs if pair.status != SAME), None)

    def to_json(self) -> dict[str, Json]:
        """``{same, counts, firstDivergence, calls}``; ``firstDivergence`` is an index of ``calls`` or null."""
        first = self.first
        return {
            "same": self.same,
            "counts": self.counts,
            "firstDivergence": None if first is None else self.pairs.index(first),
            "calls": [pair.to_json() for pair in self.pairs],
        }


def diff_runs(a: Iterable[Compared], b: Iterable[Compared]) -> RunDiff:
    """Compare two runs, each given in cause order."""
    left, right = _Side(a), _Side(b)
    pairs: list[tuple[tuple[int, int], Pair]] = []
    for lane in dict.fromkeys([*left.lanes, *right.lanes]):
        pairs.extend(_lane(lane, left, right))
    ordered = tuple(pair for _, pair in sorted(pairs, key=lambda item: item[0]))
    counts = dict.fromkeys((SAME, CHANGED, ONLY_A, ONLY_B), 0)
    for pair in ordered:
        counts[pair.status] += 1
    return RunDiff(ordered, counts)


class _Side:
    """The calls of one run, what of each is compared, and a digest of it."""

    def __init__(self, calls: Iterable[Compared]) -> None:
        self.lanes: dict[str, list[int]] = defaultdict(list)
        self.records: list[NodeIoRecord] = []
        self.values: list[dict[str, Json]] = []
        self.digests: list[bytes] = []
        names: dict[str, str] = {}
        secrets: dict[str, str] = {}
        for n, call in enumerate(calls):
            self.lanes[call.lane].append(n)
            value = _unkeyed(compared_value(call.record, names), secrets)
            self.records.append(call.record)
            self.values.append(value)
            self.digests.append(blake2b(canonical_any(value), digest_size=16).digest())


def compared_value(record: NodeIoRecord, names: dict[str, str]) -> dict[str, Json]:
    """What of a call is compared. ``names``: tool-call ids of the run so far, by first appearance."""
    inputs = record.inputs if isinstance(record.inputs, dict) else {"value": record.inputs}
    if record.node_type is NodeType.TOOL:
        asked = {key: value for key, value in inputs.items() if key != "callId"}
        came: dict[str, Json] = {"outputs": record.outputs}
    else:
        asked = dict(inputs)
        came = {
            "outputText": record.output_text,
            "reasoningText": record.reasoning_text,
            "toolCalls": record.tool_calls,
            "finishReasons": record.finish_reasons,
        }
        if record.output_text is None and not record.tool_calls:
            came["outputs"] = record.outputs
    value = {"inputs": asked, **came, "status": record.status, "error": record.error}
    told = {key: held for key, held in value.items() if held not in (None, [], {})}
    renamed = _renamed(told, names)
    assert isinstance(renamed, dict)
    return renamed


def _unkeyed(value: Json, secrets: dict[str, str]) -> Json:
    """A value with the digits in marks of redaction replaced by numbers, by their first appearance in the run."""
    if isinstance(value, str):
        return MARKER.sub(lambda mark: _numbered(mark.group(), secrets), value) if holds_marker(value) else value
    if isinstance(value, list):
        return [_unkeyed(item, secrets) for item in value]
    if isinstance(value, dict):
        return {key: _unkeyed(held, secrets) for key, held in value.items()}
    return value


def _numbered(mark: str, secrets: dict[str, str]) -> str:
    rule, tilde, digits = mark[:-1].partition("~")
    return f"{rule}#{secrets.setdefault(digits, str(len(secrets) + 1))})" if tilde else mark


def _lane(lane: str, left: _Side, right: _Side) -> list[tuple[tuple[int, int], Pair]]:
    """Pairs of one lane, each with where it stands: (place in A, place in B behind it)."""
    a, b = left.lanes.get(lane, []), right.lanes.get(lane, [])
    found: list[tuple[tuple[int, int], Pair]] = []
    here = -1  # place in A of what was met last: what only B has stands behind it
    same = SequenceMatcher(None, [left.digests[n] for n in a], [right.digests[n] for n in b], autojunk=False)
    for tag, a0, a1, b0, b1 in same.get_opcodes():
        if tag == "equal":
            for n, m in zip(a[a0:a1], b[b0:b1], strict=True):
                found.append(((n, -1), Pair(SAME, left.records[n], right.records[m], lane)))
            here = a[a1 - 1]
            continue
        for one, other in _aligned(left, a[a0:a1], right, b[b0:b1]):
            if one is None:
                assert other is not None
                found.append(((here, other), Pair(ONLY_B, None, right.records[other], lane)))
            elif other is None:
                here = one
                found.append(((one, -1), Pair(ONLY_A, left.records[one], None, lane)))
            else:
                here = one
                apart = tuple(differences(left.values[one], right.values[other], limit=200))
                found.append(((one, -1), Pair(CHANGED, left.records[one], right.records[other], lane, apart)))
    return found


def _aligned(left: _Side, a: Sequence[int], right: _Side, b: Sequence[int]) -> list[tuple[int | None, int | None]]:
    """Calls of one kind (model, or the same tool) stand for one another, in their order."""
    out: list[tuple[int | None, int | None]] = []
    kinds_a, kinds_b = [_kind(left.records[n]) for n in a], [_kind(right.records[n]) for n in b]
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, kinds_a, kinds_b, autojunk=False).get_opcodes():
        if tag == "equal":
            out.extend(zip(a[a0:a1], b[b0:b1], strict=True))
        else:
            out.extend((n, None) for n in a[a0:a1])
            out.extend((None, m) for m in b[b0:b1])
    return out


def _kind(record: NodeIoRecord) -> str:
    return f"TOOL {record.tool_name}" if record.node_type is NodeType.TOOL else "MODEL"


_CALL_PARTS = ("tool_call", "tool_call_response")
_TEXTUAL = ("arguments", "content", "response", "outputText", "parameters")
"""Members in which nothing is an id of ours."""


def _renamed(value: Json, names: dict[str, str], within_calls: bool = False) -> Json:
    if isinstance(value, list):
        return [_renamed(item, names, within_calls) for item in value]
    if not isinstance(value, dict):
        return value
    is_call = within_calls or value.get("type") in _CALL_PARTS
    out: dict[str, Json] = {}
    for key, held in value.items():
        if is_call and key == "id" and isinstance(held, str):
            out[key] = names.setdefault(held, f"id#{len(names) + 1}")
        elif key in _TEXTUAL:
            out[key] = held
        else:
            out[key] = _renamed(held, names, key == "toolCalls")
    return out


def _place(record: NodeIoRecord | None) -> dict[str, Json] | None:
    if record is None:
        return None
    return {
        "recordId": record.record_id,
        "nodeId": record.node_id,
        "nodeType": record.node_type.value,
        "name": record.tool_name if record.node_type is NodeType.TOOL else record.model_id,
        "step": record.step,
    }
