"""What OTel's providers are given: a span processor and a log processor that tell one recorder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk._logs import LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from otel_agentrec.capture.feeding import FedCache, feed
from otel_agentrec.capture.guard import guarded
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.capture.recorders import recorder_at
from otel_agentrec.capture.ways import CODE
from otel_agentrec.records import IoCaptureSink
from otel_agentrec.settings import Settings

__all__ = ["AgentRecLogProcessor", "AgentRecSpanProcessor"]


class AgentRecSpanProcessor(SpanProcessor):
    """Records agent steps into ``path``, for people who build their own providers.

    Two processors with the same path share one recorder, so that several providers of a process write one stream. None of
    its callbacks ever raises an Exception into the program.

    Args:
        path: the recording directory; default ``OTEL_AGENTREC_PATH``.
        sinks: receive node records; or names of them, as in ``OTEL_AGENTREC_SINKS``.
        resume_cache: a ``ResumeCache`` that is fed with what is recorded.
        forward: processors that get every span of this one once its event is written, with its stamp; such as
            ``[BatchSpanProcessor(OTLPSpanExporter())]``, which then stands nowhere else.
        settings: further settings by name (see ``otel_agentrec.settings``).

    Raises:
        ConfigurationError: no path, or a setting that can't be used.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        sinks: Iterable[IoCaptureSink | str] = (),
        resume_cache: FedCache | None = None,
        recorder: Recorder | None = None,
        forward: Iterable[SpanProcessor] = (),
        **settings: Any,
    ) -> None:
        if recorder is None:
            loaded = Settings.load(path=path, **settings)
            recorder = recorder_at(loaded, sinks=sinks, way=CODE)
        self.recorder = recorder
        self.guard = recorder.guard
        feed(recorder, resume_cache)
        inner = tuple(forward)
        self.forwarder = recorder.outlets.forwarder(inner) if inner else None
        recorder.attach(self)

    @guarded("on_start")
    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        try:
            if self.forwarder is not None:
                self.forwarder.started(span, parent_context)
        finally:  # a BaseException of theirs is the program's; the record is ours
            self.recorder.span_started(span, self)

    @guarded("_on_ending")
    def _on_ending(self, span: Span) -> None:
        if self.forwarder is not None:
            self.forwarder.ending(span)

    @guarded("on_end")
    def on_end(self, span: ReadableSpan) -> None:
        self.recorder.span_ended(span, self.forwarder.then() if self.forwarder is not None else None)

    @guarded("shutdown")
    def shutdown(self) -> None:
        self.recorder.detach(self)
        if self.forwarder is not None:
            self.recorder.outlets.left(self.forwarder)
            self.forwarder.shutdown()

    @guarded("force_flush", fallback=False)
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        done = self.recorder.force_flush(timeout_millis)
        return (self.forwarder is None or self.forwarder.flush(timeout_millis)) and done


class AgentRecLogProcessor(LogRecordProcessor):
    """Tells the recorder of ``span_processor`` the log records that carry facts of agent steps."""

    def __init__(self, span_processor: AgentRecSpanProcessor | Recorder) -> None:
        self.recorder = span_processor if isinstance(span_processor, Recorder) else span_processor.recorder
        self.guard = self.recorder.guard
        self.recorder.attach(self)

    @guarded("on_emit")
    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        self.recorder.log_emitted(log_record)

    @guarded("shutdown")
    def shutdown(self) -> None:
        self.recorder.detach(self)

    @guarded("force_flush", fallback=False)
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.recorder.force_flush(timeout_millis)
