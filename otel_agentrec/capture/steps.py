"""Spans and their facts -> journal events. Pure; shared by live capture and ingest, so that both write the same events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from otel_agentrec.capture.attempts import Attempts
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind

__all__ = ["StepEvent", "amended_event", "ended_event", "header_of", "log_event", "started_event", "take_attempts"]

Json = Any


@dataclass(slots=True)
class StepEvent:
    """An event ready for the writer: its type, its payload, and the envelope as far as the span itself tells it.

    ``scope`` is not written: it keeps the lists of two instrumentations apart that report the same conversation.
    """

    type: str
    payload: dict[str, Any]
    run: str | None = None
    session: str | None = None
    turn: str | None = None
    step: int | None = None
    trace: dict[str, Any] = field(default_factory=dict)
    scope: str | None = None


def started_event(
    span: SpanView, kind: str | None, facts: Facts, path: Sequence[str] = (), outermost: bool = True
) -> StepEvent:
    """The event of a step that begins.

    Args:
        kind: None while the span does not tell whether it is a model or a tool call.
        path: span ids of the open agent steps around it, nearest first.
        outermost: for an AGENT, whether no other agent is around it.
    """
    payload: dict[str, Any] = {"name": span.name, "startedAt": str(span.start_ns), "facts": facts.payload()}
    if span.scope:
        payload["scope"] = span.scope
    return _event(_type(kind, facts, payload, outermost, "STARTED"), payload, span, facts, path)


def ended_event(
    span: SpanView,
    kind: str,
    facts: Facts,
    path: Sequence[str] = (),
    outermost: bool = True,
    *,
    header: int | None = None,
    provider: int | None = None,
    via: Sequence[str] = (),
) -> StepEvent:
    """The event of a step that ended; its arguments are those of :func:`started_event`, and

    Args:
        header: seq of the REQUEST_HEADER that holds :func:`header_of` these facts.
        provider: seq of the PROVIDER_SEEN of the span's resource.
        via: span ids of foreign client spans below it.
    """
    payload: dict[str, Any] = {"name": span.name, "facts": facts.payload()}
    if span.start_ns:
        payload["startedAt"] = str(span.start_ns)
    if span.scope:
        payload["scope"] = span.scope
    if span.end_ns is not None:
        payload["endedAt"] = str(span.end_ns)
    if header is not None:
        payload["header"] = header
    if provider is not None:
        payload["provider"] = provider
    type_ = _type(kind, facts, payload, outermost, "ENDED")
    if type_ == "NODE_RECORDED" and via:
        payload["via"] = list(via)
    return _event(type_, payload, span, facts, path)


def amended_event(span: SpanView, facts: Facts, *, header: int | None = None) -> StepEvent:
    """The event of facts that came after the end of a span, or without anything that tells what the span is."""
    payload: dict[str, Any] = {"spanId": span.span_id or None, "facts": facts.payload(), "header": header}
    kept = {key: value for key, value in payload.items() if value is not None}
    return _event("NODE_AMENDED", kept, span, facts, ())


def header_of(facts: Facts) -> dict[str, Any] | None:
    """The payload of the REQUEST_HEADER for these facts: what stays the same from call to call. None when there is none."""
    held = {"instructions": facts.system_instructions, "tools": facts.tools, "parameters": facts.parameters}
    return {key: value for key, value in held.items() if value is not None and value != {}} or None


def take_attempts(facts: Facts, attempts: Attempts) -> None:
    """Put what HTTP spans below a call tell of retries into its facts. The larger count wins; a 0 is not stated."""
    if attempts.retries:
        facts.retries = attempts.retries
    if attempts.retry_count > (facts.retry_count or 0):
        facts.retry_count = attempts.retry_count


def log_event(log: LogView, facts: Facts | None = None, *, header: int | None = None) -> StepEvent:
    """The event of a log record that no span's facts were made of.

    Args:
        facts: what the record tells of a model call by itself, in place of its body and attributes.
        header: seq of the REQUEST_HEADER that holds :func:`header_of` these facts.
    """
    at = log.observed_ns if log.observed_ns is not None else log.ts_ns
    payload = {
        "name": log.event_name,
        "scope": log.scope or None,
        "observedAt": None if at is None else str(at),
        "facts": facts.payload() if facts is not None else None,
        "header": header,
        "body": log.body if facts is None else None,
        "attributes": (dict(log.attributes) or None) if facts is None else None,
    }
    session = log.attributes.get("gen_ai.conversation.id")
    event = StepEvent("LOG_RECORDED", {key: value for key, value in payload.items() if value is not None})
    event.session = session if isinstance(session, str) else None
    event.trace = {k: v for k, v in (("traceId", log.trace_id), ("spanId", log.span_id)) if v is not None}
    event.scope = log.scope or None
    return event


def _type(kind: str | None, facts: Facts, payload: dict[str, Any], outermost: bool, phase: str) -> str:
    """The event type; puts ``type`` or ``kind`` into the payload as that type wants it."""
    if kind == Kind.AGENT:
        return f"{'RUN' if outermost else 'HANDOFF'}_{phase}"
    if kind == Kind.STEP:
        payload["kind"] = facts.operation or "step"
        return f"STEP_{phase}"
    payload["type"] = kind
    return "NODE_STARTED" if phase == "STARTED" else "NODE_RECORDED"


def _event(type_: str, payload: dict[str, Any], span: SpanView, facts: Facts, path: Sequence[str]) -> StepEvent:
    trace: dict[str, Any] = {"traceId": span.trace_id, "spanId": span.span_id} if span.trace_id else {}
    if span.parent_span_id is not None:
        trace["parentSpanId"] = span.parent_span_id
    if path:
        trace["path"] = list(path)
    return StepEvent(
        type_, payload, facts.run_id, facts.session_id, facts.turn_id, facts.step, trace, span.scope or None
    )
