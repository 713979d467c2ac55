"""Evaluations that instrumentations tell of: the event ``gen_ai.evaluation.result`` of the OTel GenAI conventions.

The event stands on the span of what was judged, or is a log record that names that span.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.records import record_id_of_span

__all__ = ["of_log", "of_span"]

NAME = "gen_ai.evaluation.result"
_KEYS = {
    "name": "gen_ai.evaluation.name",
    "score": "gen_ai.evaluation.score.value",
    "label": "gen_ai.evaluation.score.label",
    "explanation": "gen_ai.evaluation.explanation",
}
_SESSION = "gen_ai.conversation.id"


def of_log(log: LogView) -> StepEvent | None:
    """The EVALUATED event of a log record; None when it is no evaluation, or names no span."""
    if log.event_name != NAME or not log.trace_id or not log.span_id:
        return None
    at = log.ts_ns if log.ts_ns is not None else log.observed_ns
    return _event(log.trace_id, log.span_id, log.attributes, at, log.scope)


def of_span(span: SpanView) -> Iterator[StepEvent]:
    """The EVALUATED events of the events on a span."""
    for event in span.events:
        if event.name == NAME:
            made = _event(span.trace_id, span.span_id, event.attributes, event.ts_ns or None, span.scope)
            if made is not None:
                yield made


def _event(trace: str, span: str, attributes: Mapping[str, Any], at: int | None, scope: str) -> StepEvent | None:
    name = attributes.get(_KEYS["name"])
    if not isinstance(name, str) or not name:
        return None
    payload: dict[str, Any] = {"recordId": record_id_of_span(trace, span), "name": name}
    for key in ("score", "explanation"):
        if attributes.get(_KEYS[key]) is not None:
            payload[key] = attributes[_KEYS[key]]
    label = attributes.get(_KEYS["label"])
    if label is not None:
        payload["label"] = label if isinstance(label, str) else str(label)
    if at is not None:
        payload["observedAt"] = str(at)
    rest = {key: value for key, value in attributes.items() if key not in _KEYS.values()}
    if rest:
        payload["attributes"] = rest
    session = attributes.get(_SESSION)
    return StepEvent(
        "EVALUATED",
        payload,
        session=session if isinstance(session, str) else None,
        trace={"traceId": trace, "spanId": span},
        scope=scope or None,
    )
