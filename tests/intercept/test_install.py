"""Points are put in when their module is imported, reported, and taken out again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import wrapt

from otel_agentrec.intercept import install
from otel_agentrec.intercept.patching import Patched, Replacement, replace


@pytest.fixture(autouse=True)
def only_these_points(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(install, "_POINTS", [])
    monkeypatch.setattr(install, "NOT_INTERCEPTED", {})  # other tests of this process import what it names
    monkeypatch.setattr(install, "_register_own", lambda: None)
    yield
    install.uninstall()


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that can be imported and is not yet."""
    (tmp_path / "borrowed.py").write_text("__version__ = '1.2'\nclass Client:\n    def send(self): return 'real'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "borrowed"
    sys.modules.pop("borrowed", None)


def shout(module: ModuleType) -> Patched:
    made = replace(module.Client, "send", lambda original: lambda self: original(self) + "!")
    return Patched("borrowed", module.__version__, "client", replacements=[made])


def test_a_module_is_patched_right_after_its_import(library: str) -> None:
    install.register(library, shout)
    install.install()
    assert library not in sys.modules
    assert install.coverage() == [
        {"library": "borrowed", "version": None, "level": "tool", "covered": False, "reason": "not imported"}
    ]
    import borrowed  # type: ignore[import-not-found]

    assert borrowed.Client().send() == "real!"
    assert install.coverage() == [{"library": "borrowed", "version": "1.2", "level": "client", "covered": True}]


def test_a_module_that_is_there_is_patched_at_once_and_only_once(library: str) -> None:
    import borrowed

    client = borrowed.Client()
    install.install()
    install.register(library, shout)
    install.register(library, shout)
    install.install()
    assert client.send() == "real!"
    install.uninstall()
    assert client.send() == "real"
    install.install()
    assert client.send() == "real!"


def test_a_point_that_is_switched_off_before_the_import_stays_off(library: str) -> None:
    install.register(library, shout)
    install.install()
    install.uninstall()
    import borrowed

    assert borrowed.Client().send() == "real"
    assert install.coverage()[0]["reason"] == "not installed"


def test_a_missing_place_is_reported_and_the_import_goes_on(library: str, caplog: pytest.LogCaptureFixture) -> None:
    def misses(module: ModuleType) -> Patched:
        return Patched("borrowed", "1", "client", replacements=[replace(module.Client, "gone", lambda original: None)])

    install.register(library, misses, level="client")
    install.install()
    import borrowed

    install.install()
    assert borrowed.Client().send() == "real"
    (row,) = install.coverage()
    assert (row["version"], row["covered"]) == ("1.2", False)
    assert "gone" in row["reason"]
    assert len(caplog.records) == 1


def test_without_wrapt_a_late_import_is_reported(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wrapt", None)
    install.register(library, shout)
    install.install()
    assert "wrapt is not installed" in install.coverage()[0]["reason"]


class Base:
    def send(self) -> str:
        return "real"


def wrapped(by: str) -> Any:
    return lambda call, instance, args, kwargs: f"{by}({call(*args, **kwargs)})"


def put_in(owner: Any) -> Replacement:
    return replace(owner, "send", lambda original: lambda self: f"ours({original(self)})")


def test_a_patch_goes_under_wrappers_so_that_theirs_come_off_as_they_expect() -> None:
    class Client(Base):
        def send(self) -> str:
            return super().send()

    wrapt.wrap_function_wrapper(Client, "send", wrapped("theirs"))
    made = put_in(Client)
    assert Client().send() == "theirs(ours(real))"
    Client.send = Client.send.__wrapped__  # type: ignore[method-assign]  # what OTel's unwrap does
    assert Client().send() == "ours(real)"
    assert made.undo()
    assert Client().send() == "real"


def test_a_wrapper_put_over_ours_stays_when_ours_goes() -> None:
    class Client(Base):
        def send(self) -> str:
            return super().send()

    made = put_in(Client)
    wrapt.wrap_function_wrapper(Client, "send", wrapped("theirs"))
    assert Client().send() == "theirs(ours(real))"
    assert made.undo()
    assert Client().send() == "theirs(real)"


def test_what_others_replaced_is_left_alone() -> None:
    class Client(Base):
        def send(self) -> str:
            return "own"

    made = put_in(Client)
    theirs = Client.send = lambda self: "theirs"  # type: ignore[assignment, method-assign]
    assert not made.undo()
    assert Client.__dict__["send"] is theirs


def test_an_inherited_method_is_patched_for_this_class_only() -> None:
    class Client(Base):
        pass

    made = put_in(Client)
    assert (Client().send(), Base().send()) == ("ours(real)", "real")
    assert made.undo()
    assert "send" not in vars(Client)
