"""Asking instrumentations for content: most leave messages, arguments and results out unless an environment variable says so."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

__all__ = ["CONTENT_VARIABLES", "ask_for_content"]

CONTENT_VARIABLES: dict[str, str] = {
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_OPENAI_AGENTS_CAPTURE_CONTENT": "true",
    "TRACELOOP_TRACE_CONTENT": "true",
    "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE": "content",
    "HAYSTACK_CONTENT_TRACING_ENABLED": "true",
}
"""Variable -> the value with which its instrumentation puts content on spans. ``true`` is invalid for the first one in current
OTel instrumentations, and the only value that their predecessors (``openai-v2`` before 2.2) know; the second one makes those
read the first as the current ones do."""


def ask_for_content(environ: MutableMapping[str, str] | None = None) -> None:
    """Set the content variables that the user has not set. What an instrumentation read before this call stays as it was."""
    environ = os.environ if environ is None else environ
    for name, value in CONTENT_VARIABLES.items():
        environ.setdefault(name, value)
