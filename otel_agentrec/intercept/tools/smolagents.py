"""smolagents: tools that an agent calls, from JSON or from its code, and managed agents."""

from __future__ import annotations

import sys
from typing import Any

from otel_agentrec.intercept.tools.adapter import ToolAdapter
from otel_agentrec.intercept.tools.codecs import Codec, register
from otel_agentrec.intercept.tools.patching import Patches
from otel_agentrec.intercept.tools.point import Point, Seen

__all__ = ["ADAPTER"]

HOOK = "smolagents"


def identify(tool: Any, *args: Any, sanitize_inputs_outputs: bool = False, **kwargs: Any) -> Seen | None:
    if tool.name == "final_answer":
        return None  # the agent's result
    if len(args) == 1 and not kwargs and isinstance(args[0], dict) and all(key in tool.inputs for key in args[0]):
        return Seen(tool.name, args[0])
    return Seen(tool.name, {**dict(zip(tool.inputs, args, strict=False)), **kwargs})


def identify_agent(agent: Any, task: Any, **kwargs: Any) -> Seen:
    given = {name: value for name, value in kwargs.items() if value is not None}
    return Seen(agent.name or type(agent).__name__, {"task": task, **given}, kind="container")


def _text_class() -> Any:
    return getattr(sys.modules.get("smolagents.agent_types"), "AgentText", None)


def _is_text(value: Any) -> bool:
    cls = _text_class()
    return cls is not None and type(value) is cls


TEXT = register(
    Codec(
        "smolagents.AgentText", _is_text, lambda value: {"text": str(value)}, lambda kept: _text_class()(kept["text"])
    )
)
TOOLS = Point(HOOK, identify, [TEXT])
AGENTS = Point(HOOK, identify_agent, [TEXT])


def patch_tools(module: Any, patches: Patches) -> None:
    patches.put(module.Tool, "__call__", TOOLS.sync)


def patch_agents(module: Any, patches: Patches) -> None:
    patches.put(module.MultiStepAgent, "__call__", AGENTS.sync)


ADAPTER = ToolAdapter(
    hook=HOOK,
    package="smolagents",
    modules={"smolagents.tools": patch_tools, "smolagents.agents": patch_agents},
    point="`Tool.__call__`, `MultiStepAgent.__call__`",
    checked="1.26.0",
    gives="name, arguments; managed agents as containers",
    beside="No call id. Images and audio are not kept. Code that an agent runs outside this process is not seen.",
)
