"""What Jaeger answers and its UI saves -> views. Spans only: Jaeger keeps no log records.

``/api/v3/traces`` answers OTLP/JSON in an envelope ``{"result": …}``; ``/api/traces`` has a form of its own. A span there has
``tags`` in place of attributes, times in microseconds, its process in a table of the trace. What OTLP says in fields of its own
(kind, status, scope) stands among the tags under the names that Jaeger's translation gives them.
"""

from __future__ import annotations

from typing import Any

from otel_agentrec.capture import otlp_json
from otel_agentrec.capture.batches import Batch
from otel_agentrec.capture.dialects.values import spelled
from otel_agentrec.capture.otlp_json import hex_id, integer
from otel_agentrec.capture.spans import EMPTY, SpanEvent, SpanView

__all__ = ["decode"]

Json = Any
_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_CODES = {"OK": 1, "ERROR": 2}
"""``otel.status_code``."""
_MICROSECOND = 1000


def decode(document: Json) -> Batch | None:
    """The views in a parsed answer of Jaeger; None when it is no such answer."""
    if not isinstance(document, dict):
        return None
    result = document.get("result")
    if isinstance(result, (dict, list)) and len(document) == 1:
        return otlp_json.decode(result)
    traces = _traces(document)
    if traces is None:
        return None
    batch = Batch()
    for trace in traces:
        processes = _dict(_dict(trace).get("processes"))
        spans = _dict(trace).get("spans")
        for span in spans if isinstance(spans, list) else ():
            view = _span(span, processes) if isinstance(span, dict) else None
            if view is None:
                batch.faults.append("a span without a readable id")
            else:
                batch.spans.append(view)
    return batch


def _traces(document: dict[str, Json]) -> list[Json] | None:
    data = document.get("data")
    if isinstance(data, list) and all(isinstance(_dict(trace).get("spans"), list) for trace in data):
        return data
    return [document] if "traceID" in document and isinstance(document.get("spans"), list) else None


def _span(span: dict[str, Json], processes: dict[str, Json]) -> SpanView | None:
    # ids of 64 bits come without the zeros before them
    trace_id, span_id = hex_id(_filled(span.get("traceID"), 32), 16), hex_id(_filled(span.get("spanID"), 16), 8)
    if trace_id is None or span_id is None:
        return None
    attributes = _tags(span.get("tags"))
    process = _dict(span.get("process")) or _dict(processes.get(str(span.get("processID"))))
    resource = _tags(process.get("tags"))
    if isinstance(process.get("serviceName"), str):
        resource.setdefault("service.name", process["serviceName"])
    start = (integer(span.get("startTime")) or 0) * _MICROSECOND
    took = (integer(span.get("duration")) or 0) * _MICROSECOND
    scope = attributes.pop("otel.scope.name", None) or attributes.pop("otel.library.name", None) or ""
    version = attributes.pop("otel.scope.version", None) or attributes.pop("otel.library.version", None)
    message = attributes.pop("otel.status_description", None)
    code = _CODES.get(str(attributes.pop("otel.status_code", "")), 0)
    if attributes.pop("error", None) is True:
        code = 2
    return SpanView(
        trace_id,
        span_id,
        _parent(span, trace_id),
        _text(span.get("operationName")),
        _KINDS.get(str(attributes.pop("span.kind", "")), 0),
        _text(scope),
        _text(version) or None,
        start,
        start + took,
        attributes,
        tuple(_events(span.get("logs"))),
        (),
        code,
        _text(message) or None,
        resource or EMPTY,
    )


def _parent(span: dict[str, Json], trace_id: str) -> str | None:
    references = span.get("references")
    for reference in references if isinstance(references, list) else ():
        told = _dict(reference)
        if told.get("refType") == "CHILD_OF" and hex_id(_filled(told.get("traceID"), 32), 16) in (trace_id, None):
            return hex_id(_filled(told.get("spanID"), 16), 8)
    return hex_id(_filled(span.get("parentSpanID"), 16), 8)


def _events(logs: Json) -> list[SpanEvent]:
    out = []
    for log in logs if isinstance(logs, list) else ():
        if isinstance(log, dict):
            fields = _tags(log.get("fields"))
            at = (integer(log.get("timestamp")) or 0) * _MICROSECOND
            out.append(SpanEvent(_text(fields.pop("event", "")), at, fields))
    return out


def _tags(tags: Json) -> dict[str, Any]:
    """Tags as attributes; integers may come as text, in which no digit is lost on the way through a browser."""
    out: dict[str, Any] = {}
    for tag in tags if isinstance(tags, list) else ():
        if not isinstance(tag, dict) or not isinstance(tag.get("key"), str):
            continue
        value = tag.get("value")
        if tag.get("type") == "int64":
            found = integer(value)
            value = value if found is None else found
        out[tag["key"]] = value
    return out


def _filled(value: Json, width: int) -> Json:
    return value.rjust(width, "0") if isinstance(value, str) and value else value


def _text(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else spelled(value)


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
