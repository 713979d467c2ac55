"""OTLP files for tests: spans and log records in the standard form, written as the Collector writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TRACE = "0af7651916cd43dd8448eb211c80319c"


def value(v: Any) -> dict[str, Any]:
    """The AnyValue of a Python value."""
    if v is None:
        return {}
    if isinstance(v, bool):
        return {"boolValue": v}
    if isinstance(v, int):
        return {"intValue": str(v)}
    if isinstance(v, float):
        return {"doubleValue": v}
    if isinstance(v, str):
        return {"stringValue": v}
    if isinstance(v, list):
        return {"arrayValue": {"values": [value(x) for x in v]}}
    return {"kvlistValue": {"values": pairs(v)}}


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": k, "value": value(v)} for k, v in attributes.items()]


def span(
    number: int, name: str, attributes: dict[str, Any] | None = None, parent: int = 0, **more: Any
) -> dict[str, Any]:
    """Span ``number`` (its id, and its place in time in milliseconds)."""
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name,
        "kind": 3,
        "startTimeUnixNano": str(number * 1_000_000),
        "endTimeUnixNano": str((number + 1) * 1_000_000),
        "attributes": pairs(attributes or {}),
        "status": {},
        **more,
    }


def chat(number: int, parent: int = 0, **attributes: Any) -> dict[str, Any]:
    named = {f"gen_ai.{key}": v for key, v in attributes.items()}
    return span(number, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **named}, parent)


def agent(number: int, parent: int = 0) -> dict[str, Any]:
    return span(number, "invoke_agent a", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}, parent)


def http(number: int, parent: int, status: int) -> dict[str, Any]:
    return span(number, "POST", {"http.request.method": "POST", "http.response.status_code": status}, parent)


def log(name: str, number: int, attributes: dict[str, Any] | None = None) -> dict[str, Any]:
    """A log record of span ``number``."""
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "eventName": name,
        "observedTimeUnixNano": "5",
        "attributes": pairs(attributes or {}),
    }


def traces(*spans: dict[str, Any], scope: str = "an.instrumentation", service: str = "app") -> dict[str, Any]:
    resource = {"attributes": pairs({"service.name": service})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}


def logs(*records: dict[str, Any]) -> dict[str, Any]:
    scoped = [{"scope": {"name": "an.instrumentation"}, "logRecords": list(records)}]
    return {"resourceLogs": [{"resource": {"attributes": pairs({"service.name": "app"})}, "scopeLogs": scoped}]}


def write(path: Path, *lines: dict[str, Any] | str | bytes) -> Path:
    """One line per document; text and bytes as they are."""
    with path.open("wb") as file:
        for line in lines:
            data = line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
            file.write(data + b"\n")
    return path
