"""What a Collector's file exporter writes of a recording, made by hand: spans with stamps, journal events as log records.

The shape is that of the exporter's OTLP/JSON: one export request per line, 64-bit integers as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from otel_agentrec.export.spans import Exported
from otel_agentrec.journal.chain import split
from otel_agentrec.journal.reader import Recording

Json = Any


def attribute(key: str, value: str | int) -> Json:
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}


def event_record(line: bytes) -> Json:
    """The log record of a line of a journal."""
    parts = split(line.removesuffix(b"\n"))
    assert parts is not None
    e, hash_, prev_hash = parts
    event = json.loads(e)
    return {
        "timeUnixNano": str(event["ts"] * 1_000_000),
        "observedTimeUnixNano": str(event["ts"] * 1_000_000 + 5),
        "severityNumber": 9,
        "eventName": "agentrec.event",
        "body": {"stringValue": e.decode()},
        "attributes": [
            attribute("agentrec.stream", event["stream"]),
            attribute("agentrec.seq", event["seq"]),
            attribute("agentrec.hash", hash_),
            attribute("agentrec.prev_hash", prev_hash),
        ],
        "traceId": "",
        "spanId": "",
    }


def event_records(recording: Path) -> list[Json]:
    """Of every line, stream by stream, sessions last; of the index none."""
    opened = Recording(recording)
    paths = [stream.path for stream in (*opened.streams(), *opened.sessions())]
    return [event_record(line) for path in paths for line in path.read_bytes().splitlines(keepends=True)]


def stamped_spans(recording: Path) -> list[Json]:
    """The spans that an export of the recording sends."""
    return [
        {
            "traceId": f"{span.context.trace_id:032x}",
            "spanId": f"{span.context.span_id:016x}",
            "parentSpanId": f"{span.parent.span_id:016x}" if span.parent else "",
            "name": span.name,
            "kind": span.kind.value + 1,
            "startTimeUnixNano": str(span.start_time),
            "endTimeUnixNano": str(span.end_time),
            "attributes": [
                attribute(key, value) for key, value in (span.attributes or {}).items() if isinstance(value, (str, int))
            ],
            "status": {},
        }
        for _, _, span in Exported(Recording(recording)).spans()
    ]


def checkpoint(stream: str, size: int, hash_: str) -> Json:
    held = {"agentrec.stream": stream, "agentrec.size": size, "agentrec.hash": hash_}
    return {
        "traceId": "ab" * 16,
        "spanId": "cd" * 8,
        "name": "agentrec.checkpoint",
        "kind": 1,
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
        "attributes": [attribute(key, value) for key, value in held.items()],
    }


FOREIGN_LOG = {"eventName": "user.clicked", "body": {"stringValue": "x"}, "attributes": []}
FOREIGN_SPAN = {"traceId": "ee" * 16, "spanId": "ff" * 8, "name": "GET /", "kind": 2, "attributes": []}


def logs_line(records: Sequence[Json]) -> Json:
    scope = {"scope": {"name": "otel_agentrec"}, "logRecords": list(records)}
    return {"resourceLogs": [{"resource": {"attributes": [attribute("service.name", "a")]}, "scopeLogs": [scope]}]}


def spans_line(spans: Sequence[Json]) -> Json:
    return {
        "resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "otel_agentrec"}, "spans": list(spans)}]}]
    }


def write(path: Path, documents: Iterable[Json]) -> Path:
    path.write_text("".join(json.dumps(d, ensure_ascii=False) + "\n" for d in documents), encoding="utf-8")
    return path


def batched(records: Sequence[Json], size: int = 3) -> list[Json]:
    return [logs_line(records[n : n + size]) for n in range(0, len(records), size)]


def set_attribute(record: Json, key: str, value: str | int) -> None:
    (found,) = [a for a in record["attributes"] if a["key"] == key]
    found["value"] = attribute(key, value)["value"]


def get_attribute(record: Json, key: str) -> str:
    (found,) = [a for a in record["attributes"] if a["key"] == key]
    return str(next(iter(found["value"].values())))


def jaeger(spans: Sequence[Json]) -> Json:
    """Jaeger's older answer, of /api/traces."""

    def tag(a: Json) -> Json:
        ((kind, value),) = a["value"].items()
        if kind == "intValue":
            return {"key": a["key"], "type": "int64", "value": int(value)}
        return {"key": a["key"], "type": "string", "value": value}

    traces: dict[str, list[Json]] = {}
    for span in spans:
        parent = {"refType": "CHILD_OF", "traceID": span["traceId"], "spanID": span["parentSpanId"]}
        traces.setdefault(span["traceId"], []).append(
            {
                "traceID": span["traceId"].lstrip("0"),
                "spanID": span["spanId"].lstrip("0"),
                "operationName": span["name"],
                "references": [parent] if span["parentSpanId"] else [],
                "startTime": int(span["startTimeUnixNano"]) // 1000,
                "duration": (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) // 1000,
                "tags": [tag(a) for a in span["attributes"]],
                "processID": "p1",
            }
        )
    data = [
        {"traceID": trace, "spans": found, "processes": {"p1": {"serviceName": "a", "tags": []}}}
        for trace, found in traces.items()
    ]
    return {"data": data, "total": len(data), "limit": 0, "offset": 0, "errors": None}
