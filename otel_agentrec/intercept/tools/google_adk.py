"""google-adk: ``FunctionTool._invoke_callable``, after arguments are checked and a confirmation is given.

A tool may also set the session's state and the event's actions through its ``tool_context``. What it changed there is kept
with its result and done again when the call is answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.codecs import Codec, from_json, register, to_json
from otel_agentrec.intercept.tools.notes import Note, Notes, stands_for
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import Point, Seen

__all__ = ["ADAPTER"]

CONTROL = ("google.adk.tools.exit_loop_tool", "google.adk.tools.transfer_to_agent_tool")
"""Tools of the framework that only steer the run: they always run."""


def _note(tool: Any, *, args: Any, tool_context: Any) -> Note:
    return Note(tool, args, getattr(tool_context, "function_call_id", None))


_NOTES = Notes("google_adk", _note)


@dataclass(frozen=True, slots=True)
class _Acted:
    """A result, and the actions of its event that the tool set: field -> value."""

    value: Any
    actions: dict[str, Any]


_ACTED = register(
    Codec(
        "google-adk.Acted",
        fits=lambda value: isinstance(value, _Acted),
        encode=lambda acted: {
            "value": to_json(acted.value),
            "actions": {name: to_json(value) for name, value in acted.actions.items()},
        },
        decode=lambda kept: _Acted(
            from_json(kept["value"]), {name: from_json(value) for name, value in kept["actions"].items()}
        ),
    )
)


def _seen(tool: Any, target: Any, args_to_call: dict[str, Any]) -> Seen | None:
    if target is not tool.func or getattr(target, "__module__", None) in CONTROL:
        return None
    note = _NOTES.of(tool)
    if note is not None:
        return Seen(tool.name, note.arguments, note.call_id)
    injected = set(tool._ignore_params)
    return Seen(tool.name, {name: value for name, value in args_to_call.items() if name not in injected})


_POINT = Point("google-adk", _seen, [_ACTED])


def _context(tool: Any, args_to_call: Any) -> Any:
    return args_to_call.get(tool._context_param_name) if isinstance(args_to_call, dict) else None


def _invoke(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def invoked(self: Any, target: Any, args_to_call: dict[str, Any]) -> Any:
        context = _context(self, args_to_call)
        if context is None or ACTIVE.tools is None:
            return await original(self, target, args_to_call)
        before = _actions(context)
        value = await original(self, target, args_to_call)
        changed = {name: now for name, now in _actions(context).items() if now != before[name]}
        return _Acted(value, changed) if changed else value

    asked = _POINT.coroutine(invoked)

    async def invoke(self: Any, target: Any, args_to_call: dict[str, Any]) -> Any:
        result = await asked(self, target, args_to_call)
        if not isinstance(result, _Acted):
            return result
        _act(_context(self, args_to_call), result.actions)
        return result.value

    return stands_for(original, invoke)


def _actions(context: Any) -> dict[str, Any]:
    """The fields of the event's actions as they are now."""
    actions = context.actions
    values = {name: getattr(actions, name) for name in type(actions).model_fields}
    return {name: dict(value) if isinstance(value, dict) else value for name, value in values.items()}


def _act(context: Any, actions: dict[str, Any]) -> None:
    """Set what the tool had set; where it ran just now that is there already."""
    if context is None:
        return
    for name, value in actions.items():
        if name == "state_delta":
            for key, item in value.items():
                context.state[key] = item
        else:
            setattr(context.actions, name, value)


def _patch(module: ModuleType, patches: Patches) -> None:
    patches.put(module.FunctionTool, "_invoke_callable", _invoke)
    patches.put(module.FunctionTool, "run_async", _NOTES.coroutine)


ADAPTER = ToolAdapter(
    hook="google-adk",
    package="google-adk",
    modules={"google.adk.tools.function_tool": _patch},
    point="`FunctionTool._invoke_callable`",
    checked="2.13.0",
    gives="name, arguments, call id",
    beside="The session's state and the actions that a tool sets through its tool_context are kept with its result. Tools "
    "that are generators, and other BaseTool classes (an agent as a tool among them), are not seen; the tools inside are.",
)
