"""What is said to be covered is what the tests of the frameworks run, in the versions that they pin."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.capture.doctor.interpreter import Interpreter
from otel_agentrec.intercept.covered import CLIENTS, check_covered
from otel_agentrec.intercept.tools import adapters
from tests.frameworks import test_wire_matrix

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)", re.MULTILINE)


def pinned(*files: Path) -> set[tuple[str, str]]:
    return {
        (name.lower().replace("_", "-"), version) for file in files for name, version in PIN.findall(file.read_text())
    }


REQUIREMENTS = ROOT / "tests" / "frameworks" / "requirements"
ALL = pinned(*REQUIREMENTS.glob("*.txt"), ROOT / "examples" / "requirements.txt", ROOT / "constraints.txt")
BROUGHT = {"openai": {"2.54.0"}, "langchain-core": {"1.8.3"}, "mcp": {"2.3.0"}}
"""Versions that other pins bring."""


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.package)
def test_an_sdk_is_asked_in_every_way_in_these_versions(client: Any) -> None:
    used = {requirements for _, requirements, _, _ in test_wire_matrix.CASES.values()}
    asked = pinned(*(REQUIREMENTS / f"{name}.txt" for name in used))
    name = client.package.replace("_", "-")
    left = set(client.checked) - {version for package, version in asked if package == name}
    assert left <= BROUGHT.get(name, set())
    libraries = {library for *_, library in test_wire_matrix.CASES.values()}
    assert set(re.findall(r"\w*http\w*|urllib3", client.by)) <= libraries


def test_every_sdk_that_is_asked_is_told_of() -> None:
    told = {re.split(r"[-_\d]", client.package)[0] for client in CLIENTS}
    assert {re.split(r"[ _\d-]", case)[0].removesuffix("ai") for case in test_wire_matrix.CASES} <= {
        name.removesuffix("ai") for name in told
    }


@pytest.mark.parametrize("adapter", adapters(), ids=lambda adapter: adapter.package)
def test_a_framework_runs_in_these_versions(adapter: Any) -> None:
    versions = {version for name, version in ALL if name == adapter.package} | BROUGHT.get(adapter.package, set())
    assert set(re.findall(r"\d[\w.]+", adapter.checked.partition("(")[0])) <= versions


@pytest.mark.parametrize(
    ("package", "version", "level", "says"),
    [
        ("openai", "3.60.1", "ok", "openai 3.60.1 are recorded on the wire; checked with 3.57.0"),
        ("openai", "4.0.0", "note", "openai 4.0.0"),
        ("anthropic", "0.125.9", "ok", "anthropic 0.125.9"),
        ("anthropic", "0.40.0", "note", "anthropic 0.40.0"),
        ("langchain-core", "1.9.0", "ok", "tool calls of langchain-core 1.9.0 are intercepted; checked with 1.8.3"),
        ("smolagents", "2.0.0", "note", "smolagents 2.0.0"),
    ],
)
def test_doctor_says_what_is_covered_and_in_which_version_it_was_checked(
    package: str, version: str, level: str, says: str
) -> None:
    class Package:
        pass

    found: Any = Package()
    found.version = version
    (finding,) = check_covered(Interpreter("python", "3.11", {package: found}))
    assert (finding.level, finding.id.partition(".")[2]) == (level, package)
    assert says in finding.what
    assert finding.level == "ok" or "checked with" in finding.why
