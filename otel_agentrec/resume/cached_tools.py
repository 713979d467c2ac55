"""A decorated tool in front of a ``ResumeCache``: what was asked before is answered, equal calls wait for one another."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

from otel_agentrec.intercept.tools.streams import (
    Taken,
    advance_async,
    follow,
    follow_async,
    hand_out,
    hand_out_async,
)
from otel_agentrec.prompts import AgentToolCall
from otel_agentrec.resume.cache import ResumeCache
from otel_agentrec.resume.signatures import Signature

__all__ = ["cached"]


def cached(cache: ResumeCache, name: str, signature: Signature, tool: Callable[..., Any]) -> Callable[..., Any]:
    """``tool`` behind the cache, in the same form. What it raises is not kept; of a generator what it yields
    and returns is, unless its consumer has sent it something."""

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
            call, taken = asked(args, kwargs), Taken()
            hit = cache.find_tool(call)
            through: Any = (
                follow_async(tool(*args, **kwargs), taken) if hit is None else hand_out_async(hit.value, name)
            )
            sent = thrown = None
            while True:
                try:
                    event = await advance_async(through, sent, thrown)
                except StopAsyncIteration:
                    break
                sent = thrown = None
                try:
                    sent = yield event
                except GeneratorExit:
                    await through.aclose()
                    raise
                except BaseException as error:
                    thrown = error
            if hit is None and not taken.is_driven:
                cache.record_tool(call, taken.value)

        return events
    if inspect.isgeneratorfunction(tool):

        @functools.wraps(tool)
        def items(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            call, taken = asked(args, kwargs), Taken()
            hit = cache.find_tool(call)
            if hit is not None:
                return (yield from hand_out(hit.value, name))
            yield from follow(tool(*args, **kwargs), taken)
            if not taken.is_driven:
                cache.record_tool(call, taken.value)
            return taken.returned

        return items

    @functools.wraps(tool)
    def plain(*args: Any, **kwargs: Any) -> Any:
        return cache.answer_tool(asked(args, kwargs), lambda: tool(*args, **kwargs))

    return plain
