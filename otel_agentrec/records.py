"""The shared data: one record per model call or tool call, and the protocol of what receives them.

``NodeIoRecord`` is the record of ai4j with its field names in camelCase on disk and snake_case in Python, and what real
telemetry adds beyond it. Everything that is absent is ``None``; a real 0 stays 0.
"""

from __future__ import annotations

import dataclasses
import re
import uuid
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable

__all__ = [
    "RECORD_NAMESPACE",
    "IoCaptureSink",
    "JournalRef",
    "NodeIoRecord",
    "NodeType",
    "camel",
    "node_id",
    "record_id_of_span",
]

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""


RECORD_NAMESPACE = uuid.UUID("6b1f8c2e-0f5d-5a57-9a4e-3f0d8e6f7a10")
"""Namespace of all record ids that are not given: UUIDv5 of ``<traceId>/<spanId>`` in it."""

_MADE = "(made of the other fields)"


def record_id_of_span(trace: str, span: str) -> str:
    """The id of the record that a span gives, by its ids in hex."""
    return str(uuid.uuid5(RECORD_NAMESPACE, f"{trace}/{span}" if trace else span))


class NodeType(str, Enum):
    """What kind of step a record describes."""

    MODEL = "MODEL"
    TOOL = "TOOL"


@dataclass(frozen=True, slots=True)
class JournalRef:
    """Where a record stands in the journal: stream name, sequence number, and the hash of that line (64 hex)."""

    stream: str
    seq: int
    hash: str

    def to_json(self) -> dict[str, Json]:
        return {"stream": self.stream, "seq": self.seq, "hash": self.hash}


def node_id(
    node_type: NodeType,
    run_id: str | None,
    turn_id: str | None,
    step: int | None,
    call_id: str | None = None,
    tool_name: str | None = None,
) -> str:
    """The node id, as ai4j has it: ``model@<run>|<turn>|<step>`` or ``tool@<run>|<turn>|<step>|<callId, toolName or anon>``.

    Absent ids print empty; an absent step prints ``null``.
    """
    step_key = f"{run_id or ''}|{turn_id or ''}|{'null' if step is None else step}"
    if node_type is NodeType.MODEL:
        return f"model@{step_key}"
    return f"tool@{step_key}|{call_id or tool_name or 'anon'}"


