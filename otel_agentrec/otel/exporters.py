"""Exporters that record: what ``OTEL_TRACES_EXPORTER=agentrec`` and ``OTEL_LOGS_EXPORTER=agentrec`` name. And one that sends
what is recorded: ``OTEL_TRACES_EXPORTER=agentrec_otlp``.

OTel makes them without arguments and puts them behind a batch: so no starts are seen, only sampled spans, and what waits in
the batch is lost when the process is killed. Spans and log records that a processor of ours saw are left to it.

The SDK does not guard what it loads: nothing here raises, and all but the SDK's base classes is imported inside a guard.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from otel_agentrec.otel import say

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.trace import ReadableSpan

    from otel_agentrec.capture.recorder import Recorder

__all__ = ["AgentRecSpanExporter", "RecordingLogExporter", "RecordingSpanExporter"]


class RecordingSpanExporter(SpanExporter):
    """Records the agent steps among the spans that it is given.

    Never raises: what is wrong with its arguments is said on stderr, and then it records nothing.

    Args:
        path: the recording directory; default ``OTEL_AGENTREC_PATH``.
        settings: further settings by name (see ``otel_agentrec.settings``).
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, **settings: Any) -> None:
        self.recorder = _recorder(self, path, settings)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        done = self.recorder is None or self.recorder.guard.run("export", _told, self.recorder, "spans", spans)
        return SpanExportResult.SUCCESS if done else SpanExportResult.FAILURE

    def shutdown(self) -> None:
        if self.recorder is not None:
            self.recorder.guard.run("shutdown", self.recorder.detach, self)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.recorder is None or self.recorder.force_flush(timeout_millis)


class RecordingLogExporter(LogRecordExporter):
    """Records the log records that tell of agent steps; its arguments are those of :class:`RecordingSpanExporter`."""

    def __init__(self, path: str | os.PathLike[str] | None = None, **settings: Any) -> None:
        self.recorder = _recorder(self, path, settings)

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        done = self.recorder is None or self.recorder.guard.run("export", _told, self.recorder, "logs", batch)
        return LogRecordExportResult.SUCCESS if done else LogRecordExportResult.FAILURE

    def shutdown(self) -> None:
        if self.recorder is not None:
            self.recorder.guard.run("shutdown", self.recorder.detach, self)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.recorder is None or self.recorder.force_flush(timeout_millis)


class AgentRecSpanExporter(SpanExporter):
    """Sends spans to an OTLP receiver, each with the stamp of the event that it became: ``OTEL_TRACES_EXPORTER=agentrec_otlp``.

    It records nothing: whatever records the process (``otel-agentrec run``, a processor …) gives the stamps. A span without
    an event goes out without a stamp, counted. Batches are cut to what receivers take; what is lost is counted and told once.
    Never raises.

    Args:
        inner: what sends them; default: OTel's own exporter as ``OTEL_EXPORTER_OTLP_*`` say, http/protobuf where they name no
            protocol.
        most_bytes: of a batch before compression; default: 3 MiB over gRPC, 8 MiB over HTTP.
        options: of a configuration file; not used.
    """

    def __init__(self, inner: SpanExporter | None = None, *, most_bytes: int | None = None, **options: Any) -> None:
        self._out: SpanExporter | None = inner
        try:
            from otel_agentrec.capture.forward.exporters import span_exporter_from_environment
            from otel_agentrec.capture.forward.spanexporter import StampingExporter

            self._out = StampingExporter(inner or span_exporter_from_environment(), most_bytes)
        except Exception as error:
            say(f"spans go out without stamps: {error}", getattr(error, "hint", ""))
            if inner is None:
                self._out = _plain_exporter()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if not spans:
            return SpanExportResult.SUCCESS
        return cast(SpanExportResult, _guarded("export", SpanExportResult.FAILURE, self._out, "export", spans))

    def shutdown(self) -> None:
        _guarded("shutdown", None, self._out, "shutdown")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return bool(_guarded("force_flush", False, self._out, "force_flush", timeout_millis))


def _guarded(where: str, fallback: Any, owner: Any, name: str, *args: Any) -> Any:
    """What the method gives; what it raises is counted and told of once."""
    try:
        return fallback if owner is None else getattr(owner, name)(*args)
    except Exception as error:
        try:
            from otel_agentrec.capture.guard import PROCESS

            PROCESS.swallow(f"agentrec_otlp's {where}", error)
        except Exception:
            pass
        return fallback


def _plain_exporter() -> SpanExporter | None:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    except Exception as error:
        say(f"spans don't go out at all: {error}")
        return None


def _recorder(exporter: object, path: str | os.PathLike[str] | None, settings: dict[str, Any]) -> Recorder | None:
    try:
        from otel_agentrec.capture.configure import join_from_outside
        from otel_agentrec.capture.ways import EXPORTER

        recorder = join_from_outside(EXPORTER, whole_process=path is None, path=path, **settings)
        if recorder is not None:
            recorder.exports.expect()
            recorder.attach(exporter)
        return recorder
    except Exception as error:
        say(f"the exporter agentrec records nothing: {error}", getattr(error, "hint", ""))
        return None


def _told(recorder: Recorder, what: str, batch: Sequence[Any]) -> bool:
    getattr(recorder.exports, what)(batch)
    return True
