"""OTLP/JSON -> views. Lenient: what other exporters and generic protobuf printers write is read too.

The standard form has hex ids, integer enums, 64-bit integers as decimal strings, and lowerCamelCase keys. Read besides:
ids in upper case or base64, integers as numbers, enums by name, snake_case keys, attributes as plain objects, the pre-1.0
``instrumentationLibrary*`` keys; null is absent; unknown fields are passed over.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from otel_agentrec.capture.batches import Batch
from otel_agentrec.capture.dialects.values import spelled
from otel_agentrec.capture.spans import EMPTY, NOTHING_DROPPED, DroppedCounts, LogView, SpanEvent, SpanView

__all__ = ["any_value", "decode"]

Json = Any
MAX_DEPTH = 64
"""Attribute values nested deeper than this are kept in their OTLP form."""

_HEX = re.compile(r"[0-9a-fA-F]+")
_INT = re.compile(r"[+-]?\d{1,4000}")

_RESOURCES = {
    "resourceSpans": ("spans", ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")),
    "resource_spans": ("spans", ("scope_spans", "scopeSpans", "instrumentation_library_spans")),
    "resourceLogs": ("logs", ("scopeLogs", "scope_logs", "instrumentationLibraryLogs")),
    "resource_logs": ("logs", ("scope_logs", "scopeLogs", "instrumentation_library_logs")),
}
_NOT_OURS = ("resourceMetrics", "resource_metrics", "resourceProfiles", "resource_profiles")
_SCOPES = ("scope", "instrumentationLibrary", "instrumentation_library")
_KINDS = {"UNSPECIFIED": 0, "INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_CODES = {"UNSET": 0, "OK": 1, "ERROR": 2}


def decode(document: Json) -> Batch:
    """The views in a parsed OTLP/JSON document (``TracesData``, ``LogsData``, an export request, or a list of these)."""
    batch = Batch()
    known = False
    for part in document if isinstance(document, list) else [document]:
        if not isinstance(part, dict):
            continue
        for key, (signal, scope_keys) in _RESOURCES.items():
            if key in part:
                known = True
                if part[key] is not None and not isinstance(part[key], list):
                    batch.faults.append(f"{key} is no list")
                for item in _dicts(part[key]):
                    _decode_resource(item, signal, scope_keys, batch)
        for key in _NOT_OURS:
            if key in part:
                known = True
                batch.metrics += max(1, len(_dicts(part[key])))
    if not known:
        batch.known = False
        batch.faults.append("no OTLP: no resourceSpans and no resourceLogs")
    return batch


def _decode_resource(item: dict[str, Json], signal: str, scope_keys: tuple[str, ...], batch: Batch) -> None:
    resource = attributes(_dict(item.get("resource")).get("attributes"))
    for key in scope_keys:
        for group in _dicts(item.get(key)):
            scope = next((s for k in _SCOPES if (s := _dict(group.get(k)))), {})
            name, version = _str(scope.get("name")), _str(scope.get("version")) or None
            if signal == "spans":
                for span in _dicts(group.get("spans")):
                    _decode_span(span, name, version, resource, batch)
            else:
                for log in _dicts(_get(group, "logRecords", "log_records") or group.get("logs")):
                    batch.logs.append(_log(log, name, resource))


def _decode_span(s: dict[str, Json], scope: str, version: str | None, resource: dict[str, Any], batch: Batch) -> None:
    trace_id, span_id = hex_id(_get(s, "traceId", "trace_id"), 16), hex_id(_get(s, "spanId", "span_id"), 8)
    if trace_id is None or span_id is None:
        batch.faults.append(f"a span without a readable {'trace' if trace_id is None else 'span'} id")
        return
    status = _dict(s.get("status"))
    end_ns = integer(_get(s, "endTimeUnixNano", "end_time_unix_nano"))
    lost = DroppedCounts(
        _count(s, "droppedAttributesCount", "dropped_attributes_count"),
        _count(s, "droppedEventsCount", "dropped_events_count"),
        _count(s, "droppedLinksCount", "dropped_links_count"),
    )
    batch.spans.append(
        SpanView(
            trace_id,
            span_id,
            hex_id(_get(s, "parentSpanId", "parent_span_id"), 8),
            _str(s.get("name")),
            _enum(s.get("kind"), _KINDS),
            scope,
            version,
            integer(_get(s, "startTimeUnixNano", "start_time_unix_nano")) or 0,
            end_ns or None,
            attributes(s.get("attributes")),
            tuple([_event(e) for e in _dicts(s.get("events"))]),
            tuple(_links(s.get("links"))),
            _enum(status.get("code"), _CODES),
            _str(status.get("message")) or None,
            resource,
            lost if any(lost) else NOTHING_DROPPED,
        )
    )


def _event(e: dict[str, Json]) -> SpanEvent:
    at = integer(_get(e, "timeUnixNano", "time_unix_nano")) or 0
    return SpanEvent(_str(e.get("name")), at, attributes(e.get("attributes")))


def _links(value: Json) -> Iterator[tuple[str, str]]:
    for link in _dicts(value):
        trace_id, span_id = hex_id(_get(link, "traceId", "trace_id"), 16), hex_id(_get(link, "spanId", "span_id"), 8)
        if trace_id is not None and span_id is not None:
            yield trace_id, span_id


def _log(r: dict[str, Json], scope: str, resource: dict[str, Any]) -> LogView:
    held = attributes(r.get("attributes"))
    return LogView(
        trace_id=hex_id(_get(r, "traceId", "trace_id"), 16),
        span_id=hex_id(_get(r, "spanId", "span_id"), 8),
        event_name=_str(_get(r, "eventName", "event_name") or held.get("event.name")),
        observed_ns=integer(_get(r, "observedTimeUnixNano", "observed_time_unix_nano")) or None,
        ts_ns=integer(_get(r, "timeUnixNano", "time_unix_nano")) or None,
        scope=scope,
        body=any_value(r.get("body")),
        attributes=held,
        resource=resource or EMPTY,
    )


# --- values -----------------------------------------------------------------------------------------------------------


def attributes(value: Json, depth: int = 0) -> dict[str, Any]:
    """Attributes as a dict: a list of ``{key, value}``, or (some printers) an object. The last of two equal keys counts."""
    if isinstance(value, dict):
        return {str(key): any_value(v, depth) for key, v in value.items()}
    out: dict[str, Any] = {}
    for pair in value if isinstance(value, list) else ():
        if isinstance(pair, dict) and isinstance(pair.get("key"), str):
            out[pair["key"]] = any_value(pair.get("value"), depth)
    return out


def any_value(value: Json, depth: int = 0) -> Any:
    """The Python value of an ``AnyValue``: ``{}`` is None, bytes are bytes, 64-bit integers are exact.

    What is no AnyValue, or holds what its name does not say, is kept as it is.
    """
    if not isinstance(value, dict):
        return value
    for key, held in value.items():
        reader = _READERS.get(key)
        if reader is not None:
            if held is None:
                continue
            return value if depth >= MAX_DEPTH else reader(held, depth + 1)
    return None if all(v is None for v in value.values()) else value


def _integer(held: Json, _: int) -> Any:
    found = integer(held)
    return held if found is None else found


def _double(held: Json, _: int) -> Any:
    if isinstance(held, bool) or not isinstance(held, (int, float, str)):
        return held
    try:
        found = float(held)
    except (ValueError, OverflowError):
        return held
    exact = not isinstance(held, str) or held.strip().lower().lstrip("+-") in ("nan", "infinity", "inf")
    return found if exact or found not in (float("inf"), float("-inf")) else held


def _bool(held: Json, _: int) -> Any:
    return {"true": True, "false": False}.get(held.lower(), held) if isinstance(held, str) else held


def _bytes(held: Json, _: int) -> Any:
    found = _base64(held) if isinstance(held, str) else None
    return held if found is None else found


def _array(held: Json, depth: int) -> Any:
    values = held.get("values") if isinstance(held, dict) else held
    return [any_value(v, depth) for v in values] if isinstance(values, list) else []


def _map(held: Json, depth: int) -> Any:
    if isinstance(held, dict) and ("values" in held or not held):
        held = held.get("values")
    return attributes(held, depth)


def _same(held: Json, _: int) -> Any:
    return held


_READERS = {
    "stringValue": _same,
    "intValue": _integer,
    "doubleValue": _double,
    "boolValue": _bool,
    "arrayValue": _array,
    "kvlistValue": _map,
    "bytesValue": _bytes,
    "string_value": _same,
    "int_value": _integer,
    "double_value": _double,
    "bool_value": _bool,
    "array_value": _array,
    "kvlist_value": _map,
    "bytes_value": _bytes,
}


def hex_id(value: Json, size: int) -> str | None:
    """An id of ``size`` bytes as lower-case hex, from hex of any case or base64; None when absent, all zero or neither."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if len(text) == 2 * size + 2 and text[:2] in ("0x", "0X"):
        text = text[2:]
    if len(text) != 2 * size or not _HEX.fullmatch(text):
        raw = _base64(text)
        if raw is None or len(raw) != size:
            return None
        text = raw.hex()
    return None if text.strip("0") == "" else text.lower()


def _base64(text: str) -> bytes | None:
    text = text.translate(_URL_SAFE).rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


_URL_SAFE = str.maketrans("-_", "+/")


def integer(value: Json) -> int | None:
    """A 64-bit integer, as a number or a decimal string."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and _INT.fullmatch(value.strip()):
        return int(value)
    return None


def _enum(value: Json, names: dict[str, int]) -> int:
    if isinstance(value, str) and not value.isdigit():
        return names.get(value.rpartition("_")[2].upper(), 0)
    found = integer(value)
    return found if found is not None and 0 <= found <= max(names.values()) else 0


def _count(holder: dict[str, Json], camel: str, snake: str) -> int:
    found = integer(_get(holder, camel, snake))
    return found if found is not None and found > 0 else 0


def _get(holder: dict[str, Json], camel: str, snake: str) -> Json:
    value = holder.get(camel)
    return holder.get(snake) if value is None else value


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Json) -> list[dict[str, Json]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _str(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else spelled(value)
