"""OpenTelemetry's and our own variables: what they let through, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from otel_agentrec.capture.doctor.finding import Finding, note, ok, problem
from otel_agentrec.capture.doctor.interpreter import Interpreter
from otel_agentrec.errors import ConfigurationError
from otel_agentrec.settings import Settings, unknown_names

__all__ = ["LIMITS", "check_limits", "check_sampler", "check_settings", "check_switches"]

Environ = Mapping[str, str]

SDK_COUNT = 128
"""Attributes of a span that OTel's SDK keeps unless told otherwise; beyond it the oldest are dropped."""
LIMITS = (
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "OTEL_SPAN_LINK_COUNT_LIMIT",
    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
)
"""The variables that OTel's SDK reads as a number, and does not start when one is none."""
SAFE_COUNT = 1_024
SAFE_LENGTH = 1_048_576

_SAMPLES_ALL = ("", "always_on", "parentbased_always_on")
_SAMPLES_NONE = ("always_off", "parentbased_always_off")
_RATIOS = ("traceidratio", "parentbased_traceidratio")


def check_settings(environ: Environ) -> Iterator[Finding]:
    """Our own variables."""
    for name, nearest in unknown_names(environ).items():
        yield note(f"settings.unknown.{name}", f"{name} is not a setting", "it has no effect", nearest)
    try:
        settings = Settings.load(environ)
    except ConfigurationError as error:
        yield problem("settings", str(error), "recording does not start", error.hint)
        return
    if not settings.enabled:
        yield problem(
            "settings.enabled", "OTEL_AGENTREC_ENABLED is false", "nothing is recorded", "unset OTEL_AGENTREC_ENABLED"
        )
    if settings.content == "off":
        yield note(
            "settings.content",
            "OTEL_AGENTREC_CONTENT=off",
            "calls are recorded without messages, arguments and results",
            "unset OTEL_AGENTREC_CONTENT",
        )
    if settings.durability == "deferred":
        yield note(
            "settings.durability",
            "OTEL_AGENTREC_DURABILITY=deferred",
            "what ended in the last 20 ms is lost when the process is killed",
            "OTEL_AGENTREC_DURABILITY=written",
        )


def check_switches(environ: Environ, python: Interpreter | None) -> Iterator[Finding]:
    """What turns OpenTelemetry off, or is ignored by it."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield problem(
            "otel.disabled",
            "OTEL_SDK_DISABLED=true",
            "OpenTelemetry makes no spans, so nothing is recorded",
            "unset OTEL_SDK_DISABLED",
        )
    disabled = {name.strip() for name in environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")} - {""}
    if "*" in disabled:
        yield problem(
            "otel.instrumentations",
            "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=*",
            "no instrumentation is started: calls make no spans",
            "unset OTEL_PYTHON_DISABLED_INSTRUMENTATIONS",
        )
    if environ.get("OTEL_EXPERIMENTAL_CONFIG_FILE") and not environ.get("OTEL_CONFIG_FILE"):
        yield note(
            "otel.config_file",
            "OTEL_EXPERIMENTAL_CONFIG_FILE is set",
            "OpenTelemetry for Python does not read it",
            "name the file in OTEL_CONFIG_FILE",
        )
    file = environ.get("OTEL_CONFIG_FILE")
    if file and not Path(file).is_file():
        yield problem(
            "otel.config_file",
            f"OTEL_CONFIG_FILE names {file}, which is not there",
            "OpenTelemetry does not start",
            "correct OTEL_CONFIG_FILE",
        )
    elif file and python is not None and not python.has("opentelemetry-configuration"):
        yield problem(
            "otel.config_file",
            "OTEL_CONFIG_FILE is set, opentelemetry-configuration is not installed",
            "OpenTelemetry does not start",
            python.pip("install opentelemetry-configuration"),
        )
    elif file:
        yield note(
            "otel.config_file",
            f"OTEL_CONFIG_FILE={file}",
            "samplers, limits and exporters are read from it, not from variables; only a configurator reads it",
        )


def check_sampler(environ: Environ) -> Finding:
    name = environ.get("OTEL_TRACES_SAMPLER", "").strip().lower()
    if name in _SAMPLES_ALL:
        return ok("sampler", f"sampler {name or 'parentbased_always_on'}", "every trace that begins here is recorded")
    why = "what a sampler drops reaches no recorder"
    mend = "OTEL_TRACES_SAMPLER=parentbased_always_on, and sample in the Collector"
    if name in _SAMPLES_NONE:
        return problem("sampler", f"OTEL_TRACES_SAMPLER={name}: no trace that begins here is recorded", why, mend)
    if name in _RATIOS:
        try:
            ratio = float(environ.get("OTEL_TRACES_SAMPLER_ARG", ""))
        except ValueError:
            ratio = 1.0
        if ratio >= 1:
            return ok("sampler", f"sampler {name}, ratio 1", "every trace that begins here is recorded")
        return problem(
            "sampler", f"OTEL_TRACES_SAMPLER={name}: about {ratio:.0%} of the traces are recorded", why, mend
        )
    return note(
        "sampler", f"OTEL_TRACES_SAMPLER={name}, a sampler of your own", why, "let it sample every agent's trace"
    )


def check_limits(environ: Environ, flat: bool) -> Iterator[Finding]:
    """Limits of attributes.

    Args:
        flat: an instrumentation is installed that spreads each message over several attributes.
    """
    for name in LIMITS:
        value = environ.get(name, "").strip()
        if value and not value.isdecimal():
            yield problem(
                f"limits.unreadable.{name}",
                f"{name}={value} is no limit",
                "OpenTelemetry's SDK refuses to start with it",
                f"unset {name}, or give a whole number from 0 on",
            )
    name, count = _limit(environ, "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT")
    raise_it = f"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT={4 * SAFE_COUNT}"
    if count is not None and count < SDK_COUNT:
        yield problem(
            "limits.count",
            f"{name}={count}",
            "beyond it the oldest attributes of a span are dropped, first those that say what it is",
            raise_it,
        )
    elif flat and (count is None or count < SAFE_COUNT):
        yield note(
            "limits.count",
            f"a span keeps {count or SDK_COUNT} attributes"
            + ("" if count else " where the program sets its own provider"),
            "OpenInference needs several for each message: of a long history the beginning is dropped",
            raise_it,
        )
    else:
        yield ok("limits.count", f"a span keeps {count or 'enough'} attributes")
    name, length = _limit(environ, "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT")
    if length is not None and length < SAFE_LENGTH:
        yield problem(
            "limits.length",
            f"{name}={length}",
            "longer messages are cut off, and their JSON can't be read any more; OpenTelemetry does not count what it cut",
            f"unset {name}",
        )
    else:
        yield ok("limits.length", "attribute values are not cut" + (f" below {length} characters" if length else ""))
    for name, least in (
        ("OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT", SAFE_LENGTH),
        ("OTEL_SPAN_EVENT_COUNT_LIMIT", 128),
    ):
        _, number = _limit(environ, name)
        if number is not None and number < least:
            yield note(
                f"limits.{name}", f"{name}={number}", "messages that come in events are cut or dropped", f"unset {name}"
            )


def _limit(environ: Environ, *names: str) -> tuple[str, int | None]:
    """The first of these variables that is set, and its number."""
    for name in names:
        value = environ.get(name, "").strip()
        if value:
            return name, int(value) if value.isdecimal() else None
    return names[0], None
