"""What goes out to an OTLP receiver while the program runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from otel_agentrec.capture.doctor.finding import Finding, note, ok, problem

__all__ = ["STAMPING", "check_outgoing", "exporters_of"]

STAMPING = "agentrec_otlp"
_ENDPOINT, _PROTOCOL = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
_PROTOCOLS = ("", "http/protobuf", "grpc")


def exporters_of(environ: Mapping[str, str]) -> list[str]:
    """The names in ``OTEL_TRACES_EXPORTER``."""
    return [name.strip() for name in environ.get("OTEL_TRACES_EXPORTER", "").split(",") if name.strip()]


def check_outgoing(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Spans with stamps, and events as log records."""
    exporters = exporters_of(environ)
    events = environ.get("OTEL_AGENTREC_EVENTS", "").strip().lower() == "otlp"
    if STAMPING in exporters and "otlp" in exporters:
        yield problem(
            "out.twice",
            f"OTEL_TRACES_EXPORTER names both otlp and {STAMPING}",
            "each span goes out twice, once without its stamp",
            f"OTEL_TRACES_EXPORTER={STAMPING}",
        )
    if not events and STAMPING not in exporters:
        return
    for variable in (_PROTOCOL, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL"):
        if environ.get(variable, "").strip().lower() not in _PROTOCOLS:
            yield problem(
                f"out.{variable}",
                f"{variable}={environ[variable]} is not spoken",
                "events and stamps don't go out",
                f"{variable}=http/protobuf, or grpc",
            )
    if events and environ.get("OTEL_AGENTREC_CONTENT", "").strip().lower() == "inline":
        yield problem(
            "out.events",
            "OTEL_AGENTREC_EVENTS=otlp with OTEL_AGENTREC_CONTENT=inline",
            "what was said would go out with the events: recording does not start",
            "OTEL_AGENTREC_CONTENT=detached",
        )
    what = " and ".join((["spans with their stamps"] if STAMPING in exporters else []) + (["events"] if events else []))
    if environ.get(_ENDPOINT):
        yield ok("out", f"{what} go to {environ[_ENDPOINT]}", "what is lost on the way is counted, and said once")
    else:
        yield note("out", f"{what} go to a receiver on this machine", "no other is named", f"set {_ENDPOINT}")
