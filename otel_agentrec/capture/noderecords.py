"""Files of node records, as ai4j's ``JsonlIoCaptureSink`` and ours write them: each line becomes one event that gives it back.

Ids, times, tokens, texts and outputs read as they stand in the line. Of a line of ai4j, the prompt is brought to the message
schema, as everywhere, and what its raw answer tells beyond ai4j's fields is added.
"""

from __future__ import annotations

import dataclasses
import hashlib
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from otel_agentrec.capture.dialects.messages import calls_of
from otel_agentrec.capture.jsonlines import Line
from otel_agentrec.capture.payloads import facts_of_answer
from otel_agentrec.capture.prompts import prompt_of
from otel_agentrec.capture.steps import StepEvent, header_of
from otel_agentrec.journal.facts import Facts
from otel_agentrec.nodes.given import CONTENT, MODEL_INPUTS, TOOL_INPUTS, fault_of, said
from otel_agentrec.nodes.text import calls_in, parsed
from otel_agentrec.records import RECORD_NAMESPACE, NodeIoRecord, NodeType, camel, node_id

__all__ = ["DIALECT", "NotARecord", "Told", "events_of", "record_of"]

Json = Any

DIALECT = "ai4j"
"""``dialect`` of records that do not name theirs."""

_SAME = frozenset(
    [
        "operation",
        "provider",
        "responseModel",
        "responseId",
        "inputTokens",
        "outputTokens",
        "cacheReadTokens",
        "cacheWriteTokens",
        "reasoningTokens",
        "otherTokens",
        "streamed",
        "toolName",
        "toolCallId",
        "agentName",
        "userId",
    ]
)
"""Fields that are facts of the same name."""
_NOT_GIVEN = {*CONTENT, "nodeType", "journal", "evaluations"}


class NotARecord(ValueError):
    """A line is no node record; the message says why."""


def record_of(line: Line) -> NodeIoRecord:
    """The record of a line. As in ai4j an unknown ``nodeType`` reads as MODEL.

    Raises:
        NotARecord: it is none.
    """
    if line.value is None:
        raise NotARecord(line.fault)
    data = line.value
    if "nodeType" not in data or not ({"nodeId", "recordId"} & data.keys()):
        raise NotARecord("no node record: it needs nodeType, and nodeId or recordId")
    for key, value in data.items():
        fault = fault_of(key, value) if value is not None else None
        if fault is not None:
            raise NotARecord(f"no node record: {fault}")
    # null stands for what is absent
    record = NodeIoRecord.from_json({key: v for key, v in data.items() if v is not None and key != "journal"})
    record = _with_ids(record, line.raw)
    return _in_our_shape(record) if "status" in data else _of_ai4j(record, data)


def _with_ids(record: NodeIoRecord, raw: bytes) -> NodeIoRecord:
    values: dict[str, Json] = {}
    if not record.record_id:
        values["record_id"] = str(uuid.uuid5(RECORD_NAMESPACE, hashlib.sha256(raw).hexdigest()))
    if not record.node_id:
        call = record.tool_call_id, record.tool_name
        values["node_id"] = node_id(record.node_type, record.run_id, record.turn_id, record.step, *call)
    return dataclasses.replace(record, **values)


def _in_our_shape(record: NodeIoRecord) -> NodeIoRecord:
    wanted = MODEL_INPUTS if record.node_type is NodeType.MODEL else TOOL_INPUTS
    if isinstance(record.inputs, dict) and record.inputs.keys() == wanted:
        return record
    told = _of_model(record) if record.node_type is NodeType.MODEL else _of_tool(record)
    return dataclasses.replace(record, inputs=told["inputs"])


# --- ai4j ---------------------------------------------------------------------------------------------------------------


def _of_ai4j(record: NodeIoRecord, data: Mapping[str, Json]) -> NodeIoRecord:
    told = _of_tool(record) if record.node_type is NodeType.TOOL else _of_model(record)
    absent = {name: v for name, v in told.items() if name == "inputs" or data.get(camel(name)) is None}
    return dataclasses.replace(record, dialect=DIALECT, **absent)


