"""A framework that only an instrumentation has imported is not one that the program uses."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from otel_agentrec.intercept import install, inuse
from otel_agentrec.intercept.patching import Patched

FRAMEWORK = """
class Agent:
    def run(self, asks): return asks()
def run(asks): return asks()
"""


@pytest.fixture(autouse=True)
def only_this_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(install, "_POINTS", [])
    monkeypatch.setattr(install, "_register_own", lambda: None)
    monkeypatch.setattr(inuse, "_EARLY", set())
    monkeypatch.setattr(inuse, "_FOUND", set())
    (tmp_path / "workshop").mkdir()
    (tmp_path / "workshop" / "__init__.py").write_text("")
    (tmp_path / "workshop" / "tools.py").write_text(FRAMEWORK)
    monkeypatch.syspath_prepend(tmp_path)
    install.register("workshop.tools", lambda module: Patched("workshop", "1", "tool"))
    install.install()
    yield
    install.uninstall()
    for name in ("workshop", "workshop.tools", "a_program"):
        sys.modules.pop(name, None)


def framework() -> ModuleType:
    return importlib.import_module("workshop.tools")


def program(code: str = "") -> dict[str, Any]:
    """The globals of a module of the program."""
    made = ModuleType("a_program")
    sys.modules["a_program"] = made
    exec(f"def ask(covered, *held):\n    {code or 'pass'}\n    return covered()", made.__dict__)
    return made.__dict__


def asked(around: Callable[[Callable[[], Any]], Any] = lambda ask: ask()) -> list[str]:
    """What counts as covered when the program asks its model, called by ``around``. Nothing of this module holds a framework."""
    found: list[str] = around(install.covered_tools)
    return found


def test_one_that_the_program_imports_counts() -> None:
    inuse.program_begins()
    assert asked() == []
    importlib.import_module("workshop.tools")
    assert asked() == ["workshop"]


def test_one_that_was_there_before_does_not() -> None:
    importlib.import_module("workshop.tools")
    inuse.program_begins()
    here = program()
    assert asked(here["ask"]) == []


def test_unless_it_makes_the_call() -> None:
    importlib.import_module("workshop.tools")
    inuse.program_begins()
    assert asked(sys.modules["workshop.tools"].run) == ["workshop"]
    assert asked() == ["workshop"], "the program uses it, whoever makes the next call"


@pytest.mark.parametrize("code", ["import workshop.tools", "from workshop.tools import run", "agent = held[0]"])
def test_or_a_function_of_the_program_around_the_call_has_something_of_it(code: str) -> None:
    importlib.import_module("workshop.tools")
    inuse.program_begins()
    here, made = program(code), [sys.modules["workshop.tools"].Agent] if "held" in code else []
    assert asked(lambda ask: here["ask"](ask, *(one() for one in made))) == ["workshop"]


@pytest.mark.parametrize("what", ["module", "class", "function", "object", "method"])
def test_or_a_module_of_the_program_has(what: str) -> None:
    tools = importlib.import_module("workshop.tools")
    values = {
        "module": tools,
        "class": tools.Agent,
        "function": tools.run,
        "object": tools.Agent(),
        "method": tools.Agent().run,
    }
    inuse.program_begins()
    program()["held"] = values[what]
    del tools, values
    assert asked() == ["workshop"]


def test_where_nobody_says_that_a_program_begins_all_count() -> None:
    importlib.import_module("workshop.tools")
    assert asked() == ["workshop"]


def test_packages_that_share_a_name_are_told_apart() -> None:
    assert inuse._root("google.adk.tools.function_tool") == "google.adk"
    assert inuse._root("agents.tool") == "agents"
