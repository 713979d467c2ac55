"""What an adapter is: where a framework runs its tools, and how that is patched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from otel_agentrec.intercept.tools.patching import Patches

__all__ = ["ToolAdapter"]

Patch = Callable[[ModuleType, Patches], None]


@dataclass(frozen=True, slots=True)
class ToolAdapter:
    """One framework.

    ``modules``: what to patch once a module of that name is loaded; a patch is idempotent and raises
    :class:`~otel_agentrec.intercept.tools.patching.MissingPoint` where the framework has changed. The rest is for people:
    ``point`` names the function; ``checked`` the versions that its tests ran with; ``gives`` what is told of a call;
    ``beside`` what its users must know (what is not seen, what comes back differently).
    """

    hook: str
    package: str
    """The distribution, for its version."""
    modules: Mapping[str, Patch]
    point: str
    checked: str
    gives: str = "name, arguments"
    beside: str = ""

    def patch(self, module: ModuleType | Any, patches: Patches) -> None:
        """Patch one of ``modules``."""
        self.modules[module.__name__](module, patches)