@dataclass(frozen=True, slots=True)
class NodeIoRecord:
    """The complete input and output of one model call or one tool call.

    Times are milliseconds since the epoch. Tokens are what the convention of the telemetry calls input and output:
    ``input_tokens`` includes cached ones, ``output_tokens`` includes reasoning where the provider says so.

    ``inputs`` of a MODEL is ``{model, messages, systemInstructions, tools, parameters}`` in the message schema of the
    OTel GenAI semantic conventions; of a TOOL ``{name, arguments, callId}``. In a record that a person makes they may be the
    objects themselves (``AgentPrompt``, ``AgentToolCall``). ``outputs`` of a MODEL is the provider's raw
    payload where it is known, else the normalised output messages; of a TOOL the result, parsed when it is JSON.

    Not given, ``record_id`` is made of the span's ids, or random without a span; ``node_id`` of run, turn, step and call.
    """

    record_id: str = _MADE
    node_type: NodeType = NodeType.MODEL
    node_id: str = _MADE
    run_id: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    step: int | None = None
    model_id: str | None = None
    inputs: Json = None
    output_text: str | None = None
    outputs: Json = None
    started_at_epoch_ms: int | None = None
    captured_at_epoch_ms: int | None = None
    duration_ms: int | None = None
    reasoning_text: str | None = None
    retry_count: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    # beyond ai4j
    provider: str | None = None
    operation: str | None = None
    status: str = "ok"
    """``ok``, ``error``, ``interrupted`` (no output is known) or ``partial`` (some output is known)."""
    error: dict[str, Json] | None = None
    """``{type, message}`` of a failed call."""
    response_model: str | None = None
    response_id: str | None = None
    finish_reasons: list[str] = field(default_factory=list)
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    other_tokens: dict[str, int] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_calls: list[dict[str, Json]] | None = None
    """Calls that a model asked for: ``[{id, name, arguments}]``; ``None`` when the telemetry does not tell."""
    agent_name: str | None = None
    user_id: str | None = None
    dialect: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    merged_span_ids: list[str] = field(default_factory=list)
    copies_seen: int = 1
    keys: dict[str, str] = field(default_factory=dict)
    journal: JournalRef | None = None
    streamed: bool | None = None
    retries: list[dict[str, Json]] = field(default_factory=list)
    wire_ids: list[str] = field(default_factory=list)
    wire: dict[str, Json] | None = None
    """Of the last attempt on the wire: ``{rung, requestBytes, responseBytes, end, complete, flags}``."""
    answered_from: dict[str, Json] | None = None
    flags: list[str] = field(default_factory=list)
    attributes: dict[str, Json] | None = None
    """What the span said beyond the facts above, as it said it."""
    evaluations: list[dict[str, Json]] = field(default_factory=list)
    """Judgements of this call, the oldest first: ``[{name, score, label, explanation, evaluatedAtEpochMs}]``."""

    def __post_init__(self) -> None:
        if self.record_id is _MADE:
            made = record_id_of_span(self.trace_id or "", self.span_id) if self.span_id else str(uuid.uuid4())
            object.__setattr__(self, "record_id", made)
        if self.node_id is _MADE:
            where = (self.run_id, self.turn_id, self.step, self.tool_call_id, self.tool_name)
            object.__setattr__(self, "node_id", node_id(self.node_type, *where))

    def to_json(self) -> dict[str, Json]:
        """The record with camelCase keys, ready for JSON. Every field is present; absent is ``None``."""
        out: dict[str, Json] = {}
        for name, key in _KEYS:
            value = getattr(self, name)
            if isinstance(value, NodeType):
                value = value.value
            elif hasattr(
                value, "to_json"
            ):  # its place in the journal; an AgentPrompt, AgentToolCall or AgentToolResult
                value = value.to_json()
            out[key] = value
        return out

    @classmethod
    def from_json(cls, data: dict[str, Json]) -> NodeIoRecord:
        """The record of a dict as :meth:`to_json` gives it; unknown keys are ignored, absent ones take their default.

        As in ai4j, an unknown ``nodeType`` reads as MODEL, an absent ``recordId`` as an empty string,
        and ``durationMs`` is computed from the two times when it is absent.
        """
        values: dict[str, Any] = {}
        for name, key in _KEYS:
            if key in data:
                values[name] = data[key]
        kind = values.get("node_type")
        values["node_type"] = NodeType.TOOL if kind == "TOOL" else NodeType.MODEL
        values.setdefault("record_id", "")
        values.setdefault("node_id", "")
        if isinstance(values.get("journal"), dict):
            values["journal"] = JournalRef(**values["journal"])
        for name, default in _LISTS.items():
            if values.get(name, default) is None:
                values.pop(name)
        if values.get("duration_ms") is None:
            start, end = values.get("started_at_epoch_ms"), values.get("captured_at_epoch_ms")
            values["duration_ms"] = max(0, end - start) if start and end else None
        return cls(**values)


def camel(name: str) -> str:
    """``snake_case`` to ``camelCase``."""
    return re.sub(r"_([a-z])", lambda m: m.group(1).upper(), name)


_KEYS: list[tuple[str, str]] = [(f.name, camel(f.name)) for f in dataclasses.fields(NodeIoRecord)]
_LISTS: dict[str, Any] = {
    f.name: f.default_factory()
    for f in dataclasses.fields(NodeIoRecord)
    if f.default_factory is not dataclasses.MISSING
}


@runtime_checkable
class IoCaptureSink(Protocol):
    """What receives node records. A sink may raise: the recorder counts it and goes on."""

    def capture(self, record: NodeIoRecord) -> None:
        """Take one record. Called again with the same ``record_id`` when a later span was merged into it."""
        ...

    def close(self) -> None: ...
