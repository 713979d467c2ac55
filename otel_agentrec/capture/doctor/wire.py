"""Whether model calls can be recorded as they stand on the wire: the HTTP libraries of an environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from otel_agentrec.capture.doctor.finding import Finding, note, ok
from otel_agentrec.capture.doctor.interpreter import Interpreter

__all__ = ["INTERCEPTED", "check_wire", "is_on"]

INTERCEPTED = ("httpx", "httpx2", "urllib3", "aiohttp")
"""Libraries whose requests are intercepted; requests and botocore use urllib3."""


def is_on(environ: Mapping[str, str]) -> bool:
    """Whether the environment leaves the wire on."""
    return environ.get("OTEL_AGENTREC_WIRE", "").strip().lower() not in ("0", "false", "no", "off")


def check_wire(environ: Mapping[str, str], python: Interpreter) -> Iterator[Finding]:
    """What of the model calls' own requests and responses would be recorded."""
    if not is_on(environ):
        yield note(
            "wire",
            "the wire is not recorded: OTEL_AGENTREC_WIRE=false",
            "exact payloads are not kept, calls without an instrumentation are not seen, and nothing can be answered from them",
            "unset OTEL_AGENTREC_WIRE",
        )
        return
    found = [f"{name} {version}" for name in INTERCEPTED if (version := python.version_of(name)) is not None]
    if found:
        yield ok(
            "wire",
            f"model calls are recorded on the wire of {', '.join(found)}",
            "not seen: http.client, gRPC, WebSocket (realtime), and what other processes do that are not Python",
        )
    else:
        yield note(
            "wire",
            f"none of {', '.join(INTERCEPTED)} is installed",
            "exact payloads are recorded for these HTTP libraries; http.client, gRPC and WebSocket are not intercepted",
        )
