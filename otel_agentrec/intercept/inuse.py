"""Whether the program itself uses a framework that is imported.

Under ``otel-agentrec`` the installed instrumentations are started before the program, and they import what they instrument. A
framework that is there only for them runs no tool of the program. So one that was imported before the program began counts
only once the program has to do with it: it stands on the way to the call that is made, or the program holds something of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any

__all__ = ["is_in_use", "program_begins"]

_EARLY: set[str] = set()
"""Modules that were there before the program began."""
_FOUND: set[str] = set()
"""Frameworks that the program was seen to use."""
_OF_MANY = ("google",)
"""Packages that many distributions share: what they hold is told apart by two names."""


def program_begins() -> None:
    """What is imported from now on is wanted by the program. Not called: everything is."""
    _EARLY.update(sys.modules)
    _EARLY.discard("__main__")


def is_in_use(module: str) -> bool:
    """Whether the program uses the framework of this module, which is imported. Looks at the stack of the calling thread."""
    root = _root(module)
    if module not in _EARLY or root in _FOUND:
        return True
    if _is_on_the_way(root) or _is_held(root):
        _FOUND.add(root)
    return root in _FOUND


def _is_on_the_way(root: str) -> bool:
    """Has it a part in the call that is being made, or has one of the functions around that a value of it?"""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if _is_of(name, root) or (name not in _EARLY and _any_of(list(frame.f_locals.values()), root)):
            return True
        frame = frame.f_back
    return False


def _is_held(root: str) -> bool:
    """Has one of the program's modules something of it?"""
    late = [module for name, module in list(sys.modules.items()) if name not in _EARLY]
    return any(_any_of(list(getattr(module, "__dict__", {}).values()), root) for module in late)


def _any_of(values: Iterable[object], root: str) -> bool:
    return any(_is_of(_home(value), root) for value in values)


def _home(value: Any) -> object:
    """The name of the module that something comes from: itself, its own, or that of its class."""
    kind: type = type(value)  # not isinstance, which asks proxies for what they stand for
    if kind is MethodType:
        value, kind = value.__func__, type(value.__func__)
    if issubclass(kind, ModuleType):
        return value.__dict__.get("__name__")
    is_named = kind is FunctionType or issubclass(kind, type)
    return getattr(value if is_named else kind, "__module__", None)


def _is_of(name: object, root: str) -> bool:
    return isinstance(name, str) and (name == root or name.startswith(f"{root}."))


def _root(module: str) -> str:
    first, _, rest = module.partition(".")
    return f"{first}.{rest.partition('.')[0]}" if first in _OF_MANY else first
