"""The first thing that runs in a program under ``otel-agentrec run``.

The program's own set-up must find OTel untouched: no provider is set before it had its chance. Whatever provider the program
sets gets our processor; if it sets none, an SDK provider is made when the first span is started. Should the program set its
own even later, the tracers that are in use by then are moved to it.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import _internal as logs
from opentelemetry.util._once import Once

from otel_agentrec.capture import configure
from otel_agentrec.capture.content import ask_for_content
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.instrumentors import start_instrumentors
from otel_agentrec.capture.providers import attach, make_tracer_provider
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.capture.recorders import recorder_at
from otel_agentrec.capture.ways import INSTRUMENT, INSTRUMENTOR, RUN
from otel_agentrec.settings import Settings

__all__ = ["Providers", "start", "tell_at_end"]


def start(is_the_command: bool) -> None:
    """Record this process. Never raises.

    Args:
        is_the_command: this is the process that the user asked for, not one that it started: it says at its end what was
            recorded.
    """
    PROCESS.run("the start of recording", _start, is_the_command)


def _start(is_the_command: bool) -> None:
    settings = Settings.load()
    if not settings.path or not settings.enabled:
        return
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        if is_the_command:
            PROCESS.notices.once("disabled", "OTEL_SDK_DISABLED=true: OpenTelemetry is off, nothing is recorded")
        return
    recorder = recorder_at(settings, way=RUN)
    if is_the_command:
        tell_at_end(recorder)  # registered first, so it runs last
    if recorder.way in (INSTRUMENT, INSTRUMENTOR):  # opentelemetry-instrument was here already
        return
    configure.show_log(settings.log_level)
    if settings.content != "off":
        ask_for_content()
    for variable, group in _PROVIDERS.items():
        _forget_unknown(variable, group)
    providers = Providers(recorder)
    providers.watch()
    start_instrumentors(recorder.guard, lambda provider: attach(recorder, provider))


class Providers:
    """OTel's global providers under watch."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._guard = recorder.guard
        self._lock = threading.Lock()
        self._ours: list[Any] = []
        """Providers that we made and set, because the program had set none yet: at most one for traces and one for logs."""
        self._maker: int | None = None

    def watch(self) -> None:
        """Look at every provider that is set from now on, and make one when the first span or log record needs it."""
        self._watch_setting(trace, "_set_tracer_provider", "_TRACER_PROVIDER")
        self._watch_setting(logs, "_set_logger_provider", "_LOGGER_PROVIDER")
        self._watch_use(trace.ProxyTracer, "_tracer", lambda: trace._TRACER_PROVIDER is None)
        self._watch_use(logs.ProxyLogger, "_logger", lambda: logs._LOGGER_PROVIDER is None)
        for provider in (trace._TRACER_PROVIDER, logs._LOGGER_PROVIDER):
            if provider is not None:
                attach(self._recorder, provider)

    def _watch_setting(self, module: Any, setter: str, holder: str) -> None:
        original = getattr(module, setter)

        def set_provider(provider: Any, log: bool) -> None:
            self._guard.run(setter, self._make_room, module, holder)
            self._guard.run(setter, attach, self._recorder, provider)
            original(provider, log)
            if getattr(module, holder) is provider:
                self._guard.run(setter, self._move_to, provider)

        setattr(module, setter, set_provider)

    def _watch_use(self, proxy: Any, name: str, nobody_set_one: Any) -> None:
        original = getattr(proxy, name).fget

        def real(proxy_self: Any) -> Any:
            if nobody_set_one():
                self._guard.run("the first span", self._make)
            return original(proxy_self)

        setattr(proxy, name, property(real))

    def _make_room(self, module: Any, holder: str) -> None:
        """OTel lets a provider be set once. Ours only stood in for the program's own: it gives way."""
        if getattr(module, holder) in self._ours:
            setattr(module, holder, None)
            setattr(module, f"{holder}_SET_ONCE", Once())

    def _make(self) -> None:
        """Set the providers that the program did not set."""
        if self._maker == threading.get_ident():  # a span that is started by what we start here
            return
        with self._lock:
            self._maker = threading.get_ident()
            try:
                self._make_missing()
            finally:
                self._maker = None

    def _make_missing(self) -> None:
        if _asked_for_exporters() and trace._TRACER_PROVIDER is None:
            self._guard.run("OTel's configurator", _run_configurator)
        if trace._TRACER_PROVIDER is None:
            provider = trace.get_tracer_provider()  # may load the one that OTEL_PYTHON_TRACER_PROVIDER names
            if isinstance(provider, trace.ProxyTracerProvider):
                made = make_tracer_provider()
                self._ours.append(made)
                trace.set_tracer_provider(made)
        if logs._LOGGER_PROVIDER is None:
            logger_provider = logs.get_logger_provider()
            if isinstance(logger_provider, logs.ProxyLoggerProvider):
                from opentelemetry.sdk._logs import LoggerProvider

                made_for_logs = LoggerProvider()
                self._ours.append(made_for_logs)
                logs.set_logger_provider(made_for_logs)

    def _move_to(self, provider: Any) -> None:
        """Tracers that got their spans from our stand-in get them from the program's provider from now on, so that its
        exporters miss none. Spans that are open end where they began."""
        for stand_in in [one for one in self._ours if hasattr(one, "add_span_processor")]:
            if stand_in is provider or not hasattr(provider, "_active_span_processor"):
                continue
            self._ours.remove(stand_in)
            for processor in stand_in._active_span_processor._span_processors:
                self._recorder.release(processor)
            atexit.unregister(stand_in.shutdown)
            stand_in._active_span_processor = provider._active_span_processor
            stand_in.sampler, stand_in.id_generator = provider.sampler, provider.id_generator
            stand_in._span_limits, stand_in._resource = provider._span_limits, provider.resource
            for tracer in stand_in._tracers.values():
                tracer.span_processor = provider._active_span_processor
                tracer.sampler, tracer.id_generator = provider.sampler, provider.id_generator
                tracer._span_limits, tracer.resource = provider._span_limits, provider.resource


