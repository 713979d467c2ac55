"""A recorded model call as the result that the program got: from the provider's payload, and from what else was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from otel_agentrec.clients.anthropic import AnthropicWire
from otel_agentrec.clients.chat import ChatWire
from otel_agentrec.clients.responses import ResponsesWire
from otel_agentrec.clients.wire import Wire, call_text
from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentToolCall
from otel_agentrec.records import NodeIoRecord

__all__ = ["chunks_of_events", "chunks_of_result", "result_of_record", "wire_of"]

Json = Any


def result_of_record(record: NodeIoRecord, events: Iterable[Json] = ()) -> AgentModelResult:
    """The whole result that a MODEL record tells of.

    The provider's payload leads; what it lacks comes from the record's own fields. A payload that is only text is the text.

    Args:
        events: the provider's events of a streamed answer, where they were recorded; they become ``chunks``.
    """
    raw = record.outputs
    wire = wire_of(raw)
    base = wire.result(raw) if wire is not None else AgentModelResult()
    text = record.output_text
    if text is None:
        text = base.output_text if base.output_text is not None else raw if isinstance(raw, str) else None
    calls = base.tool_calls or [
        AgentToolCall(str(c.get("name") or ""), c.get("arguments"), c.get("id"))
        for c in record.tool_calls or ()
        if isinstance(c, Mapping)
    ]
    reasoning = record.reasoning_text if record.reasoning_text is not None else base.reasoning_text
    return AgentModelResult(
        output_text=text,
        raw_response=text if raw is None else raw,
        tool_calls=calls,
        reasoning_text=reasoning,
        usage=base.usage or _usage(record),
        finish_reasons=base.finish_reasons or record.finish_reasons,
        memory_items=base.memory_items or _said(raw, text, reasoning, calls),
        chunks=list(chunks_of_events(events)) or None,
    )


def wire_of(payload: Json) -> Wire | None:
    """The API whose answer a payload is, by its looks; None when it is none that is known here."""
    if not isinstance(payload, Mapping):
        return None
    if isinstance(payload.get("choices"), list):
        return ChatWire()
    if isinstance(payload.get("output"), list) and ("status" in payload or payload.get("object") == "response"):
        return ResponsesWire()
    if isinstance(payload.get("content"), list) and (payload.get("type") == "message" or "stop_reason" in payload):
        return AnthropicWire()
    return None


def chunks_of_events(events: Iterable[Json]) -> Iterator[AgentModelChunk]:
    """The pieces that a provider's events brought, as a client tells them to a listener."""
    told = [event for event in events if isinstance(event, Mapping)]
    if not told:
        return
    kinds = {str(event.get("type")) for event in told}
    wire: Wire
    if any(isinstance(event.get("choices"), list) for event in told):
        wire = ChatWire()
    elif any(kind.startswith("response.") for kind in kinds):
        wire = ResponsesWire()
    elif kinds & {"message_start", "content_block_start", "content_block_delta"}:
        wire = AnthropicWire()
    else:
        yield from (AgentModelChunk("event", data=dict(event)) for event in told)
        return
    merging = wire.merging()
    for event in told:
        yield from merging.add(event)


def chunks_of_result(result: AgentModelResult) -> Iterator[AgentModelChunk]:
    """The pieces of an answer: as they came where it was streamed, else one for each thing that it says."""
    if result.chunks is not None:
        yield from result.chunks
        return
    if result.reasoning_text:
        yield AgentModelChunk("reasoning", result.reasoning_text)
    if result.output_text:
        yield AgentModelChunk("text", result.output_text)
    for at, call in enumerate(result.tool_calls):
        arguments = "" if call.arguments is None else call_text(call.arguments)
        yield AgentModelChunk("tool_call", arguments, at, call.name, call.call_id)
    if result.usage:
        yield AgentModelChunk("usage", data=result.usage)
    for reason in result.finish_reasons:
        yield AgentModelChunk("finish", reason)


def _usage(record: NodeIoRecord) -> dict[str, int] | None:
    told = {
        "input_tokens": record.input_tokens,
        "output_tokens": record.output_tokens,
        "cache_read_tokens": record.cache_read_tokens,
        "cache_write_tokens": record.cache_write_tokens,
        "reasoning_tokens": record.reasoning_tokens,
    }
    return {name: count for name, count in told.items() if count is not None} or None


def _said(raw: Json, text: str | None, reasoning: str | None, calls: Iterable[AgentToolCall]) -> list[Json]:
    """The answer as a message of the schema: what was recorded, else made of its parts."""
    if isinstance(raw, list) and raw and all(isinstance(m, Mapping) for m in raw):
        return raw
    parts: list[Json] = []
    if reasoning:
        parts.append({"type": "reasoning", "content": reasoning})
    if text:
        parts.append({"type": "text", "content": text})
    parts.extend({"type": "tool_call", "id": c.call_id, "name": c.name, "arguments": c.arguments} for c in calls)
    return [{"role": "assistant", "parts": parts}] if parts else []
