"""Send spans to an OTLP receiver in batches that it takes, and say what became of each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from otel_agentrec.errors import AgentRecError, UsageError

__all__ = ["BATCH_BYTES", "NotSent", "Protocol", "Sent", "endpoint_of", "make_exporter", "protocol_of", "send"]

Protocol = Literal["http/protobuf", "grpc"]
BATCH_BYTES: dict[str, int] = {"grpc": 3 << 20, "http/protobuf": 8 << 20}
"""Most bytes of a batch before compression: gRPC receivers take 4 MiB unless told otherwise."""
BATCH_SPANS = 512
TIMEOUT = 10.0
"""Seconds that one batch may take, with the exporter's own retries."""

Placed = tuple[str, int, ReadableSpan]


class NotSent(AgentRecError):
    """The receiver can't be reached, or does not take what it is sent."""

    default_hint = "when it is there again, run the same command: it goes on where it stopped"


@dataclass(slots=True)
class Sent:
    """``spans`` were taken; ``refused``: (stream, seq) of those that the receiver would not take even alone; ``upto``:
    stream -> seq of its last span that was dealt with."""

    spans: int = 0
    batches: int = 0
    refused: list[tuple[str, int]] = field(default_factory=list)
    upto: dict[str, int] = field(default_factory=dict)
    why: str = ""
    """What the receiver said last when it refused."""


def protocol_of(url: str) -> Protocol:
    """gRPC for ``grpc://``, ``grpcs://`` and port 4317, else HTTP with protobuf.

    Raises:
        UsageError: it is no URL of an OTLP receiver.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if port == -1 or parts.scheme not in ("http", "https", "grpc", "grpcs") or not parts.hostname:
        raise UsageError(f"{url!r} is no URL of an OTLP receiver", "for example --otlp http://127.0.0.1:4318")
    return (
        "grpc" if parts.scheme.startswith("grpc") or (port == 4317 and not parts.path.strip("/")) else "http/protobuf"
    )


def endpoint_of(url: str, protocol: Protocol) -> str:
    """The address that spans go to: over HTTP the path ends with ``/v1/traces``."""
    parts = urlsplit(url)
    if protocol == "grpc":
        secure = parts.scheme in ("grpcs", "https")
        return f"{'https' if secure else 'http'}://{parts.netloc}"
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith("/v1/traces") else f"{path}/v1/traces"))


def make_exporter(url: str, protocol: Protocol, headers: Mapping[str, str], gzip: bool) -> SpanExporter:
    """The SDK's own exporter for that address."""
    endpoint = endpoint_of(url, protocol)
    if protocol == "grpc":
        import grpc  # type: ignore[import-untyped]
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc(
            endpoint=endpoint,
            insecure=endpoint.startswith("http://"),
            headers=[(key.lower(), value) for key, value in headers.items()],
            compression=grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression,
            timeout=TIMEOUT,
        )
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

    return Http(
        endpoint=endpoint,
        headers=dict(headers),
        compression=Compression.Gzip if gzip else Compression.NoCompression,
        timeout=TIMEOUT,
    )


def send(
    spans: Iterable[Placed],
    exporter: SpanExporter,
    most_bytes: int,
    told: Callable[[Sent], None] = lambda sent: None,
) -> Sent:
    """Send spans in order. ``told`` is called after each batch: what is done then need not be done again.

    A batch that is refused at once is taken apart, down to the one span that the receiver does not take.

    Raises:
        NotSent: the receiver did not answer within the exporter's time-out; ``told`` knows how far it went.
    """
    sent = Sent()
    for batch in batches(spans, most_bytes):
        _send(batch, exporter, sent)
        for stream, seq, _ in batch:
            sent.upto[stream] = max(seq, sent.upto.get(stream, -1))
        told(sent)
    return sent


def batches(spans: Iterable[Placed], most_bytes: int, most_spans: int = BATCH_SPANS) -> Iterator[list[Placed]]:
    """Spans in batches of at most ``most_bytes`` encoded bytes; one that is larger by itself goes alone."""
    batch: list[Placed] = []
    held = 0
    for placed in spans:
        size = encode_spans([placed[2]]).ByteSize()
        if batch and (held + size > most_bytes or len(batch) >= most_spans):
            yield batch
            batch, held = [], 0
        batch.append(placed)
        held += size
    if batch:
        yield batch


def _send(batch: Sequence[Placed], exporter: SpanExporter, sent: Sent) -> None:
    began = time.monotonic()
    with _heard() as said:
        result = exporter.export([span for _, _, span in batch])
    if result is SpanExportResult.SUCCESS:
        sent.spans += len(batch)
        sent.batches += 1
        return
    sent.why = said[-1] if said else "no reason was given"
    if time.monotonic() - began > TIMEOUT * 0.5 or _is_away(sent.why):
        raise NotSent(f"the receiver takes nothing: {sent.why}")
    if len(batch) == 1:
        sent.refused.append((batch[0][0], batch[0][1]))
        return
    middle = len(batch) // 2
    _send(batch[:middle], exporter, sent)
    _send(batch[middle:], exporter, sent)


def _is_away(why: str) -> bool:
    """Whether nobody is there, or whoever is there does not know us: the next batch would fare no better."""
    words = (
        "UNAVAILABLE",
        "UNAUTHENTICATED",
        "PERMISSION_DENIED",
        "UNIMPLEMENTED",
        "Connection",
        "code: 401",
        "code: 403",
    )
    return any(word in why for word in (*words, "code: 404"))


@contextmanager
def _heard() -> Iterator[list[str]]:
    """What the SDK's exporters log of a failure, in place of printing it."""
    said: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(" ".join(record.getMessage().split())[:300])

    logger, ear = logging.getLogger("opentelemetry.exporter.otlp"), Ear(logging.WARNING)
    before = logger.propagate
    logger.addHandler(ear)
    logger.propagate = False
    try:
        yield said
    finally:
        logger.removeHandler(ear)
        logger.propagate = before
