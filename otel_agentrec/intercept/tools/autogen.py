"""autogen: ``run`` of every tool that is called through ``BaseTool.run_json``, inside the span that opens there.

``run`` is abstract, so a class of tools is patched when the first of its tools is called. A tool that runs an agent or a
team is left alone: it runs again, and the tools in it are answered.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from otel_agentrec.errors import RunStopped
from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.notes import Note, Notes, stands_for
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import Point, Seen

__all__ = ["ADAPTER"]


def _note(tool: Any, args: Any, cancellation_token: Any, call_id: str | None = None) -> Note:
    _patch_class_of(tool)
    return Note(tool, dict(args), call_id)


_NOTES = Notes("autogen", _note)


def _seen(tool: Any, args: Any, cancellation_token: Any = None) -> Seen | None:
    if hasattr(tool, "_task_runner"):
        return None
    note = _NOTES.of(tool)
    if note is not None:
        return Seen(tool.name, note.arguments, note.call_id)
    return Seen(tool.name, args.model_dump(mode="json"))


_POINT = Point("autogen", _seen)
_PATCHES: list[Patches] = []
"""Those of :func:`_patch`, while they are in place."""


def _patch_class_of(tool: Any) -> None:
    """The class that gives this tool its ``run`` is patched, if that is not done yet."""
    owner = next(cls for cls in type(tool).__mro__ if "run" in vars(cls))
    for patches in _PATCHES:
        patches.put(owner, "run", _POINT.coroutine)


def _patch(module: ModuleType, patches: Patches) -> None:
    patches.put(module.BaseTool, "run_json", _NOTES.coroutine)
    _PATCHES[:] = [patches]


def _patch_function_tool(module: ModuleType, patches: Patches) -> None:
    patches.put(module.FunctionTool, "run", _POINT.coroutine)


def _patch_assistant(module: ModuleType, patches: Patches) -> None:
    patches.put(module.AssistantAgent, "_execute_tool_call", _released)


def _released(original: Any) -> Any:
    """A run that is stopped ends: without this the agent waits for ever for the end of its stream of tool events, which
    comes only when every tool has given something or raised an Exception."""
    execute = original.__func__ if isinstance(original, staticmethod) else original

    async def execute_tool_call(*args: Any, **kwargs: Any) -> Any:
        try:
            return await execute(*args, **kwargs)
        except RunStopped:
            stream = kwargs.get("stream")
            if stream is not None:
                stream.put_nowait(None)
            raise

    return staticmethod(stands_for(execute, execute_tool_call))


ADAPTER = ToolAdapter(
    hook="autogen",
    package="autogen-core",
    modules={
        "autogen_core.tools._base": _patch,
        "autogen_core.tools._function_tool": _patch_function_tool,
        "autogen_agentchat.agents._assistant_agent": _patch_assistant,
    },
    point="`FunctionTool.run`, and `run` of any tool called by `BaseTool.run_json`",
    checked="0.7.5",
    gives="name, arguments, call id",
    beside="An agent or a team as a tool runs again; the tools in it are answered. A tool that streams is not seen.",
)
