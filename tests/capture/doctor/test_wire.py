"""What doctor says of the wire."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.doctor.interpreter import Interpreter
from otel_agentrec.capture.doctor.wire import INTERCEPTED, check_wire
from otel_agentrec.intercept.install import coverage


class Package:
    version = "1.2"


def python(*names: str) -> Interpreter:
    packages: Any = dict.fromkeys(names, Package())
    return Interpreter("python", "3.11", packages)


@pytest.mark.parametrize(
    ("installed", "environ", "level", "says"),
    [
        (("httpx2", "urllib3"), {}, "ok", "the wire of httpx2 1.2, urllib3 1.2"),
        ((), {}, "note", "none of httpx, httpx2"),
        (("httpx",), {"OTEL_AGENTREC_WIRE": "false"}, "note", "OTEL_AGENTREC_WIRE=false"),
    ],
)
def test_what_is_intercepted_is_named(
    installed: tuple[str, ...], environ: dict[str, str], level: str, says: str
) -> None:
    (finding,) = check_wire(environ, python(*installed))
    assert (finding.id, finding.level) == ("wire", level)
    assert says in finding.what


def test_these_are_the_libraries_that_have_points() -> None:
    points = {row["library"] for row in coverage() if row["level"] not in ("tool", "-")}
    assert points == set(INTERCEPTED)
