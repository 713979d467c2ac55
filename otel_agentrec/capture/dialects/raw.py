"""The raw request and answer of a model call, in whatever shape: the one place that tries all shapes.

To add a shape, write its module (``asked``, ``said``, each None for what it does not know) and name it here, the more
specific before the more general.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects import anthropic, langchain, llamaindex, messages, openai, pythonrepr, smolagents
from otel_agentrec.capture.dialects.exchange import Asked, Said, parameters

__all__ = ["asked", "listed", "said"]

Json = Any

_LISTS = (list, tuple)


def asked(value: Json) -> Asked | None:
    """What a request tells, parsed from JSON; None when its shape is not known."""
    for read in (langchain.asked, _written_by_repr, anthropic.asked, openai.asked):
        found = read(value)
        if found is not None:
            return found
    found_messages = listed(value)
    return None if found_messages is None else Asked(found_messages)


def said(value: Json) -> Said | None:
    """What an answer tells, parsed from JSON; None when its shape is not known."""
    for read in (langchain.said, llamaindex.said, smolagents.said, openai.said, anthropic.said):
        found = read(value)
        if found is not None:
            return found
    found_messages = listed(value)
    return None if found_messages is None else Said(found_messages)


def listed(value: Json) -> list[Json] | None:
    """A list of messages of any shape; None when it is something else, or empty."""
    if not isinstance(value, _LISTS) or not value:
        return None
    return langchain.listed(value) or openai.listed(value)


def _written_by_repr(value: Json) -> Asked | None:
    """``{messages: [repr of a ChatMessage], kwargs: {tools, …}, …}`` of smolagents and LlamaIndex."""
    held = value.get("messages") if isinstance(value, Mapping) else None
    if not isinstance(held, _LISTS) or not held or not all(isinstance(m, str) for m in held):
        return None
    found: list[Json] = []
    for written in held:
        try:
            parsed = pythonrepr.parse(written)
        except ValueError:
            return None
        made = llamaindex.message(parsed) or smolagents.message(parsed)
        if made is None:
            return None
        found.append(made)
    kwargs = value.get("kwargs")
    told = {**value, **(kwargs if isinstance(kwargs, Mapping) else {})}
    tools = told.get("tools")
    return Asked(
        found,
        tools=[messages.definition(tool) for tool in tools] if isinstance(tools, _LISTS) and tools else None,
        parameters=parameters(told, _APART),
    )


_APART = frozenset({"messages", "kwargs", "tools", "tools_to_call_from"})
