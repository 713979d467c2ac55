"""Frozen views of spans and log records, the one form in which dialects see telemetry.

A view is made from an SDK object (live) or from OTLP (``otlp_json``, ``otlp_protobuf``); dialects can't tell which. Ids are
lower-case hex, times are integer nanoseconds since the epoch, enums are the numbers of OTLP.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

__all__ = [
    "CLIENT",
    "ERROR",
    "NOTHING_DROPPED",
    "DroppedCounts",
    "LogView",
    "SpanEvent",
    "SpanView",
    "from_sdk",
    "from_sdk_log",
]

CLIENT = 3
"""OTLP's SPAN_KIND_CLIENT (INTERNAL is 1, SERVER 2, PRODUCER 4, CONSUMER 5)."""
OK = 1
ERROR = 2
"""OTLP's STATUS_CODE_ERROR (UNSET is 0)."""

EMPTY: Mapping[str, Any] = MappingProxyType({})


class DroppedCounts(NamedTuple):
    """How much the SDK threw away of a span because of its limits."""

    attributes: int = 0
    events: int = 0
    links: int = 0


NOTHING_DROPPED = DroppedCounts()


class SpanEvent(NamedTuple):
    """An event on a span; ``ts_ns`` is 0 when the telemetry gives no time."""

    name: str
    ts_ns: int
    attributes: Mapping[str, Any]


class SpanView(NamedTuple):
    """One span. ``end_ns`` is None while it is open; ``links`` are ``(trace_id, span_id)`` pairs.

    ``attributes`` and ``resource`` may still be shared with the application: read them, keep nothing of them.
    """

    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    kind: int = 0
    scope: str = ""
    scope_version: str | None = None
    start_ns: int = 0
    end_ns: int | None = None
    attributes: Mapping[str, Any] = EMPTY
    events: Sequence[SpanEvent] = ()
    links: Sequence[tuple[str, str]] = ()
    status_code: int = 0
    status_message: str | None = None
    resource: Mapping[str, Any] = EMPTY
    dropped: DroppedCounts = NOTHING_DROPPED


class LogView(NamedTuple):
    """One log record. Ids are None when it belongs to no span; a time that is not given is None."""

    trace_id: str | None
    span_id: str | None
    event_name: str
    observed_ns: int | None = None
    ts_ns: int | None = None
    scope: str = ""
    body: Any = None
    attributes: Mapping[str, Any] = EMPTY
    resource: Mapping[str, Any] = EMPTY


def from_sdk(span: ReadableSpan) -> SpanView:
    """The view of an SDK span, open or ended. Total: what can't be read of an odd span is left empty.

    Costs a few microseconds: nested attribute values are shared, not copied.
    """
    try:
        name, start, end, events, links = span.name, span.start_time, span.end_time, span.events, span.links
        if type(name) is not str or type(start) is not int or (end is not None and type(end) is not int):
            return _from_odd_span(span)  # the SDK takes what it is given: names and times of any type
        context, parent, scope, status = span.context, span.parent, span.instrumentation_scope, span.status
        attributes, lost_attributes = _attributes(span._attributes)
        lost_events, lost_links = span.dropped_events, span.dropped_links
        return SpanView(
            f"{context.trace_id:032x}",
            f"{context.span_id:016x}",
            f"{parent.span_id:016x}" if parent is not None and parent.span_id else None,
            name,
            span.kind.value + 1,  # the SDK counts from INTERNAL = 0
            scope.name if scope is not None else "",
            scope.version if scope is not None else None,
            start,
            end,
            attributes,
            tuple([SpanEvent(e.name, e.timestamp, e.attributes or EMPTY) for e in events]) if events else (),
            tuple([(f"{k.context.trace_id:032x}", f"{k.context.span_id:016x}") for k in links]) if links else (),
            status.status_code.value,
            status.description,
            span.resource.attributes,
            DroppedCounts(lost_attributes, lost_events, lost_links)
            if lost_attributes or lost_events or lost_links
            else NOTHING_DROPPED,
        )
    except Exception:
        return _from_odd_span(span)


