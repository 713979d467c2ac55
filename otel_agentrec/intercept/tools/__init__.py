"""Tool calls of agent frameworks, intercepted on their way into the tool: one adapter per framework."""

from __future__ import annotations

from otel_agentrec.intercept.tools.adapter import ToolAdapter

__all__ = ["adapters", "register_all"]


def adapters() -> list[ToolAdapter]:
    """All adapters. None of their modules imports its framework."""
    from otel_agentrec.intercept.tools import (
        agent_framework,
        autogen,
        crewai,
        google_adk,
        haystack,
        langchain,
        llama_index,
        mcp,
        openai_agents,
        pydantic_ai,
        smolagents,
        strands,
    )

    first = [openai_agents, pydantic_ai, langchain, strands, smolagents, mcp]
    modules = [*first, crewai, google_adk, agent_framework, autogen, llama_index, haystack]
    return [module.ADAPTER for module in modules]


def register_all() -> None:
    """Make all adapters points of :mod:`otel_agentrec.intercept.install`."""
    from otel_agentrec.intercept.install import register

    for adapter in adapters():
        for module in adapter.modules:
            register(module, adapter.patch, library=adapter.package, level="tool")
