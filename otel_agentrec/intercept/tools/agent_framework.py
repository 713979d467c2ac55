"""agent-framework: ``FunctionTool.__call__``, inside the span of the tool and before its result is parsed."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.codecs import Codec, register
from otel_agentrec.intercept.tools.notes import Note, Notes, stands_for
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import Point, Seen

__all__ = ["ADAPTER"]


def _note(tool: Any, *args: Any, **kwargs: Any) -> Note:
    return Note(tool, None, kwargs.get("tool_call_id"))


_NOTES = Notes("agent_framework", _note)


def _seen(tool: Any, *args: Any, **kwargs: Any) -> Seen:
    kwargs.pop(getattr(tool, "_context_parameter_name", None) or "", None)
    if args:
        kwargs["args"] = args
    note = _NOTES.of(tool)
    inside = getattr(tool.func, "__qualname__", "")
    return Seen(
        tool.name,
        kwargs,
        note.call_id if note is not None else None,
        kind="container" if ".as_tool.<locals>." in inside else None,
    )


def _is_content(value: Any) -> bool:
    """A ``Content``, or a list of them: what tools give that give more than text."""
    if isinstance(value, list):
        return bool(value) and all(type(item).__name__ == "Content" and _is_content(item) for item in value)
    return type(value).__name__ == "Content" and type(value).__module__.startswith("agent_framework.")


def _content(kept: Any) -> Any:
    from agent_framework import Content  # type: ignore[import-not-found, unused-ignore]

    return [Content.from_dict(item) for item in kept] if isinstance(kept, list) else Content.from_dict(kept)


_CONTENT = register(
    Codec(
        "agent-framework.Content",
        fits=_is_content,
        encode=lambda value: [item.to_dict() for item in value] if isinstance(value, list) else value.to_dict(),
        decode=_content,
    )
)
_POINT = Point("agent-framework", _seen, [_CONTENT])


def _call(original: Callable[..., Any]) -> Callable[..., Any]:
    async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await original(self, *args, **kwargs)

    plain, later = _POINT.sync(original), _POINT.coroutine(awaited)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE.tools is None:
            return original(self, *args, **kwargs)
        if inspect.iscoroutinefunction(self.func):
            return _counted(self, later(self, *args, **kwargs))
        before = self.invocation_count
        try:
            return plain(self, *args, **kwargs)
        finally:
            _count(self, before)

    return stands_for(original, call)


async def _counted(tool: Any, call: Awaitable[Any]) -> Any:
    before = tool.invocation_count
    try:
        return await call
    finally:
        _count(tool, before)


def _count(tool: Any, before: int) -> None:
    """An answered call counts against ``max_invocations`` as one that ran does."""
    if tool.max_invocations is not None and tool.invocation_count == before:
        tool.invocation_count = before + 1


def _patch(module: ModuleType, patches: Patches) -> None:
    patches.put(module.FunctionTool, "__call__", _call)
    patches.put(module.FunctionTool, "invoke", _NOTES.coroutine)


ADAPTER = ToolAdapter(
    hook="agent-framework",
    package="agent-framework-core",
    modules={"agent_framework._tools": _patch},
    point="`FunctionTool.__call__`",
    checked="1.23.0",
    gives="name, arguments, call id",
    beside="What a tool changes in its FunctionInvocationContext (the session's state, the list of tools) is not kept.",
)
