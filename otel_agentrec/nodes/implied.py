"""Tool calls that a model asked for, where its own telemetry does not tell them but says that it stopped to call tools.

They are the tools that begin after that call, by the same agent and before its next model call. Only tools with a call id
of the model's: a program may call tools by itself, but not under such an id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.pairing import agent_of, call_id_of, calls_of
from otel_agentrec.nodes.skeleton import REEXPORT, Span
from otel_agentrec.nodes.source import Source
from otel_agentrec.nodes.text import parsed

__all__ = ["Implied"]

Json = Any

_TO_CALL_TOOLS = frozenset(("tool_use", "tool_calls", "tool_call", "tool-calls", "function_call"))
"""Finish reasons, as providers name them."""


class Implied:
    """Finds such calls and sets ``asked`` of the tools.

    Args:
        leading: the leading spans of all calls, paired as far as models tell their calls.
    """

    def __init__(self, source: Source, leading: Iterable[Span], run_of: Callable[[Span], str]) -> None:
        self._source = source
        self._tools: dict[Span, list[Span]] = defaultdict(list)
        """model call -> the tools that it must have asked for"""
        spans = [s for s in leading if not s.marks & REEXPORT]
        if not any(s.kind == Kind.TOOL and s.asked is None and call_id_of(s) for s in spans):
            return
        latest: dict[tuple[str, Span | None], Span] = {}
        stopped: dict[Span, bool] = {}
        for s in sorted(spans, key=lambda s: (s.start if s.start is not None else 0, s.place)):
            key = run_of(s), agent_of(s)
            if s.kind == Kind.MODEL:
                latest[key] = s
            elif s.asked is None and call_id_of(s) and key in latest:
                model = latest[key]
                if model not in stopped:
                    stopped[model] = not calls_of(model) and self._stopped_to_call(model)
                if stopped[model]:
                    s.asked = model
                    self._tools[model].append(s)

    def __bool__(self) -> bool:
        return bool(self._tools)

    def calls(self, model: Span) -> list[dict[str, Json]]:
        """The calls of a model call ``[{id, name, arguments}]``, as its tools tell them; empty when it has none of this kind."""
        return [self._told(tool) for tool in self._tools.get(model, ())]

    def _stopped_to_call(self, model: Span) -> bool:
        for s in model.members():
            reasons = self._source.facts(s.place, ("finishReasons",)).get("finishReasons")
            if isinstance(reasons, Sequence) and not isinstance(reasons, str) and reasons:
                return any(isinstance(r, str) and r.lower() in _TO_CALL_TOOLS for r in reasons)
        return False

    def _told(self, tool: Span) -> dict[str, Json]:
        facts: dict[str, Json] = {}
        for s in tool.members():
            more = self._source.facts(s.place, ("toolCallId", "toolName", "arguments"))
            facts.update((key, value) for key, value in more.items() if facts.get(key) is None)
        return {
            "id": facts.get("toolCallId"),
            "name": facts.get("toolName"),
            "arguments": parsed(facts.get("arguments")),
        }
