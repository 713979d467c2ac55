"""Journal events as OTLP log records: what ``verify FILE`` reads of what a Collector kept of them.

The body is the event's canonical text, byte for byte as it stands in the journal's line, so that its hash can be computed
again from it. It holds references to content, not content.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from otel_agentrec._version import __version__
from otel_agentrec.journal.chain import PREFIX_LEN, SUFFIX_LEN
from otel_agentrec.journal.stamps import EVENT, PREFIX

__all__ = ["OVERHEAD", "SCOPE", "EventRecords", "process_resource", "size_of"]

SCOPE = InstrumentationScope("otel_agentrec.journal", __version__)
_NOWHERE = trace.set_span_in_context(trace.INVALID_SPAN, Context())
"""Whatever span is open on the thread that sends is not the event's."""
OVERHEAD = 512
"""More bytes than a record has around its body, encoded."""


def process_resource() -> Resource:
    """The resource of this process, as OTel's variables say."""
    try:
        return Resource.create()
    except RuntimeError:  # it starts threads, which can't be done at the end of the interpreter
        return Resource({"service.name": os.environ.get("OTEL_SERVICE_NAME") or "unknown_service:python"})


class EventRecords:
    """Args:
    resource: of the process that writes the journal; default: as OTel's variables say.
    """

    def __init__(self, resource: Mapping[str, Any] | None = None) -> None:
        self._resource = process_resource() if resource is None else Resource(dict(resource))

    def of_line(self, line: bytes, stream: str, seq: int, hash: str, prev_hash: str, ts_ms: int) -> ReadableLogRecord:
        """The record of an event, from its line with or without the newline."""
        end = len(line) - SUFFIX_LEN - (1 if line.endswith(b"\n") else 0)
        at = ts_ms * 1_000_000
        record = LogRecord(
            context=_NOWHERE,
            timestamp=at,
            observed_timestamp=at,
            severity_number=SeverityNumber.INFO,
            body=line[PREFIX_LEN:end].decode("utf-8"),
            event_name=EVENT,
            attributes={
                f"{PREFIX}stream": stream,
                f"{PREFIX}seq": seq,
                f"{PREFIX}hash": hash,
                f"{PREFIX}prev_hash": prev_hash,
            },
        )
        return ReadableLogRecord(record, self._resource, SCOPE)


def size_of(record: ReadableLogRecord) -> int:
    """About how many bytes it takes, encoded; not less."""
    return len(str(record.log_record.body).encode()) + OVERHEAD
