"""A decorated tool in front of a ``ResumeCache``: what was asked before is answered, equal calls wait for one another."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from otel_agentrec.prompts import AgentToolCall
from otel_agentrec.resume.cache import ResumeCache
from otel_agentrec.resume.signatures import Signature

__all__ = ["cached"]


def cached(cache: ResumeCache, name: str, signature: Signature, tool: Callable[..., Any]) -> Callable[..., Any]:
    """``tool`` behind the cache, in the same form. What it raises is not kept; of a generator the list of what it yields is."""

    def asked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> AgentToolCall:
        return AgentToolCall(name, signature.arguments(args, kwargs))

    if inspect.iscoroutinefunction(tool):

        @functools.wraps(tool)
        async def task(*args: Any, **kwargs: Any) -> Any:
            return await cache.answer_tool_async(asked(args, kwargs), lambda: tool(*args, **kwargs))

        return task
    if inspect.isasyncgenfunction(tool):

        @functools.wraps(tool)
        async def events(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            call = asked(args, kwargs)
            hit = cache.find_tool(call)
            if hit is not None:
                for event in hit.value:
                    yield event
                return
            seen = []
            async for event in tool(*args, **kwargs):
                seen.append(event)
                yield event
            cache.record_tool(call, seen)

        return events
    if inspect.isgeneratorfunction(tool):

        @functools.wraps(tool)
        def items(*args: Any, **kwargs: Any) -> Iterator[Any]:
            call = asked(args, kwargs)
            hit = cache.find_tool(call)
            if hit is not None:
                yield from hit.value
                return
            seen = []
            for item in tool(*args, **kwargs):
                seen.append(item)
                yield item
            cache.record_tool(call, seen)

        return items

    @functools.wraps(tool)
    def plain(*args: Any, **kwargs: Any) -> Any:
        return cache.answer_tool(asked(args, kwargs), lambda: tool(*args, **kwargs))

    return plain
