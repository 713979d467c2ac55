"""haystack: ``Tool.invoke`` and ``invoke_async``; the exception of a failed tool is the framework's."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import Point, Seen

__all__ = ["ADAPTER"]

AGENT = "haystack.components.agents."
"""Components of these modules are agents: a tool of one is a container."""


def _seen(tool: Any, **kwargs: Any) -> Seen:
    """The agent's state and a streaming callback are injected: the schema for the model does not have them."""
    offered = tool.parameters.get("properties")
    if isinstance(offered, dict):
        injected = set(kwargs) - set(offered)
        kwargs = {name: value for name, value in kwargs.items() if name not in injected}
    component = type(getattr(tool, "_component", None))
    return Seen(tool.name, kwargs, kind="container" if component.__module__.startswith(AGENT) else None)


_POINT = Point("haystack", _seen)


def _patch(module: ModuleType, patches: Patches) -> None:
    patches.put(module.Tool, "invoke", _POINT.sync)
    patches.put(module.Tool, "invoke_async", _POINT.coroutine)


ADAPTER = ToolAdapter(
    hook="haystack",
    package="haystack-ai",
    modules={"haystack.tools.tool": _patch},
    point="`Tool.invoke` and `invoke_async`",
    checked="3.4.1",
    beside="What a tool writes itself into the agent's State is not kept; outputs_to_state works from the result, as ever.",
)
