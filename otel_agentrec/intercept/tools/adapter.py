"""What an adapter is: where a framework runs its tools, and how that is patched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from otel_agentrec.intercept.patching import Patched
from otel_agentrec.intercept.tools.patching import Patches

__all__ = ["ToolAdapter"]


@dataclass(frozen=True, slots=True)
class ToolAdapter:
    """One framework.

    ``modules``: what to patch once a module of that name is loaded: ``patch(module, patches)`` is idempotent and raises
    AttributeError where the framework has changed. The rest is for people: ``point`` names the functions; ``checked`` the
    versions that its tests ran with; ``gives`` what is told of a call; ``beside`` what its users must know: what is not
    seen, what comes back differently.
    """

    hook: str
    package: str
    """The distribution, for its version."""
    modules: Mapping[str, Callable[[Any, Patches], None]]
    point: str
    checked: str
    gives: str = "name, arguments"
    beside: str = ""

    def patch(self, module: ModuleType) -> Patched:
        """Patch one of ``modules``."""
        patches = Patches()
        try:
            self.modules[module.__name__](module, patches)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            return Patched(self.package, self.version(), "tool", False, reason, patches.made)
        return Patched(self.package, self.version(), "tool", replacements=patches.made)

    def version(self) -> str | None:
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None
