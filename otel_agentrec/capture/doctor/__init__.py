"""``doctor``: what would be recorded here and what would not, found without running anything and without a network."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from otel_agentrec.capture.doctor import instrumentations, outgoing, packages, place, program, switches, wire
from otel_agentrec.capture.doctor.finding import Finding, note
from otel_agentrec.capture.doctor.interpreter import Interpreter, our_interpreter

__all__ = ["Finding", "examine"]

Environ = Mapping[str, str]
Check = Callable[[Interpreter], Iterable[Finding]]


def examine(cmd: Sequence[str] = (), environ: Environ | None = None, checks: Sequence[Check] = ()) -> list[Finding]:
    """Everything that decides whether and how a program is recorded.

    Args:
        cmd: the program's command line; then its interpreter is looked at, else the one that runs this.
        environ: its environment; default: ours.
        checks: of rooms above this one, asked while the wire is on.
    """
    environ = os.environ if environ is None else environ
    asked = program.read_program(cmd, environ) if cmd else None
    python = (asked.python if asked is not None else None) or our_interpreter()
    return list(_all(asked, python, asked.environ if asked is not None else environ, checks))


def _all(
    asked: program.Program | None, python: Interpreter, environ: Environ, checks: Sequence[Check]
) -> Iterator[Finding]:
    yield from packages.check_versions(python)
    yield from packages.check_entry_points(python)
    yield from switches.check_settings(environ)
    yield from switches.check_switches(environ, python)
    yield from outgoing.check_outgoing(environ)
    yield from instrumentations.check_instrumentations(python)
    content_is_off = environ.get("OTEL_AGENTREC_CONTENT", "").strip().lower() == "off"
    if not content_is_off:
        yield from instrumentations.check_content(python, environ, asks=True)
        yield from instrumentations.recorded(python, environ, asks=True)
    yield from wire.check_wire(environ, python)
    if wire.is_on(environ):
        for check in checks:
            yield from check(python)
    yield switches.check_sampler(environ)
    flat = any(one.maker == "openinference" for one in instrumentations.installed(python))
    yield from switches.check_limits(environ, flat)
    yield from place.check_place(environ.get("OTEL_AGENTREC_PATH") or "agentrec")
    yield from packages.check_extras()
    if asked is not None:
        yield from program.check_program(asked)
    elif environ.get("OTEL_AGENTREC_PATH") and environ.get("OTEL_PYTHON_TRACER_PROVIDER") != "agentrec":
        yield note(
            "way",
            "OTEL_AGENTREC_PATH alone switches nothing on in a program that plain python runs",
            "it takes effect under opentelemetry-instrument, or beside OTEL_PYTHON_TRACER_PROVIDER=agentrec",
            "otel-agentrec run -- python app.py",
        )
