"""What OpenTelemetry loads by name (entry points).

OTel loads these in every program of an environment in which this package is installed, without a guard of its own. So this
module imports nothing but the standard library; all else is imported inside a guard, after the path variable is seen.

As the module of ``opentelemetry_environment_variables`` it also gives ``opentelemetry-instrument`` its flags: each
``OTEL_AGENTREC_X`` below becomes ``--agentrec_x``.
"""

from __future__ import annotations

import os
import sys

OTEL_AGENTREC_PATH = "OTEL_AGENTREC_PATH"
OTEL_AGENTREC_ENABLED = "OTEL_AGENTREC_ENABLED"
OTEL_AGENTREC_DURABILITY = "OTEL_AGENTREC_DURABILITY"
OTEL_AGENTREC_QUEUE = "OTEL_AGENTREC_QUEUE"
OTEL_AGENTREC_CONTENT = "OTEL_AGENTREC_CONTENT"
OTEL_AGENTREC_SEGMENT_BYTES = "OTEL_AGENTREC_SEGMENT_BYTES"
OTEL_AGENTREC_ORIGIN = "OTEL_AGENTREC_ORIGIN"
OTEL_AGENTREC_SESSION_ATTRIBUTE = "OTEL_AGENTREC_SESSION_ATTRIBUTE"
OTEL_AGENTREC_REDACT = "OTEL_AGENTREC_REDACT"
OTEL_AGENTREC_RUN_ID = "OTEL_AGENTREC_RUN_ID"
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
        from otel_agentrec.capture.configure import start_from_environment

        start_from_environment("opentelemetry-instrument")
    except Exception as error:
        _say(f"not recording: {error}", getattr(error, "hint", ""))


def _say(text: str, hint: str = "") -> None:
    try:
        print(f"otel-agentrec: {text}" + (f" ({hint})" if hint else ""), file=sys.stderr)
    except Exception:
        pass
