"""LangChain and LangGraph: ``_run`` and ``_arun`` of every tool class, below callbacks, spans and error handling."""

from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar
from typing import Any

from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import POINT as MARK
from otel_agentrec.intercept.tools.point import Point, Seen
from otel_agentrec.intercept.tools.running import refused_last

__all__ = ["ADAPTER"]

HOOK = "langchain"
NOT_ARGUMENTS = {"config", "run_manager", "callbacks"}
HANDOFF = "__handoff_destination"
"""Key of a tool's metadata with which langgraph-supervisor and langgraph-swarm mark hand-offs."""

_CALL_ID: ContextVar[str | None] = ContextVar("agentrec_langchain_call", default=None)


def identify(tool: Any, *args: Any, **kwargs: Any) -> Seen:
    given = {name: value for name, value in kwargs.items() if name not in NOT_ARGUMENTS}
    offered = _offered(tool)
    if args:
        names = iter(offered or [])
        given = {**{next(names, f"arg{at}"): value for at, value in enumerate(args)}, **given}
    if offered is not None:
        given = {name: value for name, value in given.items() if name in offered}
    handoff = isinstance(tool.metadata, dict) and HANDOFF in tool.metadata
    return Seen(tool.name, given, _CALL_ID.get(), "container" if handoff else None)


def _offered(tool: Any) -> list[str] | None:
    """The arguments that the model is asked for: without what LangChain injects. None: not known."""
    schema = tool.tool_call_schema
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return None
        injected = set(getattr(tool, "_injected_args_keys", ()))
        return [name for name in properties if name not in injected]
    fields = getattr(schema, "model_fields", None) or getattr(schema, "__fields__", None)
    return list(fields) if fields is not None else None


POINT = Point(HOOK, identify)


def call_id_kept(original: Any) -> Any:
    """``run`` and ``arun`` get the call's id; ``_run`` and ``_arun`` don't."""

    def named(kwargs: dict[str, Any]) -> Any:
        return _CALL_ID.set(kwargs.get("tool_call_id"))

    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def arun(*args: Any, **kwargs: Any) -> Any:
            if ACTIVE.tools is None:
                return await original(*args, **kwargs)
            token = named(kwargs)
            try:
                return await original(*args, **kwargs)
            finally:
                _CALL_ID.reset(token)

        setattr(arun, MARK, arun)
        return arun

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        if ACTIVE.tools is None:
            return original(*args, **kwargs)
        token = named(kwargs)
        try:
            return original(*args, **kwargs)
        finally:
            _CALL_ID.reset(token)

    setattr(run, MARK, run)
    return run


def patch(module: Any, patches: Patches) -> None:
    base = module.BaseTool
    for cls in [base, *_classes_below(base)]:
        _patch_class(cls, patches)

    def subclassed(original: Any) -> Any:
        bound = original.__func__

        def __init_subclass__(cls: Any, **kwargs: Any) -> None:
            bound(cls, **kwargs)
            _patch_class(cls, patches)

        setattr(__init_subclass__, MARK, __init_subclass__)
        wrapped: Any = functools.update_wrapper(__init_subclass__, bound)
        return classmethod(wrapped)

    patches.put(base, "__init_subclass__", subclassed)


def _classes_below(base: Any) -> list[Any]:
    found = []
    for cls in base.__subclasses__():
        found += [cls, *_classes_below(cls)]
    return found


def _patch_class(cls: Any, patches: Patches) -> None:
    for name, wrap in _WRAPPERS.items():
        own = vars(cls).get(name)
        if inspect.isfunction(own) and not getattr(own, "__isabstractmethod__", False):
            patches.put(cls, name, wrap)


def _wrapped(original: Any) -> Any:
    return POINT.coroutine(original) if inspect.iscoroutinefunction(original) else POINT.sync(original)


def _waiting(original: Any) -> Any:
    """``ainvoke`` runs a tool without a coroutine on a thread, where nothing can wait for the tools beside it."""
    ours = refused_last(original)
    setattr(ours, MARK, ours)
    return ours


_WRAPPERS = {"_run": _wrapped, "_arun": _wrapped, "run": call_id_kept, "arun": call_id_kept, "ainvoke": _waiting}


ADAPTER = ToolAdapter(
    hook=HOOK,
    package="langchain-core",
    modules={"langchain_core.tools.base": patch},
    point="`_run` and `_arun` of `BaseTool` and all its subclasses",
    checked="1.8.3 (langgraph 1.2.24)",
    gives="name, arguments without what is injected but with defaults, call id; hand-offs of langgraph-supervisor and -swarm as containers",
    beside="The tool span is not current there, so none is told. Nodes of a graph that are plain functions are not seen.",
)
