"""The SDK's own OTLP exporters, made for an address or as OTel's variables ask for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.trace.export import SpanExporter

from otel_agentrec.capture.forward.partly import listened_to
from otel_agentrec.capture.forward.sending import TIMEOUT
from otel_agentrec.errors import ConfigurationError, UsageError

__all__ = [
    "Protocol",
    "asked_log_exporter",
    "asked_protocol",
    "asked_timeout",
    "endpoint_of",
    "log_exporter",
    "protocol_of",
    "protocol_of_exporter",
    "span_exporter",
    "span_exporter_from_environment",
]

Protocol = Literal["http/protobuf", "grpc"]
Signal = Literal["traces", "logs"]


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


def endpoint_of(url: str, protocol: Protocol, signal: Signal = "traces") -> str:
    """The address that a signal goes to: over HTTP the path ends with ``/v1/traces`` or ``/v1/logs``."""
    parts = urlsplit(url)
    if protocol == "grpc":
        secure = parts.scheme in ("grpcs", "https")
        return f"{'https' if secure else 'http'}://{parts.netloc}"
    path = parts.path.rstrip("/")
    for other in ("/v1/traces", "/v1/logs"):
        path = path.removesuffix(other)
    return urlunsplit(parts._replace(path=f"{path}/v1/{signal}"))


def span_exporter(url: str, protocol: Protocol, headers: Mapping[str, str], gzip: bool) -> SpanExporter:
    """For spans to that address."""
    arguments = _arguments(endpoint_of(url, protocol), protocol, headers, gzip)
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return listened_to(Grpc(**arguments))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

    return listened_to(Http(**arguments))


def log_exporter(url: str, protocol: Protocol, headers: Mapping[str, str], gzip: bool) -> LogRecordExporter:
    """For log records to that address."""
    arguments = _arguments(endpoint_of(url, protocol, "logs"), protocol, headers, gzip)
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as Grpc

        return listened_to(Grpc(**arguments))
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as Http

    return listened_to(Http(**arguments))


def asked_protocol(signal: Signal) -> Protocol:
    """As ``OTEL_EXPORTER_OTLP_PROTOCOL`` and its form for the signal say; default: http/protobuf.

    Raises:
        ConfigurationError: they name one that is not known.
    """
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        asked = os.environ.get(variable, "").strip().lower()
        if asked == "grpc":
            return "http/protobuf" if _is_of_the_distro(variable) else "grpc"
        if asked == "http/protobuf":
            return "http/protobuf"
        if asked:
            raise ConfigurationError(f"{variable}={asked} can't be used", "give http/protobuf or grpc")
    return "http/protobuf"


def _is_of_the_distro(variable: str) -> bool:
    """``opentelemetry-instrument`` writes ``grpc`` into the environment where the user wrote nothing. What the user wrote was
    there when the process was started."""
    if "opentelemetry.distro" not in sys.modules:
        return False
    try:
        return f"{variable}=".encode() not in b"\0" + Path("/proc/self/environ").read_bytes()
    except OSError:  # not on this system: it can't be told
        return False


def asked_timeout(signal: Signal) -> float:
    """Seconds that a batch may take, as ``OTEL_EXPORTER_OTLP_TIMEOUT`` and its form for the signal say; default: 10."""
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"):
        try:
            return float(os.environ[variable])
        except (KeyError, ValueError):
            continue
    return TIMEOUT


def span_exporter_from_environment() -> SpanExporter:
    """As the variables ``OTEL_EXPORTER_OTLP_*`` say.

    Raises:
        ConfigurationError: see :func:`asked_protocol`.
    """
    if asked_protocol("traces") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

    return Http()


def asked_log_exporter() -> Callable[[], LogRecordExporter]:
    """What makes one as the variables ``OTEL_EXPORTER_OTLP_*`` say.

    Raises:
        ConfigurationError: see :func:`asked_protocol`.
    """
    if asked_protocol("logs") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as Grpc

        return Grpc
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as Http

    return Http


def protocol_of_exporter(exporter: object) -> Protocol:
    """gRPC for the SDK's exporters of that name, which have the smaller limit; HTTP for all others."""
    return "grpc" if ".grpc." in f"{type(exporter).__module__}." else "http/protobuf"


def _arguments(endpoint: str, protocol: Protocol, headers: Mapping[str, str], gzip: bool) -> dict[str, Any]:
    if protocol == "grpc":
        import grpc  # type: ignore[import-untyped]

        return {
            "endpoint": endpoint,
            "insecure": endpoint.startswith("http://"),
            "headers": [(key.lower(), value) for key, value in headers.items()],
            "compression": grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression,
            "timeout": TIMEOUT,
        }
    from opentelemetry.exporter.otlp.proto.http import Compression

    return {
        "endpoint": endpoint,
        "headers": dict(headers),
        "compression": Compression.Gzip if gzip else Compression.NoCompression,
        "timeout": TIMEOUT,
    }
