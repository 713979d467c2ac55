"""OpenAI Agents SDK: function tools, agents as tools and tools of MCP servers, on their way into the tool.

A tool's exceptions have become text for the model below this point, unless its ``failure_error_function`` is None.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

from otel_agentrec.intercept.protocol import ToolCall
from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.codecs import Codec, from_json, register, to_json
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import Point, Seen

__all__ = ["ADAPTER"]

HOOK = "openai-agents"
FUNCTION = "_invoke_function_tool_with_metadata"
RESULT = "_FunctionToolInvocationResult"


def identify(*, function_tool: Any, context: Any, arguments: Any, **_: Any) -> Seen:
    name = getattr(function_tool, "qualified_name", None) or function_tool.name
    kind = "container" if getattr(function_tool, "_is_agent_tool", False) else None
    return Seen(name, _parsed(arguments), getattr(context, "tool_call_id", None), kind)  # type: ignore[arg-type]


def _parsed(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments


def _result_class() -> Any:
    return getattr(sys.modules.get("agents.tool"), RESULT, None)


def _is_result(value: Any) -> bool:
    cls = _result_class()
    return cls is not None and type(value) is cls


RESULTS = register(
    Codec(
        "openai-agents.FunctionToolResult",
        _is_result,
        lambda value: {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)},
        lambda kept: _result_class()(**{name: from_json(item) for name, item in kept.items()}),
    )
)


def _made(value: Any, _: ToolCall) -> Any:
    cls = _result_class()
    return value if cls is None else cls(value)


POINT = Point(HOOK, identify, [RESULTS], made=_made)


def patch_tool(module: Any, patches: Patches) -> None:
    # older versions have only the function around it, whose result is the tool's own
    patches.put(module, FUNCTION if hasattr(module, FUNCTION) else "invoke_function_tool", POINT.coroutine)


def patch_execution(module: Any, patches: Patches) -> None:
    """The module that has the function by name."""
    patches.put(module, FUNCTION if hasattr(module, FUNCTION) else "invoke_function_tool", POINT.coroutine)


ADAPTER = ToolAdapter(
    hook=HOOK,
    package="openai-agents",
    modules={"agents.tool": patch_tool, "agents.run_internal.tool_execution": patch_execution},
    point=f"`agents.tool.{FUNCTION}`",
    checked="0.24.0",
    gives="name, arguments, call id; agents as tools are told as containers",
    beside="Shell, computer, apply-patch and hosted tools, and hand-offs, are not seen. "
    "A tool's exception is recorded as the text that the SDK makes of it, unless `failure_error_function=None`.",
)
