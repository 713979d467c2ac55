"""Strands Agents: the stream of events of one tool.

A result names the call that it answers; where the model's ids are new on every run, it gets the new one. An exception that
is no ``Exception`` is lost in a task of the concurrent executor, so a refusal is raised again when that ends.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

from otel_agentrec.errors import RunStopped
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.protocol import ToolCall
from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.codecs import Codec, NotKept, from_json, register, to_json
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import POINT as MARK
from otel_agentrec.intercept.tools.point import Point, Seen
from otel_agentrec.intercept.tools.raised import error_again, error_kept

__all__ = ["ADAPTER"]

HOOK = "strands"
EVENTS = "strands.types._events"

_STOPS: ContextVar[list[RunStopped] | None] = ContextVar("agentrec_strands_stops", default=None)


def identify(ctx: Any, *_: Any, **__: Any) -> Seen | None:
    tool = ctx.tool
    if tool is None or type(tool).__name__ == "StructuredOutputTool":
        return None  # nothing runs; or the agent's result, which the framework looks for where the tool puts it
    use = ctx.tool_use
    kind = "container" if type(tool).__name__ in ("_AgentAsTool", "_SubagentTool") else None
    return Seen(use["name"], use.get("input"), use.get("toolUseId"), kind)  # type: ignore[arg-type]


def _are_events(value: Any) -> bool:
    base = getattr(sys.modules.get(EVENTS), "TypedEvent", None)
    return base is not None and type(value) is list and all(isinstance(event, base) for event in value)


def _encode(events: list[Any]) -> Any:
    return [kept for kept in map(_event_kept, events) if kept is not None]


def _event_kept(event: Any) -> Any:
    kind = type(event).__name__
    if kind == "ToolResultEvent":
        kept = {"type": kind, "result": to_json(dict(event.tool_result))}
        error = getattr(event, "exception", None)
        return kept if error is None else {**kept, "exception": error_kept(error)}
    try:
        if kind == "ToolStreamEvent":
            inner = event["tool_stream_event"]
            return {"type": kind, "tool_use": to_json(dict(inner["tool_use"])), "data": to_json(inner["data"])}
        if kind == "ToolInterruptEvent":
            inner = event["tool_interrupt_event"]
            interrupts = [to_json(interrupt) for interrupt in inner["interrupts"]]
            return {"type": kind, "tool_use": to_json(dict(inner["tool_use"])), "interrupts": interrupts}
    except NotKept:
        if kind == "ToolInterruptEvent":
            raise
    return None  # progress that can't be kept: events of an agent inside a tool hold that agent


def _decode(kept: Any) -> list[Any]:
    return [_event_again(sys.modules[EVENTS], event) for event in kept]


def _event_again(events: Any, kept: Any) -> Any:
    if kept["type"] == "ToolResultEvent":
        result = from_json(kept["result"])
        if "exception" not in kept:
            return events.ToolResultEvent(result)
        return events.ToolResultEvent(result, exception=error_again(kept["exception"]))
    if kept["type"] == "ToolStreamEvent":
        return events.ToolStreamEvent(from_json(kept["tool_use"]), from_json(kept["data"]))
    return events.ToolInterruptEvent(from_json(kept["tool_use"]), [from_json(one) for one in kept["interrupts"]])


def _made(value: Any, _: ToolCall) -> list[Any]:
    content = {"text": value} if isinstance(value, str) else {"json": value}
    result = {"toolUseId": "", "status": "success", "content": [content]}  # the id is that of the call that asks
    return [sys.modules[EVENTS].ToolResultEvent(result)]


POINT = Point(
    HOOK, identify, [register(Codec("strands.events", _are_events, _encode, _decode, lossy=True))], made=_made
)


def wrap_run(original: Any) -> Any:
    through = POINT.generator(original)

    @functools.wraps(original)
    async def _run_tool(ctx: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        events: Any = through(ctx, *args, **kwargs)
        try:
            async for event in events:
                if type(event).__name__ == "ToolResultEvent":
                    _answer_this_call(event, ctx)
                yield event
        except RunStopped as stop:
            stops = _STOPS.get()
            if stops is not None:
                stops.append(stop)
            raise
        finally:
            await events.aclose()

    setattr(_run_tool, MARK, _run_tool)
    return _run_tool


def _answer_this_call(event: Any, ctx: Any) -> None:
    wanted, result = ctx.tool_use.get("toolUseId"), event.tool_result
    if ACTIVE.tools is not None and wanted and result.get("toolUseId") not in (None, wanted):
        result["toolUseId"] = wanted


def wrap_execute(original: Any) -> Any:
    @functools.wraps(original)
    async def _execute(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        stops: list[RunStopped] = []
        events = original(*args, **kwargs)
        try:
            while True:
                token = _STOPS.set(stops)  # its tasks begin in the first step, and take it with them
                try:
                    event = await events.__anext__()
                except StopAsyncIteration:
                    break
                finally:
                    _STOPS.reset(token)
                yield event
        finally:
            await events.aclose()
        if stops:
            raise stops[0]

    setattr(_execute, MARK, _execute)
    return _execute


def patch_executor(module: Any, patches: Patches) -> None:
    patches.put(module, "_run_tool", wrap_run)


def patch_concurrent(module: Any, patches: Patches) -> None:
    patches.put(module.ConcurrentToolExecutor, "_execute", wrap_execute)


ADAPTER = ToolAdapter(
    hook=HOOK,
    package="strands-agents",
    modules={
        "strands.tools.executors._executor": patch_executor,
        "strands.tools.executors.concurrent": patch_concurrent,
    },
    point="`strands.tools.executors._executor._run_tool`",
    checked="1.62.0",
    gives="name, arguments, call id; agents as tools as containers",
    beside="Progress of an agent inside a tool is not sent again. A tool's exception is recorded with the error result "
    "that Strands makes of it.",
)
