"""Switching the points of interception on and off, and what they cover.

A point is a function that patches one module (:data:`~otel_agentrec.intercept.patching.Patch`). It runs when that module
has been imported: at once if it is there already, else right after its import. Nothing is imported for it. A place that
a version of a library does not have is logged once and shows in :func:`coverage`; it never fails an import.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from otel_agentrec.capture.guard import PROCESS, log
from otel_agentrec.intercept.endpoints import add_paths
from otel_agentrec.intercept.inuse import is_in_use
from otel_agentrec.intercept.patching import Patch, Patched

__all__ = ["coverage", "covered_tools", "install", "is_installed", "register", "uninstall"]

NOT_INTERCEPTED = {
    "grpc": "gRPC is not intercepted",
    "websockets": "WebSocket (realtime) is not intercepted",
}
"""Module -> why what goes through it is not seen; told of when the module is imported."""


@dataclass(slots=True, eq=False)
class _Point:
    module: str
    patch: Patch
    library: str
    level: str
    patched: Patched | None = None
    waiting: bool = False
    """A hook waits for the import of ``module``."""


_POINTS: list[_Point] = []
_state = {"on": False}


def register(module: str, patch: Patch, *, library: str | None = None, level: str = "tool") -> None:
    """Add a point. It is applied by :func:`install`; at once when that was called before.

    Args:
        module: dotted name of the module whose import it waits for.
        patch: is given that module; gives what it did. The same function is registered once for a module.
        library: how coverage names it while ``module`` is not imported; default: the first part of its name.
        level: where it catches calls, as :class:`Patched` has it.
    """
    if any(point.module == module and point.patch == patch for point in _POINTS):
        return
    point = _Point(module, patch, library or module.partition(".")[0], level)
    _POINTS.append(point)
    if _state["on"]:
        _apply(point)


def install(paths: str | Iterable[str] | None = None) -> None:
    """Switch all points on. Does nothing to those that are on.

    Args:
        paths: globs of paths that are model calls beside the known ones; see :func:`.endpoints.add_paths`.
    """
    add_paths(paths)
    PROCESS.run("the points of interception", _register_own)
    _state["on"] = True
    for point in list(_POINTS):
        _apply(point)


def is_installed() -> bool:
    """Whether the points are on."""
    return _state["on"]


def uninstall() -> None:
    """Switch all points off: what we replaced and is still ours is put back; what others have wrapped stays, and passes
    every call through while nobody answers or watches."""
    _state["on"] = False
    for point in _POINTS:
        patched, point.patched = point.patched, None
        for replacement in reversed(patched.replacements if patched is not None else ()):
            PROCESS.run("uninstall", replacement.undo)


def coverage() -> list[dict[str, Any]]:
    """What is intercepted here: a row ``{library, version, level, covered, reason?}`` per point, in order of registration.

    ``reason`` says why a point is not covered: its library is not imported (yet), has no such place, or can't be hooked.
    """
    PROCESS.run("the points of interception", _register_own)
    rows = [_row(point) for point in _POINTS]
    for module, reason in NOT_INTERCEPTED.items():
        if module in sys.modules:
            version = _version(sys.modules[module])
            rows.append({"library": module, "version": version, "level": "-", "covered": False, "reason": reason})
    return rows


def covered_tools() -> list[str]:
    """The frameworks of this process whose tool calls are intercepted: used by the program, and hooked."""
    done = [(point.patched, point.module) for point in _POINTS if point.level == "tool"]
    hooked = [(patched, module) for patched, module in done if patched is not None and patched.covered]
    return list(dict.fromkeys(patched.library for patched, module in hooked if is_in_use(module)))


def _register_own() -> None:
    """The points of this package. Their modules import none of the libraries that they patch."""
    from otel_agentrec.intercept import aiohttp_points, httpx_points, tools, urllib3_points

    for library in ("httpx", "httpx2"):
        register(library, httpx_points.client_point, level="client")
        register(library, httpx_points.transport_point, level="transport")
    register("urllib3", urllib3_points.pool_point, level="pool")
    register("aiohttp", aiohttp_points.client_point, level="client")
    tools.register_all()


def _row(point: _Point) -> dict[str, Any]:
    done = point.patched
    if done is None:
        reason = "not imported" if _state["on"] else "not installed"
        if _state["on"] and not point.waiting:
            reason = "not imported when recording began, and wrapt is not installed (extra: run)"
        return {"library": point.library, "version": None, "level": point.level, "covered": False, "reason": reason}
    row: dict[str, Any] = {
        "library": done.library,
        "version": done.version,
        "level": done.level,
        "covered": done.covered,
    }
    if done.reason is not None:
        row["reason"] = done.reason
    return row


def _apply(point: _Point) -> None:
    if point.patched is not None:
        return
    module = sys.modules.get(point.module)
    if module is not None:
        _patch(point, module)
    elif not point.waiting:
        PROCESS.run(f"the hook for {point.module}", _wait_for_import, point)


def _wait_for_import(point: _Point) -> None:
    try:
        from wrapt import register_post_import_hook
    except ImportError:
        return

    def imported(module: ModuleType) -> None:
        point.waiting = False
        if _state["on"] and point.patched is None:
            _patch(point, module)

    point.waiting = True
    register_post_import_hook(imported, point.module)


def _patch(point: _Point, module: ModuleType) -> None:
    try:
        point.patched = point.patch(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        point.patched = Patched(point.library, _version(module), point.level, covered=False, reason=reason)
    if not point.patched.covered:
        done = point.patched
        log.warning("%s %s is not intercepted (%s): %s", done.library, done.version, done.level, done.reason)


def _version(module: ModuleType) -> str | None:
    """The version of the package that a module belongs to."""
    package = sys.modules.get(module.__name__.partition(".")[0], module)
    version = getattr(package, "__version__", None)
    return version if isinstance(version, str) else None
