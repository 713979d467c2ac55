"""OTLP over HTTP and gRPC, without the sockets: bytes of a request in, bytes of the answer out.

The answers are those of the OTLP specification: 200 with a partial success where items were refused, 400 for what can't be
read, 413 for what is too large, 429/503 with Retry-After where the sender should come again.
"""

from __future__ import annotations

import gzip
import hmac
import io
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otel_agentrec.capture import otlp_json, otlp_protobuf
from otel_agentrec.capture.batches import Batch
from otel_agentrec.capture.received import Outcome, Receiver
from otel_agentrec.records import camel

__all__ = [
    "MAX_BODY",
    "SIGNALS",
    "Answer",
    "TooLarge",
    "allowed",
    "answer",
    "busy",
    "export",
    "not_found",
    "response_of",
    "too_large",
    "unauthorized",
    "unpacked",
]

MAX_BODY = 64 << 20
"""Bytes of a request, also unpacked."""
RETRY_AFTER = "1"
PROTOBUF, JSON = "application/x-protobuf", "application/json"
SIGNALS = {"/v1/traces": "traces", "/v1/logs": "logs", "/v1/metrics": "metrics"}
_RESPONSES: dict[str, Any] = {
    "traces": ExportTraceServiceResponse,
    "logs": ExportLogsServiceResponse,
    "metrics": ExportMetricsServiceResponse,
}
_REJECTED = {"traces": "rejected_spans", "logs": "rejected_log_records", "metrics": "rejected_data_points"}


class TooLarge(Exception):
    """A body is larger than what is taken."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    content_type: str = PROTOBUF
    headers: dict[str, str] = field(default_factory=dict)


def allowed(authorization: str | None, token: str | None) -> bool:
    """Whether a request may pass: no token is asked for, or ``Bearer <token>`` is given (compared in constant time)."""
    if token is None:
        return True
    return hmac.compare_digest((authorization or "").encode("utf-8", "replace"), f"Bearer {token}".encode())


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """A body without its content encoding.

    Raises:
        TooLarge: it unpacks to more than ``limit`` bytes.
        ValueError: the encoding is unknown, or the bytes are not what it says.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "deflate"):
        raise ValueError(f"content-encoding {encoding!r} is not known: gzip, deflate or none")
    try:
        if encoding == "deflate":
            out = zlib.decompressobj().decompress(body, limit + 1)
        else:
            with gzip.GzipFile(fileobj=io.BytesIO(body)) as f:
                out = f.read(limit + 1)
    except (OSError, EOFError, zlib.error) as e:
        raise ValueError(f"the body is not {encoding}: {e}") from None
    if len(out) > limit:
        raise TooLarge
    return out


def answer(receiver: Receiver, signal: str, body: bytes, content_type: str, encoding: str, limit: int) -> Answer:
    """One HTTP request to ``/v1/<signal>``."""
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind not in (PROTOBUF, JSON):
        return _refused(415, JSON, f"content-type {kind or 'none'!r} is not taken: {PROTOBUF} or {JSON}")
    try:
        batch = _decoded(unpacked(body, encoding, limit), kind)
    except TooLarge:
        return too_large(kind, limit)
    except (ValueError, RecursionError) as e:
        return _refused(400, kind, str(e) or "the body can't be read")
    outcome = export(receiver, signal, batch)
    if not outcome.stored:
        return _refused(
            503, kind, "the recording can't be written just now: send it again", {"retry-after": RETRY_AFTER}
        )
    response = response_of(signal, outcome)
    if kind == PROTOBUF:
        return Answer(200, response.SerializeToString())
    partial = {camel(_REJECTED[signal]): str(outcome.rejected), "errorMessage": outcome.message}
    return Answer(200, json.dumps({"partialSuccess": partial} if outcome.message else {}).encode(), JSON)


def export(receiver: Receiver, signal: str, batch: Batch) -> Outcome:
    """Store a batch. Metrics are taken and dropped: agent steps are in traces and logs."""
    if signal == "metrics":
        return Outcome()
    return receiver.take(batch)


def response_of(signal: str, outcome: Outcome) -> Any:
    """The OTLP response message."""
    response = _RESPONSES[signal]()
    if outcome.message:
        response.partial_success.error_message = outcome.message
        setattr(response.partial_success, _REJECTED[signal], outcome.rejected)
    return response


def busy(kind: str) -> Answer:
    """Too many requests wait: the sender keeps its batch and comes again."""
    return _refused(503, kind, "too many requests at once: send it again", {"retry-after": RETRY_AFTER})


def too_large(kind: str, limit: int) -> Answer:
    return _refused(413, kind, f"the request is larger than {limit} bytes: send smaller batches, or raise --max-body")


def unauthorized(kind: str) -> Answer:
    return _refused(401, kind, "a token is asked for: Authorization: Bearer TOKEN", {"www-authenticate": "Bearer"})


def not_found(path: str) -> Answer:
    return _refused(404, JSON, f"nothing at {path}: POST to {', '.join(SIGNALS)}")


def _decoded(body: bytes, kind: str) -> Batch:
    if kind == PROTOBUF:
        batch = otlp_protobuf.decode(body)
        if not batch.spans and not batch.logs and not batch.metrics and batch.faults:
            raise ValueError(batch.faults[0])
        return batch
    try:
        document = json.loads(body)
    except UnicodeDecodeError:
        raise ValueError("the body is not UTF-8") from None
    except json.JSONDecodeError as e:
        raise ValueError(f"the body is no JSON: {e}") from None
    batch = otlp_json.decode(document)
    if not batch.known:
        raise ValueError("the body is no OTLP/JSON: resourceSpans or resourceLogs are missing")
    return batch


def _refused(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> Answer:
    """An error as a google.rpc.Status, in the request's own encoding."""
    if kind == PROTOBUF:
        body = Status(message=message).SerializeToString()
    else:
        kind, body = JSON, json.dumps({"message": message}).encode()
    return Answer(status, body, kind, headers or {})
