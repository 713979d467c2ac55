"""Pydantic AI: what an agent's toolsets are called for, functions and MCP servers alike.

The point lies inside ``ToolManager._raw_execute``, around the toolset: what the manager counts (calls, retries) and makes
of a tool's exceptions (``ModelRetry`` …) happens on resume as it did.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Awaitable, Callable
from typing import Any

from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import POINT as MARK
from otel_agentrec.intercept.tools.point import Point, Seen

__all__ = ["ADAPTER"]

HOOK = "pydantic-ai"


def identify(validated: Any, call: Any) -> Seen | None:
    if getattr(getattr(validated.tool, "tool_def", None), "kind", None) == "output":
        return None  # the agent's result, no tool
    return Seen(validated.call.tool_name, validated.call.args_as_dict(), validated.call.tool_call_id)


POINT = Point(HOOK, identify)


@POINT.coroutine
async def _called(validated: Any, call: Callable[[], Awaitable[Any]]) -> Any:
    return await call()


class _Toolset:
    """A toolset whose calls go through the point."""

    def __init__(self, toolset: Any, validated: Any) -> None:
        self.toolset = toolset
        self.validated = validated

    def __getattr__(self, name: str) -> Any:
        return getattr(self.toolset, name)

    async def call_tool(self, *args: Any, **kwargs: Any) -> Any:
        return await _called(self.validated, lambda: self.toolset.call_tool(*args, **kwargs))


def wrap(original: Any) -> Any:
    @functools.wraps(original)
    async def _raw_execute(self: Any, validated: Any, **kwargs: Any) -> Any:
        manager = self
        if ACTIVE.tools is not None:
            try:
                manager = copy.copy(self)  # its sets and counters are shared
                manager.toolset = _Toolset(self.toolset, validated)
            except Exception as error:
                PROCESS.swallow(f"the tool hook {HOOK}", error)
                manager = self
        return await original(manager, validated, **kwargs)

    setattr(_raw_execute, MARK, _raw_execute)
    return _raw_execute


def patch(module: Any, patches: Patches) -> None:
    patches.put(module.ToolManager, "_raw_execute", wrap)


ADAPTER = ToolAdapter(
    hook=HOOK,
    package="pydantic-ai-slim",
    modules={"pydantic_ai.tool_manager": patch},
    point="`ToolManager._raw_execute`, around its toolset",
    checked="2.68.0",
    gives="name, arguments, call id",
    beside="Output functions and tools of the provider are not seen.",
)