_PROVIDERS = {
    "OTEL_PYTHON_TRACER_PROVIDER": "opentelemetry_tracer_provider",
    "OTEL_PYTHON_LOGGER_PROVIDER": "opentelemetry_logger_provider",
}


def _forget_unknown(variable: str, group: str) -> None:
    """A variable that names a provider which is not installed would end the program's first call of OpenTelemetry."""
    from opentelemetry.util._importlib_metadata import entry_points

    named = os.environ.get(variable)
    if named and not entry_points(group=group, name=named):
        del os.environ[variable]
        known = ", ".join(sorted({point.name for point in entry_points(group=group)}))
        PROCESS.notices.once(
            variable, f"{variable}={named} names no provider that is installed; it is left out ({known} are)"
        )


def _asked_for_exporters() -> bool:
    asked = [os.environ.get(name) for name in ("OTEL_TRACES_EXPORTER", "OTEL_LOGS_EXPORTER", "OTEL_CONFIG_FILE")]
    return any(value and value.strip() != "none" for value in asked)


def _run_configurator() -> None:
    """Make the providers that OTel's variables ask for, as ``opentelemetry-instrument`` does."""
    from opentelemetry.util._importlib_metadata import entry_points

    named = os.environ.get("OTEL_PYTHON_CONFIGURATOR")
    for entry_point in entry_points(group="opentelemetry_configurator"):
        if named in (None, entry_point.name):
            entry_point.load()().configure()
            return


def tell_at_end(recorder: Recorder) -> None:
    """Have this process say at its end what was recorded."""
    atexit.register(_say_what_was_recorded, recorder, os.getpid())


def _say_what_was_recorded(recorder: Recorder, pid: int) -> None:
    if os.getpid() != pid:  # a forked child
        return
    recorder.force_flush()
    stats = recorder.stats()
    nodes, dropped = stats["nodes"], stats["dropped"]
    if nodes or dropped:
        lost = f", {dropped} events lost" if dropped else ""
        calls = "1 model or tool call" if nodes == 1 else f"{nodes} model and tool calls"
        text = f"{calls} recorded in {recorder.path}{lost}; to see them: otel-agentrec show {recorder.path}"
    else:
        text = (
            "no model or tool call was seen by any instrumentation, nothing to record; "
            "to see why: otel-agentrec doctor -- and the same command"
        )
    recorder.notices.once("end", text)
