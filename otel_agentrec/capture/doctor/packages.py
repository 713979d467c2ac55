"""What recording itself needs: versions, entry points, extras."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from otel_agentrec._version import __version__
from otel_agentrec.capture.doctor.finding import Finding, note, ok, problem
from otel_agentrec.capture.doctor.interpreter import Interpreter, numbers

__all__ = ["EXTRAS", "check_entry_points", "check_extras", "check_versions"]

OURS = "otel-agentrec"

EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "run": (
        "`run` starts no instrumentations",
        ("opentelemetry.instrumentation.instrumentor", "opentelemetry.distro", "wrapt"),
    ),
    "demo": (
        "`demo` does not work",
        ("openai", "opentelemetry.util.genai", "opentelemetry.instrumentation.genai.openai"),
    ),
    "prices": ("`stats --cost` does not work", ("genai_prices",)),
    "web": ("`serve` does not work", ("uvicorn",)),
    "sql": ("sessions and events are kept in no database", ("sqlalchemy", "psycopg")),
}
"""Extra -> (what is missing without it, modules that it brings)."""

GROUPS = (
    "opentelemetry_pre_instrument",
    "opentelemetry_post_instrument",
    "opentelemetry_environment_variables",
    "opentelemetry_tracer_provider",
    "opentelemetry_logger_provider",
    "opentelemetry_traces_exporter",
    "opentelemetry_logs_exporter",
    "opentelemetry_instrumentor",
    "opentelemetry_genai_completion_hook",
)


def check_versions(python: Interpreter) -> Iterator[Finding]:
    if numbers(python.version) and numbers(python.version)[:2] < (3, 10):
        yield problem(
            "python",
            f"Python {python.version} at {python.path}",
            "otel-agentrec needs 3.10 or newer",
            "use a newer Python",
        )
    else:
        yield ok("python", f"Python {python.version or '3'} at {python.path}")
    if python.is_ours:
        yield ok("agentrec", f"otel-agentrec {__version__}")
    elif python.has(OURS):
        yield ok("agentrec", f"otel-agentrec {python.version_of(OURS)} is installed there")
    else:
        yield problem(
            "agentrec",
            f"otel-agentrec is not installed for {python.path}",
            "a program can only be recorded by the interpreter that runs it",
            python.pip("install 'otel-agentrec[run]'"),
        )
    yield from _otel(python)


def _otel(python: Interpreter) -> Iterator[Finding]:
    sdk, api = python.version_of("opentelemetry-sdk"), python.version_of("opentelemetry-api")
    if sdk is None:
        if python.is_ours or python.has(OURS):
            yield problem(
                "otel.sdk",
                "opentelemetry-sdk is not installed",
                "nothing makes spans",
                python.pip("install opentelemetry-sdk"),
            )
        return
    if numbers(sdk) < (1, 45):
        yield problem(
            "otel.sdk",
            f"opentelemetry-sdk {sdk}",
            "before 1.45 it drops attribute values that are lists of objects: messages are lost",
            python.pip("install --upgrade 'opentelemetry-sdk>=1.45,<2'"),
        )
    elif api is not None and numbers(api)[:2] != numbers(sdk)[:2]:
        yield note(
            "otel.sdk",
            f"opentelemetry-sdk {sdk} beside opentelemetry-api {api}",
            "they are released together, and other pairs are not tested",
            python.pip(f"install opentelemetry-api=={sdk}"),
        )
    else:
        yield ok("otel.sdk", f"opentelemetry-sdk {sdk}")


def check_entry_points(python: Interpreter) -> Iterator[Finding]:
    """Whether OpenTelemetry finds us by name, and in our own interpreter whether what it finds can be loaded."""
    if not python.has(OURS):
        if python.is_ours:
            yield note(
                "entry_points",
                "otel-agentrec runs from a directory, it is not installed",
                "`run` and configure() work, what OpenTelemetry loads by name does not",
                "pip install it into this environment",
            )
        return
    found = {}
    for group in GROUPS:
        for package, point in python.entry_points(group):
            if point.name == "agentrec" and package.metadata["Name"] == OURS:
                found[group] = point
    missing = [group for group in GROUPS if group not in found]
    if missing:
        yield problem(
            "entry_points",
            f"the installed otel-agentrec lacks {', '.join(missing)}",
            "OpenTelemetry does not find it by these names",
            "install it anew",
        )
    broken = False
    for group, point in found.items() if python.is_ours else ():
        try:
            point.load()
        except Exception as error:
            broken = True
            yield problem(
                f"entry_points.{group}",
                f"{point.value} can't be loaded: {type(error).__name__}: {' '.join(str(error).split())}",
                "what it is for does not work",
                "pip install 'otel-agentrec[run]'",
            )
    if not missing and not broken:
        yield ok("entry_points", f"OpenTelemetry finds otel-agentrec by {len(found)} entry points")


def check_extras() -> Iterator[Finding]:
    """Which commands lack packages, in our own interpreter."""
    for extra, (without, modules) in EXTRAS.items():
        missing = [module for module in modules if not _is_there(module)]
        if missing:
            yield note(
                f"extra.{extra}",
                f"{', '.join(missing)} is not installed",
                without,
                f"pip install 'otel-agentrec[{extra}]'",
            )
        else:
            yield ok(f"extra.{extra}", f"the extra {extra} is installed")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