def _of_model(record: NodeIoRecord) -> dict[str, Json]:
    """``inputs`` is an AgentPrompt: ``{model, items, systemPrompt, instructions, tools, …}``; ``outputs`` the raw answer."""
    told: dict[str, Json] = {}
    if not (isinstance(record.inputs, dict) and record.inputs.keys() == MODEL_INPUTS):
        prompt = prompt_of(record.inputs, record.model_id)
        facts = prompt.facts()
        told["inputs"] = {
            "model": record.model_id or prompt.model,
            "messages": facts["messages"] if record.inputs is not None else None,
            "systemInstructions": facts["system_instructions"],
            "tools": facts["tools"],
            "parameters": facts["parameters"],
        }
        told["streamed"] = prompt.stream
    answer = facts_of_answer(record.outputs)
    answered = answer.get("output_messages")
    if answered:
        told["tool_calls"] = calls_in(answered)
    told["finish_reasons"] = answer.get("finish_reasons") or []
    for name in ("response_id", "response_model", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"):
        told[name] = answer.get(name)
    return told


def _of_tool(record: NodeIoRecord) -> dict[str, Json]:
    """``inputs`` is an AgentToolCall: ``{name, arguments: JSON text, callId}``; ``outputs`` an AgentToolResult: ``{name,
    callId, output, trace, ok, error}``."""
    call = record.inputs if isinstance(record.inputs, dict) else {}
    result = record.outputs if isinstance(record.outputs, dict) else {}
    name, call_id = (_text(call.get(key)) or _text(result.get(key)) for key in ("name", "callId"))
    arguments = parsed(call.get("arguments")) if isinstance(record.inputs, (dict, type(None))) else record.inputs
    further = {key: value for key, value in call.items() if key not in TOOL_INPUTS and value is not None}
    told: dict[str, Json] = {
        "tool_name": name,
        "tool_call_id": call_id,
        "inputs": {"name": name, "arguments": arguments, "callId": call_id},
        "attributes": further or None,
    }
    failure, output = _text(result.get("error")), _text(result.get("output"))
    if output is None:
        output = _text(record.outputs)
    if result.get("ok") is False or (failure and failure.strip()) or (output or "").startswith("TOOL_ERROR"):
        told.update(status="error", error={"type": "tool_error", "message": failure or output})
    return told


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


# --- events -------------------------------------------------------------------------------------------------------------


class Told:
    """The NODE_RECORDED event of a record: ``event``, still without its header, and the ``facts`` that tell the header."""

    def __init__(self, record: NodeIoRecord) -> None:
        self.facts = facts = _facts(record)
        data, kind = record.to_json(), record.node_type.value
        given = {key: v for key, v in data.items() if key not in _NOT_GIVEN and v is not None and v != [] and v != {}}
        for key in ("copiesSeen", "retryCount"):
            if given[key] == (1 if key == "copiesSeen" else 0):
                del given[key]
        payload = facts.payload()
        back = said(kind, payload, header_of(facts) or {})
        content = {key: data[key] for key in CONTENT if not _equal(back[key], data[key])}
        if content:
            given["content"] = content
        told = {
            "type": kind,
            "name": record.model_id or record.tool_name or kind.lower(),
            "scope": DIALECT,
            "facts": payload,
        }
        for key, at in (("startedAt", record.started_at_epoch_ms), ("endedAt", record.captured_at_epoch_ms)):
            if at is not None:
                told[key] = str(at * 1_000_000)
        self.event = StepEvent(
            "NODE_RECORDED",
            {**told, "given": given},
            record.run_id,
            record.session_id,
            record.turn_id,
            record.step,
            scope=DIALECT,
        )


def events_of(record: NodeIoRecord) -> Iterator[StepEvent]:
    """The judgements that a record holds, as events of their own."""
    for judged in record.evaluations:
        at, name = judged.get("evaluatedAtEpochMs"), judged.get("name")
        if not isinstance(name, str) or not name:
            continue
        payload = {
            "recordId": record.record_id,
            "name": name,
            "score": judged.get("score"),
            "label": _text(judged.get("label")),
            "explanation": judged.get("explanation"),
            "observedAt": str(at * 1_000_000) if type(at) is int else None,
        }
        kept = {key: value for key, value in payload.items() if value is not None}
        yield StepEvent("EVALUATED", kept, session=record.session_id, scope=DIALECT)


def _facts(record: NodeIoRecord) -> Facts:
    data = record.to_json()
    facts = Facts(dialect=record.dialect, model=record.model_id, retry_count=record.retry_count or None)
    for field in dataclasses.fields(Facts):
        if camel(field.name) in _SAME:
            setattr(facts, field.name, data[camel(field.name)])
    facts.finish_reasons = record.finish_reasons or None
    facts.retries = record.retries or None
    facts.status = record.status if record.status != "interrupted" else None
    facts.attributes = record.attributes
    error = record.error or {}
    facts.error_type, facts.error_message = _text(error.get("type")), _text(error.get("message"))
    inputs = record.inputs if isinstance(record.inputs, dict) else {}
    facts.output_text, facts.reasoning_text = record.output_text, record.reasoning_text
    if record.node_type is NodeType.TOOL:
        if inputs.keys() == TOOL_INPUTS:
            facts.arguments = inputs["arguments"]
        facts.result = record.outputs
        return facts
    if inputs.keys() == MODEL_INPUTS:
        if isinstance(inputs["messages"], list):
            facts.messages = inputs["messages"]
        if isinstance(inputs["systemInstructions"], list):
            facts.system_instructions = inputs["systemInstructions"]
        if isinstance(inputs["tools"], list):
            facts.tools = inputs["tools"]
        if isinstance(inputs["parameters"], dict):
            facts.parameters = inputs["parameters"]
    calls = record.tool_calls
    facts.calls = None if calls is None else [{"id": _text(c.get("id")), "name": _text(c.get("name"))} for c in calls]
    if _are_messages(record.outputs) and _tells(record):
        facts.output_messages, facts.output_text, facts.reasoning_text = record.outputs, None, None
        facts.calls = calls_of(record.outputs) or None
    else:
        facts.output_raw = record.outputs
    return facts


def _are_messages(outputs: Json) -> bool:
    return (
        isinstance(outputs, list)
        and bool(outputs)
        and all(isinstance(m, dict) and isinstance(m.get("parts"), list) for m in outputs)
    )


def _tells(record: NodeIoRecord) -> bool:
    """Do the messages tell all that the record says of the answer?"""
    back = said("MODEL", {"outputMessages": record.outputs}, {})
    told = (back["outputText"], back["reasoningText"], back["toolCalls"])
    return _equal(told, (record.output_text, record.reasoning_text, record.tool_calls))


def _equal(a: Json, b: Json) -> bool:
    """Equal as JSON: 1 is 1.0, but true is not 1."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return bool(a == b)