def from_sdk_log(data: Any) -> LogView:
    """The view of what a log processor is given (``ReadWriteLogRecord``, or anything with a ``log_record``). Total."""
    record = _get(data, "log_record", data)
    attributes, _ = _odd_attributes(_get(record, "attributes"))
    trace_id, span_id = _get(record, "trace_id"), _get(record, "span_id")
    name = _get(record, "event_name") or attributes.get("event.name") or ""
    return LogView(
        trace_id=f"{trace_id:032x}" if isinstance(trace_id, int) and trace_id else None,
        span_id=f"{span_id:016x}" if isinstance(span_id, int) and span_id else None,
        event_name=_text(name),
        observed_ns=_int(_get(record, "observed_timestamp")),
        ts_ns=_int(_get(record, "timestamp")),
        scope=_text(_get(_get(data, "instrumentation_scope"), "name")),
        body=_get(record, "body"),
        attributes=attributes,
        resource=_mapping(_get(_get(data, "resource"), "attributes")),
    )


def _attributes(held: Any) -> tuple[dict[str, Any], int]:
    """A flat copy of a span's attributes, and how many the SDK dropped.

    The SDK's own mapping locks and calls back for each key; its inner dict is copied in one step that no other thread can
    interrupt. Where a later SDK has no such dict, the public way is taken.
    """
    inner = getattr(held, "_dict", None)
    if type(inner) is dict:
        return inner.copy(), held.dropped
    if not held:
        return {}, 0
    return {_text(key): value for key, value in dict(held).items()}, 0


def _odd_attributes(held: Any) -> tuple[dict[str, Any], int]:
    try:
        return _attributes(held)
    except Exception:
        return {}, 0


def _from_odd_span(span: Any) -> SpanView:
    """Field by field, for objects that are no proper SDK spans (hand-made ones, subclasses with gaps)."""
    context, parent = _get(span, "context"), _get(span, "parent")
    scope, status = _get(span, "instrumentation_scope"), _get(span, "status")
    attributes, lost = _odd_attributes(_get(span, "_attributes") or _get(span, "attributes"))
    parent_id = _hex(_get(parent, "span_id"), 16)
    kind, code = _get(_get(span, "kind"), "value"), _get(_get(status, "status_code"), "value")
    description = _get(status, "description")
    return SpanView(
        trace_id=_hex(_get(context, "trace_id"), 32) or "0" * 32,
        span_id=_hex(_get(context, "span_id"), 16) or "0" * 16,
        parent_span_id=parent_id,
        name=_text(_get(span, "name")),
        kind=kind + 1 if isinstance(kind, int) else 0,
        scope=_text(_get(scope, "name")),
        scope_version=_text(_get(scope, "version")) or None,
        start_ns=_int(_get(span, "start_time")) or 0,
        end_ns=_int(_get(span, "end_time")),
        attributes=attributes,
        events=tuple(
            SpanEvent(_text(_get(e, "name")), _int(_get(e, "timestamp")) or 0, _mapping(_get(e, "attributes")))
            for e in _items(_get(span, "events"))
        ),
        status_code=code if isinstance(code, int) else 0,
        status_message=None if description is None else _text(description),
        resource=_mapping(_get(_get(span, "resource"), "attributes")),
        dropped=DroppedCounts(lost, _int(_get(span, "dropped_events")) or 0, _int(_get(span, "dropped_links")) or 0),
    )


def _get(thing: Any, name: str, default: Any = None) -> Any:
    try:
        return getattr(thing, name, default)
    except Exception:
        return default


def _hex(value: Any, width: int) -> str | None:
    return f"{value:0{width}x}" if isinstance(value, int) and value > 0 else None


def _int(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return int(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else str(value)
    except Exception:
        return ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else EMPTY


def _items(value: Any) -> Sequence[Any]:
    try:
        return tuple(value or ())
    except Exception:
        return ()
