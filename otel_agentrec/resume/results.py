"""What may be handed out as an answer: whole, not failed, not changed by anything."""

from __future__ import annotations

from typing import Any

from otel_agentrec.nodes.whole import lost_in
from otel_agentrec.prompts import AgentToolResult
from otel_agentrec.records import NodeIoRecord, NodeType

__all__ = ["LENGTH_CUT", "is_error_like", "is_length_cut", "lost_answer", "output_of_record", "unfit"]

LENGTH_CUT = frozenset({"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete", "model_length"})
"""Finish reasons of an answer that was cut for its length."""
_CUT_FLAGS = frozenset({"attributes_dropped", "input_truncated", "output_truncated", "conflict", "probable_reexport"})


def unfit(record: NodeIoRecord) -> str | None:
    """Why a record must not be handed out as an answer: it tells of no whole one. None: it may be."""
    if record.answered_from is not None:
        return "answered from a recording itself"
    if record.status != "ok" or record.error is not None:
        return f"its status is {record.status}" if record.status != "ok" else "it has an error"
    if record.node_type is NodeType.MODEL and record.streamed and is_length_cut(record.finish_reasons):
        return "its stream was cut for its length"
    return lost_answer(record)


def lost_answer(record: NodeIoRecord) -> str | None:
    """Why the answer of a call that ended can't be handed out: it was not recorded whole. None: it can."""
    cut = _CUT_FLAGS.intersection(record.flags)
    if cut:
        return f"it is flagged {', '.join(sorted(cut))}"
    if record.node_type is NodeType.TOOL and record.outputs is None:
        return "no result was recorded"
    if record.outputs is None and record.output_text is None and not record.tool_calls:
        return "no answer was recorded"
    lost = lost_in([record.outputs, record.output_text, record.tool_calls])
    return f"something in its answer is {lost}" if lost else None


def output_of_record(record: NodeIoRecord) -> Any:
    """What the tool of a TOOL record gave; of a whole ``AgentToolResult`` its output."""
    whole = AgentToolResult.held_in(record.outputs, record.tool_name)
    return record.outputs if whole is None else whole.output


def is_length_cut(finish_reasons: object) -> bool:
    return isinstance(finish_reasons, (list, tuple)) and any(reason in LENGTH_CUT for reason in finish_reasons)


def is_error_like(value: Any) -> bool:
    """Whether what was returned tells of a failure in words, or is a piece of a stream: not to be kept as an answer."""
    failed = getattr(value, "failed", None)
    if isinstance(failed, bool):
        return failed
    if isinstance(value, str):
        return value.startswith("TOOL_ERROR")
    if getattr(value, "chunks", None) is None:
        return False
    reasons, raw = getattr(value, "finish_reasons", None), getattr(value, "raw_response", None)
    if not reasons:  # every provider tells why an answer ended; a client of one's own may not
        return isinstance(raw, dict)
    return is_length_cut(reasons)
