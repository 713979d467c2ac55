"""What OpenTelemetry loads by name (entry points).

OTel loads these in every program of an environment in which this package is installed, without a guard of its own. So this
module imports nothing but the standard library; all else is imported inside a guard, after the path variable is seen.

Exporters and the instrumentor stand in modules of their own, since they need OTel's base classes.

As the module of ``opentelemetry_environment_variables`` it also gives ``opentelemetry-instrument`` its flags: each
``OTEL_AGENTREC_X`` below becomes ``--agentrec_x``.
"""

from __future__ import annotations

import os
import sys
from typing import Any

OTEL_AGENTREC_PATH = "OTEL_AGENTREC_PATH"
OTEL_AGENTREC_ENABLED = "OTEL_AGENTREC_ENABLED"
OTEL_AGENTREC_DURABILITY = "OTEL_AGENTREC_DURABILITY"
OTEL_AGENTREC_QUEUE = "OTEL_AGENTREC_QUEUE"
OTEL_AGENTREC_CONTENT = "OTEL_AGENTREC_CONTENT"
OTEL_AGENTREC_VALUE_BYTES = "OTEL_AGENTREC_VALUE_BYTES"
OTEL_AGENTREC_SINKS = "OTEL_AGENTREC_SINKS"
OTEL_AGENTREC_SEGMENT_BYTES = "OTEL_AGENTREC_SEGMENT_BYTES"
OTEL_AGENTREC_ORIGIN = "OTEL_AGENTREC_ORIGIN"
OTEL_AGENTREC_SESSION_ATTRIBUTE = "OTEL_AGENTREC_SESSION_ATTRIBUTE"
OTEL_AGENTREC_SESSIONS = "OTEL_AGENTREC_SESSIONS"
OTEL_AGENTREC_REDACT = "OTEL_AGENTREC_REDACT"
OTEL_AGENTREC_WIRE = "OTEL_AGENTREC_WIRE"
OTEL_AGENTREC_EVENTS = "OTEL_AGENTREC_EVENTS"
OTEL_AGENTREC_RUN_ID = "OTEL_AGENTREC_RUN_ID"
OTEL_AGENTREC_RESUME = "OTEL_AGENTREC_RESUME"
OTEL_AGENTREC_RESUME_RUN = "OTEL_AGENTREC_RESUME_RUN"
OTEL_AGENTREC_WIRE_PATHS = "OTEL_AGENTREC_WIRE_PATHS"
OTEL_AGENTREC_ON_DIVERGENCE = "OTEL_AGENTREC_ON_DIVERGENCE"
OTEL_AGENTREC_RERUN_TOOLS = "OTEL_AGENTREC_RERUN_TOOLS"
OTEL_AGENTREC_RERUN_PROCESSES = "OTEL_AGENTREC_RERUN_PROCESSES"
OTEL_AGENTREC_INERT = "OTEL_AGENTREC_INERT"
OTEL_AGENTREC_RETRIES = "OTEL_AGENTREC_RETRIES"
OTEL_AGENTREC_LOG_LEVEL = "OTEL_AGENTREC_LOG_LEVEL"


def pre_instrument() -> None:
    """Ask for content before the instrumentations start, for they read their switches then.

    Entry point group ``opentelemetry_pre_instrument``. Does nothing unless ``OTEL_AGENTREC_PATH`` is set. Never raises.
    """
    if not os.environ.get(OTEL_AGENTREC_PATH):
        return
    try:
        from otel_agentrec.capture.content import ask_for_content
        from otel_agentrec.settings import Settings

        settings = Settings.load()
        if settings.enabled and settings.content != "off":
            ask_for_content()
    except Exception:
        pass  # post_instrument meets the same error and says so


def post_instrument() -> None:
    """Start recording under ``opentelemetry-instrument`` (entry point group ``opentelemetry_post_instrument``).

    Does nothing unless ``OTEL_AGENTREC_PATH`` is set. Never raises: an exception here would end the start of the other
    instrumentations.
    """
    if not os.environ.get(OTEL_AGENTREC_PATH):
        return
    try:
        import otel_agentrec.otel.recording  # noqa: F401 - brings the points of interception
        from otel_agentrec.capture.configure import start_from_environment
        from otel_agentrec.capture.ways import INSTRUMENT

        recorder = start_from_environment(INSTRUMENT)
        if recorder is not None and os.environ.get("OTEL_AGENTREC__PID") == str(os.getpid()):
            from otel_agentrec.capture.bootstrap import tell_at_end

            tell_at_end(
                recorder
            )  # below `otel-agentrec run`, whose own start opentelemetry-instrument keeps from happening
    except Exception as error:
        say(f"not recording: {error}", getattr(error, "hint", ""))


class _CompletionHook:
    def on_completion(self, **told: Any) -> None:
        if "otel_agentrec.capture.recorder" not in sys.modules:  # nobody records
            return
        try:
            from otel_agentrec.capture.hook import complete

            complete(**told)
        except Exception as error:
            say(f"the completion hook is of no use: {error}")


def completion_hook() -> _CompletionHook:
    """The hook that ``OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=agentrec`` names (entry point group
    ``opentelemetry_genai_completion_hook``): what models were asked and answered, whatever the content switch says. It feeds
    the recorders of the process; without one it does nothing. Never raises."""
    return _CompletionHook()


def tracer_provider() -> Any:
    """A tracer provider that is recorded: ``OTEL_PYTHON_TRACER_PROVIDER=agentrec``.

    Entry point group ``opentelemetry_tracer_provider``. OTel calls it when the program first asks for a tracer and has set no
    provider. Never raises: what is wrong is said on stderr, and the provider is one that is not recorded.
    """
    try:
        import otel_agentrec.otel.recording  # noqa: F401
        from otel_agentrec.capture.configure import provider_from_environment
        from otel_agentrec.capture.providers import make_tracer_provider

        return provider_from_environment(make_tracer_provider)
    except Exception as error:
        say(f"not recording: {error}", getattr(error, "hint", ""))
    try:
        from opentelemetry.sdk.trace import TracerProvider

        return TracerProvider()
    except Exception:
        from opentelemetry.trace import NoOpTracerProvider

        return NoOpTracerProvider()


def logger_provider() -> Any:
    """A logger provider that is recorded: ``OTEL_PYTHON_LOGGER_PROVIDER=agentrec``.

    Entry point group ``opentelemetry_logger_provider``. As :func:`tracer_provider`.
    """
    try:
        from opentelemetry.sdk._logs import LoggerProvider

        import otel_agentrec.otel.recording  # noqa: F401
        from otel_agentrec.capture.configure import provider_from_environment

        return provider_from_environment(LoggerProvider)
    except Exception as error:
        say(f"not recording: {error}", getattr(error, "hint", ""))
    try:
        from opentelemetry.sdk._logs import LoggerProvider

        return LoggerProvider()
    except Exception:
        from opentelemetry._logs import NoOpLoggerProvider

        return NoOpLoggerProvider()


def say(text: str, hint: str = "") -> None:
    """One line on stderr, the same one only once. Never raises."""
    line = f"otel-agentrec: {text}" + (f" ({hint})" if hint else "")
    if line in _said:
        return
    _said.add(line)
    try:
        print(line, file=sys.stderr)
    except Exception:
        pass


_said: set[str] = set()
