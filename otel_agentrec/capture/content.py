"""Asking instrumentations for content: most leave messages, arguments and results out unless told otherwise.

Each has a switch of its own, and what one reads as *yes* is invalid for another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping

__all__ = ["CONTENT_VARIABLES", "IN_CODE", "SWITCHES", "advice", "ask_for_content"]

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"
LATEST = "gen_ai_latest_experimental"

CONTENT_VARIABLES: dict[str, str] = {
    CAPTURE: "SPAN_ONLY",
    OPT_IN: LATEST,
    "OTEL_INSTRUMENTATION_OPENAI_AGENTS_CAPTURE_CONTENT": "true",
    "TRACELOOP_TRACE_CONTENT": "true",
    "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE": "content",
    "HAYSTACK_CONTENT_TRACING_ENABLED": "true",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS": "true",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE": "true",
    "OTEL_LOG_USER_PROMPTS": "1",
    "OTEL_LOG_TOOL_DETAILS": "1",
    "OTEL_LOG_TOOL_CONTENT": "1",
}
"""Variable -> the value with which its instrumentation tells content. ``true`` is invalid for the first one in current OTel
instrumentations, and the only value that their predecessors (``openai-v2``) know, unless the second one makes those read the
first as the current ones do. The last three are read by Claude Code, which an agent starts as a process of its own."""

IN_CODE = "in code: "
SWITCHES: tuple[tuple[str, str], ...] = (
    ("opentelemetry.instrumentation.genai.", f"{CAPTURE}=SPAN_ONLY"),
    ("opentelemetry.instrumentation.google_genai", f"{CAPTURE}=SPAN_ONLY"),
    ("opentelemetry.instrumentation.openai_v2", f"{CAPTURE}=true"),
    ("opentelemetry.instrumentation.vertexai", f"{CAPTURE}=true"),
    ("opentelemetry.instrumentation.botocore", f"{CAPTURE}=true"),
    ("opentelemetry.instrumentation.ag2", f"{IN_CODE}TelemetryMiddleware(capture_content=True)"),
    ("opentelemetry.instrumentation.", "TRACELOOP_TRACE_CONTENT=true"),
    ("traceloop.", "TRACELOOP_TRACE_CONTENT=true"),
    ("com.anthropic.sdk.", "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content"),
    ("com.anthropic.claude_code.", "OTEL_LOG_USER_PROMPTS=1"),
    ("openinference.", "OPENINFERENCE_HIDE_INPUTS=false"),
    ("haystack", "HAYSTACK_CONTENT_TRACING_ENABLED=true"),
    ("semantic_kernel", "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true"),
    ("agent_framework", f"{IN_CODE}enable_instrumentation(enable_sensitive_data=True)"),
    ("pydantic-ai", f"{IN_CODE}InstrumentationSettings(include_content=True)"),
    ("", f"{CAPTURE}=SPAN_ONLY"),
)
"""First part of an instrumentation scope -> what lets content out of it. Scopes that belong to two instrumentations
(``opentelemetry.instrumentation.openai_agents``) are told by the more common one."""


def ask_for_content(environ: MutableMapping[str, str] | None = None) -> None:
    """Set the content variables that the user has not set. What an instrumentation read before this call stays as it was.

    The variable that lists opt-ins keeps what is in it. It is left alone where the user speaks to instrumentations that know
    only ``true``: with it, they would not understand that any more.
    """
    environ = os.environ if environ is None else environ
    speaks_old = environ.get(CAPTURE, "").strip().lower() in ("true", "1")
    for name, value in CONTENT_VARIABLES.items():
        if name == OPT_IN:
            listed = [one.strip() for one in environ.get(name, "").split(",") if one.strip()]
            if not speaks_old and not any(one.startswith("gen_ai") for one in listed):
                environ[name] = ",".join([*listed, value])
        elif not environ.get(name):
            environ[name] = value


def advice(scope: str, environ: Mapping[str, str] | None = None) -> str:
    """What the user can do so that an instrumentation tells content, as the end of a sentence."""
    environ = os.environ if environ is None else environ
    switch = next(switch for prefix, switch in SWITCHES if scope.startswith(prefix))
    if switch.startswith(IN_CODE):
        return f"switch it on {switch}"
    name, _, value = switch.partition("=")
    now = environ.get(name)
    if now == value:
        return f"{switch} is set, but it must be before the instrumentation starts"
    return f"set {switch} before the program starts" + (f" (it is {now} now)" if now else "")


def missing(scope: str) -> tuple[str, str]:
    """What to tell of a model call that came without its messages: the kind of the notice, and its text."""
    told = advice(scope)
    return f"content {told}", (
        f"a model call of {scope or 'an unnamed instrumentation'} came without its messages, content is not captured there: "
        f"{told} (said once)"
    )
