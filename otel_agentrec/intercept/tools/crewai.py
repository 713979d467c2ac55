"""crewai: a tool called by the model's own tool calls (``run``, ``arun``), and one called in text (``CrewStructuredTool``).

Both end in the tool's ``_run`` or its function, which users override; so what calls those is patched. A call that is
answered counts against ``max_usage_count`` as one that ran does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.notes import stands_for
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import Point, Seen

__all__ = ["ADAPTER"]

CONTAINERS = "BaseAgentTool"
"""Base class of the tools that give work to another agent of the crew."""


def _used(tool: Any, *args: Any, **kwargs: Any) -> Seen:
    """``BaseTool.run``: arguments by position get the names of the schema's fields."""
    fields = list(getattr(tool.args_schema, "model_fields", None) or ())
    named = {**dict(zip(fields, args, strict=False)), **kwargs}
    if len(args) > len(fields):
        named["args"] = args[len(fields) :]
    return Seen(tool.name, named, kind="container" if _delegates(tool) else None)


def _invoked(tool: Any, input: Any, config: Any = None, **kwargs: Any) -> Seen:
    """``CrewStructuredTool.invoke``: ``input`` is a dict or its JSON; ``config`` is the framework's."""
    if isinstance(input, str):
        input = json.loads(input)
    original = getattr(tool, "_original_tool", None)
    return Seen(tool.name, {**input, **kwargs}, kind="container" if _delegates(original) else None)


def _delegates(tool: Any) -> bool:
    return any(cls.__name__ == CONTAINERS for cls in type(tool).__mro__)


_USED = Point("crewai", _used)
_INVOKED = Point("crewai", _invoked)


def _run(original: Callable[..., Any]) -> Callable[..., Any]:
    asked = _USED.sync(original)

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE.tools is None or self.max_usage_count is None:
            return asked(self, *args, **kwargs)
        before = self.current_usage_count
        try:
            return asked(self, *args, **kwargs)
        finally:
            if self.current_usage_count == before:
                self._claim_usage()

    return stands_for(original, run)


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    for cls in (module.BaseTool, module.Tool):
        patches.put(cls, "run", _run)
        patches.put(cls, "arun", _USED.coroutine)


def _patch_structured(module: ModuleType, patches: Patches) -> None:
    patches.put(module.CrewStructuredTool, "invoke", _INVOKED.sync)
    patches.put(module.CrewStructuredTool, "ainvoke", _INVOKED.coroutine)


ADAPTER = ToolAdapter(
    hook="crewai",
    package="crewai",
    modules={"crewai.tools.base_tool": _patch_tools, "crewai.tools.structured_tool": _patch_structured},
    point="`BaseTool.run` and `arun`, those of `Tool`, `CrewStructuredTool.invoke` and `ainvoke`",
    checked="1.15.30",
    beside="A tool whose class overrides run is seen only where that calls the inherited one. A result that crewai takes "
    "from its own cache is no call.",
)
