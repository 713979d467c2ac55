"""How an adapter is put in place and taken out, and what is said where a framework has changed."""

from __future__ import annotations

import functools
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from otel_agentrec.intercept import install
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.tools import adapters
from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.patching import Patches, is_point
from otel_agentrec.intercept.tools.point import Point, Seen

from .answering import Keeping

POINT = Point("test", lambda x: Seen("tool", {"x": x}))


def use(x: int) -> int:
    return x + 1


def patch(module: Any, patches: Patches) -> None:
    patches.put(module, "use", POINT.sync)


ADAPTER = ToolAdapter("test", "pytest", {"made_up": patch}, point="`made_up.use`", checked="1")


@pytest.fixture
def made_up() -> Any:
    module = ModuleType("made_up")
    module.use = use  # type: ignore[attr-defined]
    return module


def test_a_patched_function_is_a_point_once(made_up: Any) -> None:
    first, second = ADAPTER.patch(made_up), ADAPTER.patch(made_up)
    assert (first.covered, first.library, first.level, len(first.replacements)) == (True, "pytest", "tool", 1)
    assert first.version == pytest.__version__
    assert len(second.replacements) == 0
    keeper = Keeping()
    with using(tools=keeper):
        assert made_up.use(1) == 2
    assert len(keeper.asked) == 1


def test_taken_out_the_original_stands_there_again(made_up: Any) -> None:
    patched = ADAPTER.patch(made_up)
    assert is_point(made_up.use)
    assert [replacement.undo() for replacement in patched.replacements] == [True]
    assert made_up.use is use


def test_what_another_has_wrapped_since_stays_and_lets_all_pass(made_up: Any) -> None:
    patched = ADAPTER.patch(made_up)
    theirs = made_up.use = functools.wraps(made_up.use)(lambda x, inner=made_up.use: inner(x) * 10)
    assert not is_point(theirs)
    assert [replacement.undo() for replacement in patched.replacements] == [False]
    assert made_up.use is theirs
    assert theirs(1) == 20


def test_a_framework_that_has_changed_is_not_covered_and_says_why() -> None:
    patched = ADAPTER.patch(ModuleType("made_up"))
    assert (patched.covered, patched.replacements) == (False, [])
    assert patched.reason == "AttributeError: module 'made_up' has no attribute 'use'"


def test_every_framework_stands_in_the_coverage() -> None:
    rows = {row["library"] for row in install.coverage() if row["level"] == "tool"}
    assert rows >= {adapter.package for adapter in adapters()}


def test_adapters_have_names_of_their_own_and_import_no_framework() -> None:
    hooks = [adapter.hook for adapter in adapters()]
    assert len(hooks) == len(set(hooks))
    code = """
import sys
from otel_agentrec.intercept.tools import adapters
print(*sorted({name.partition('.')[0] for adapter in adapters() for name in adapter.modules} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
