"""Recording switched on: by one line in the program, or from outside through the environment."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opentelemetry import _logs, trace
from opentelemetry.sdk.trace import SpanProcessor

from otel_agentrec.capture.content import ask_for_content
from otel_agentrec.capture.feeding import FedCache, feed
from otel_agentrec.capture.guard import PROCESS, log
from otel_agentrec.capture.providers import attach, make_tracer_provider
from otel_agentrec.capture.recorder import Recorder, place_of
from otel_agentrec.capture.recorders import is_recording, recorder_at
from otel_agentrec.capture.ways import CONFIGURE, PROVIDER
from otel_agentrec.errors import ConfigurationError
from otel_agentrec.records import IoCaptureSink
from otel_agentrec.settings import Settings

__all__ = [
    "attach_to_providers",
    "configure",
    "join_from_outside",
    "provider_from_environment",
    "show_log",
    "start_from_environment",
]

DISABLED = "OTEL_SDK_DISABLED=true: OpenTelemetry is off, nothing is recorded"

_LOCK = threading.Lock()
_configured: Recorder | None = None


def configure(
    path: str | os.PathLike[str] | None = None,
    *,
    sinks: Iterable[IoCaptureSink | str] = (),
    listeners: Iterable[Any] = (),
    resume_cache: FedCache | None = None,
    durability: str | None = None,
    content: str | None = None,
    value_bytes: int | str | None = None,
    segment_bytes: int | str | None = None,
    queue: int | None = None,
    origin: str | None = None,
    session_attribute: str | None = None,
    sessions: bool | None = None,
    run_id: str | None = None,
    redact: Any = None,
    wire: bool | None = None,
    wire_paths: str | None = None,
    enabled: bool | None = None,
    log_level: str | None = None,
    forward: Iterable[SpanProcessor] = (),
    events: Any = None,
) -> Recorder:
    """Record every agent step of this process into ``path``.

    Adds a span and a log processor to OTel's global providers, and makes SDK providers where there are none. Call it before
    the instrumentations are started, so that they are asked for content in time. Called again with the same path it returns
    the same recorder; after its ``shutdown()`` another one may be configured. When the process is recorded from outside
    already (``otel-agentrec run``), that recorder is returned and nothing else changes.

    Args:
        path: the recording directory; default ``OTEL_AGENTREC_PATH``.
        sinks: receive node records; or names of them, as in ``OTEL_AGENTREC_SINKS``.
        listeners: receive the events of every ``agent_run`` of this process.
        resume_cache: a ``ResumeCache`` that is fed with what is recorded.
        redact: rules that take secrets out of what is recorded: see ``Redactor.from_setting``.
        wire: also record model calls as they stand on the wire, with the provider's own request and response bytes.
        forward: processors that get every span of the global provider once its event is written, with its stamp; such as
            ``[BatchSpanProcessor(OTLPSpanExporter())]``, which then stands nowhere else.
        events: ``otlp``: every event of the recording also goes out as an OTLP log record; or an exporter of log records.
        durability, content, value_bytes, segment_bytes, queue, origin, session_attribute, sessions, run_id, wire_paths, enabled,
            log_level: see ``otel_agentrec.settings``.

    Raises:
        ConfigurationError: no path, a setting that can't be used, or recording to another path already.
    """
    global _configured
    settings = Settings.load(
        path=path,
        durability=durability,
        content=content,
        value_bytes=value_bytes,
        segment_bytes=segment_bytes,
        queue=queue,
        origin=origin,
        session_attribute=session_attribute,
        sessions=sessions,
        run_id=run_id,
        redact=redact,
        wire=wire,
        wire_paths=wire_paths,
        enabled=enabled,
        log_level=log_level,
        events=events,
    )
    with _LOCK:
        there = _configured
        is_ours = there is not None and not there.is_closed and not there.is_from_outside
        if there is not None and is_ours and settings.path and place_of(settings.path) != there.place:
            raise ConfigurationError(
                f"already recording to {there.path}, not to {settings.path}",
                "call shutdown() on the recorder that configure() returned first, or give the same path",
            )
        recorder = recorder_at(settings, sinks=sinks, way=CONFIGURE)
        recorder.listeners.extend(listeners)
        feed(recorder, resume_cache)
        _configured = recorder
    if settings.enabled:
        _start(recorder, settings, [one for one in forward if not recorder.outlets.has(one)])
    return recorder


def start_from_environment(way: str, **arguments: Any) -> Recorder | None:
    """Record this process as ``OTEL_AGENTREC_*`` say; None when they switch recording off.

    Args:
        way: how the user switched it on.
        arguments: settings that beat the environment.

    Raises:
        ConfigurationError: a setting has a value that can't be used.
    """
    recorder = join_from_outside(way, **arguments)
    if recorder is not None:
        attach_to_providers(recorder, way)
    return recorder


def provider_from_environment(make: Callable[[], Any]) -> Any:
    """A provider that is recorded as ``OTEL_AGENTREC_*`` say.

    Args:
        make: makes it.

    Raises:
        ConfigurationError: a variable has a value that can't be used.
    """
    recorder = join_from_outside(PROVIDER)
    provider = make()
    if recorder is not None:
        attach(recorder, provider, PROVIDER)
    return provider


def join_from_outside(way: str, *, whole_process: bool = True, **arguments: Any) -> Recorder | None:
    """The recorder of this process, for a way that is switched on around the program; None when there is none to be.

    Says so when the way was named and no path was.

    Args:
        way: how the user switched it on.
        whole_process: there is to be one recorder whatever paths are named elsewhere; else one for each path.
        arguments: settings that beat the environment.

    Raises:
        ConfigurationError: a setting has a value that can't be used.
    """
    global _configured
    settings = Settings.load(**arguments)
    if not settings.enabled:
        return None
    if not settings.path:
        if not is_recording():
            PROCESS.notices.once(
                "no path", f"{way} has no path to record to: set OTEL_AGENTREC_PATH; nothing is recorded"
            )
        return None
    if _sdk_is_disabled():
        PROCESS.notices.once("disabled", DISABLED)
        return None
    with _LOCK:
        recorder = recorder_at(settings, way=way, from_outside=whole_process)
        if whole_process and (_configured is None or _configured.is_closed):
            _configured = recorder
    _prepare(settings)
    return recorder


def _start(recorder: Recorder, settings: Settings, forward: Sequence[SpanProcessor]) -> None:
    _prepare(settings)
    if _sdk_is_disabled():
        recorder.notices.once("disabled", DISABLED)
    else:
        attach_to_providers(recorder, CONFIGURE, forward)


def _prepare(settings: Settings) -> None:
    show_log(settings.log_level)
    if settings.content != "off":
        ask_for_content()


def _sdk_is_disabled() -> bool:
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def attach_to_providers(recorder: Recorder, way: str, forward: Sequence[SpanProcessor] = ()) -> None:
    """Attach to OTel's global providers; where there are none, make them."""
    tracer_provider = trace.get_tracer_provider()
    if isinstance(tracer_provider, trace.ProxyTracerProvider):
        trace.set_tracer_provider(make_tracer_provider())
        tracer_provider = trace.get_tracer_provider()
    attach(recorder, tracer_provider, way, forward)
    logger_provider = _logs.get_logger_provider()
    if type(logger_provider).__name__ == "ProxyLoggerProvider":
        from opentelemetry.sdk._logs import LoggerProvider

        _logs.set_logger_provider(LoggerProvider())
        logger_provider = _logs.get_logger_provider()
    # a way that brings processors to forward to has its use, also where the records come by another one
    attach(recorder, logger_provider, None if forward else way)


def show_log(level: str | None) -> None:
    if level is None:
        return
    log.setLevel(level.upper())
    if not any(isinstance(handler, logging.StreamHandler) for handler in log.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("otel-agentrec %(levelname)s %(message)s"))
        log.addHandler(handler)
