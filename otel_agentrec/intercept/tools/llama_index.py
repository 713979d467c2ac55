"""llama-index: ``FunctionTool.call`` and ``acall``, inside the span of the tool."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from otel_agentrec.intercept.protocol import ToolCall
from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.codecs import Codec, from_json, register, to_json
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import Point, Seen

__all__ = ["ADAPTER"]

CONTROL = "llama_index.core.agent."
"""Functions of these modules are tools of the framework that steer the run (hand-offs): they always run."""


def _seen(tool: Any, *args: Any, **kwargs: Any) -> Seen | None:
    function = getattr(tool, "_real_fn", None)
    if str(getattr(function, "__module__", "")).startswith(CONTROL):
        return None
    injected = {getattr(tool, "ctx_param_name", None), *(getattr(tool, "partial_params", None) or ())}
    return Seen(
        tool.metadata.get_name(),
        {name: value for name, value in (_named(function, args) | kwargs).items() if name not in injected},
    )


def _named(function: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    if not args:
        return {}
    try:
        return dict(inspect.signature(function).bind_partial(*args).arguments)
    except (TypeError, ValueError):
        return {"args": args}


def _is_output(value: Any) -> bool:
    return type(value).__name__ == "ToolOutput" and type(value).__module__ == "llama_index.core.tools.types"


def _kept(output: Any) -> dict[str, Any]:
    return {
        "tool_name": output.tool_name,
        "blocks": [
            block.model_dump(mode="json", exclude_unset=True) | {"block_type": block.block_type}
            for block in output.blocks
        ],
        "raw_input": to_json(output.raw_input),
        "raw_output": to_json(output.raw_output),
        "is_error": output.is_error,
    }


def _output(kept: dict[str, Any]) -> Any:
    from llama_index.core.tools import ToolOutput  # type: ignore[import-not-found, unused-ignore]

    return ToolOutput(
        tool_name=kept["tool_name"],
        blocks=kept["blocks"],
        raw_input=from_json(kept["raw_input"]),
        raw_output=from_json(kept["raw_output"]),
        is_error=kept["is_error"],
    )


_OUTPUT = register(Codec("llama-index.ToolOutput", fits=_is_output, encode=_kept, decode=_output))


def _made(value: Any, call: ToolCall) -> Any:
    """As ``FunctionTool`` makes it of what a function returned."""
    from llama_index.core.base.llms.types import TextBlock  # type: ignore[import-not-found, unused-ignore]
    from llama_index.core.tools import ToolOutput

    return ToolOutput(
        tool_name=call.name,
        blocks=[TextBlock(text=str(value))],
        raw_input={"args": (), "kwargs": call.arguments},
        raw_output=value,
    )


_POINT = Point("llama-index", _seen, [_OUTPUT], made=_made)


def _patch(module: ModuleType, patches: Patches) -> None:
    patches.put(module.FunctionTool, "call", _POINT.sync)
    patches.put(module.FunctionTool, "acall", _POINT.coroutine)


ADAPTER = ToolAdapter(
    hook="llama-index",
    package="llama-index-core",
    modules={"llama_index.core.tools.function_tool": _patch},
    point="`FunctionTool.call` and `acall`",
    checked="0.14.25",
    beside="What a tool changes in the workflow's Context is not kept. Query engines and retrievers as tools are not seen: "
    "they run again.",
)
