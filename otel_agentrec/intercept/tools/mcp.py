"""MCP clients: ``tools/call`` of a session, over any transport.

A call that a framework's tool only passes on is that tool's call, and counts once.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from otel_agentrec.intercept.protocol import ToolCall
from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.codecs import Codec, register
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import Point, Seen

__all__ = ["ADAPTER"]

HOOK = "mcp"


def identify(session: Any, name: str, arguments: Any = None, *_: Any, **__: Any) -> Seen:
    return Seen(name, arguments or {})


def _result_class() -> Any:
    return getattr(sys.modules.get("mcp.types"), "CallToolResult", None)


def _is_result(value: Any) -> bool:
    cls = _result_class()
    return cls is not None and type(value) is cls


RESULT = register(
    Codec(
        "mcp.CallToolResult",
        _is_result,
        lambda value: value.model_dump(mode="json", by_alias=True, exclude_unset=True),
        lambda kept: _result_class().model_validate(kept),
    )
)


def _made(value: Any, _: ToolCall) -> Any:
    """A whole result in JSON (``{"content": [...]}``) as it is, anything else as text."""
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        return _result_class().model_validate(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _result_class().model_validate({"content": [{"type": "text", "text": text}]})


POINT = Point(HOOK, identify, [RESULT], relays=True, made=_made)


def patch(module: Any, patches: Patches) -> None:
    patches.put(module.ClientSession, "call_tool", POINT.coroutine)


ADAPTER = ToolAdapter(
    hook=HOOK,
    package="mcp",
    modules={"mcp.client.session": patch},
    point="`ClientSession.call_tool`",
    checked="1.30.0, 2.1.1, 2.3.0",
    gives="name, arguments",
    beside="Only calls of tools: a session still starts its server, greets it and lists its tools. What a Python server records "
    "of its own side is the same call from version 2 on, which hands the trace on; before, nothing links the two.",
)
