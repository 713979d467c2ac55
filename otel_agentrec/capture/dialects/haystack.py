"""Haystack's own tracing: ``haystack.agent.*`` with its messages as JSON.

A ChatMessage is ``{role, content: [{text} | {tool_call: {id, tool_name, arguments}} | {tool_call_result: {result, origin,
error}} | {reasoning: {reasoning_text}}], meta: {model, finish_reason, usage}, name}``; in older versions the keys begin
with ``_``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import identity, messages, outcome, tokens
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import loaded, text, was_cut
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList

__all__ = ["DIALECT", "message"]

Json = Any

NAME = "haystack"

KINDS: dict[str, tuple[str, str]] = {
    "haystack.agent.step.llm": (Kind.MODEL, "chat"),
    "haystack.agent.step.tool": (Kind.TOOL, "execute_tool"),
    "haystack.agent.run": (Kind.AGENT, "invoke_agent"),
    "haystack.pipeline.run": (Kind.AGENT, "invoke_workflow"),
    "haystack.async_pipeline.run": (Kind.AGENT, "invoke_workflow"),
}
"""Span name -> (kind, operation); any other of its spans is a step."""

_LISTS = (list, tuple)
_IN, _OUT = "haystack.agent.step.llm.input", "haystack.agent.step.llm.output"
_TOOL = "haystack.tool."


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of Haystack is, and its facts; None for a span of another convention."""
    if not span.name.startswith("haystack.") or "gen_ai.operation.name" in span.attributes:
        return None
    kind, operation = KINDS.get(span.name, (Kind.STEP, span.name.removeprefix("haystack.")))
    rest = dict(span.attributes)
    facts = Facts(dialect=NAME, operation=operation)
    identity.take_given(rest, facts)
    if kind == Kind.MODEL:
        _take_request(rest, facts)
        _take_answer(rest, facts)
    elif kind == Kind.TOOL:
        _take_tool(rest, facts)
    if not outcome.fail(span, facts) and facts.status is None and span.end_ns is None:
        facts.status = "partial" if facts.output_messages else None
    outcome.keep(span, rest, facts)
    return kind, facts


def message(value: Json) -> Json:
    """A ChatMessage in the schema; None when ``value`` is none."""
    if not isinstance(value, Mapping):
        return None
    role, content = value.get("role", value.get("_role")), value.get("content", value.get("_content"))
    if not isinstance(role, str) or not isinstance(content, _LISTS):
        return None
    out: dict[str, Json] = {"role": role, "parts": [_part(block) for block in content]}
    name = text(value.get("name", value.get("_name")))
    return out if name is None else {**out, "name": name}


def _part(block: Json) -> Json:
    if not isinstance(block, Mapping) or len(block) != 1:
        return messages.part(block)
    kind, held = next(iter(block.items()))
    if not isinstance(held, Mapping):
        return messages.part(block)
    if kind == "tool_call":
        told = {"id": held.get("id"), "name": held.get("tool_name"), "arguments": held.get("arguments")}
        return {"type": "tool_call", **{key: v for key, v in told.items() if v is not None}}
    if kind == "tool_call_result":
        origin = held.get("origin")
        origin = origin if isinstance(origin, Mapping) else {}
        told = {"id": origin.get("id"), "name": origin.get("tool_name"), "response": held.get("result")}
        return {"type": "tool_call_response", **{key: v for key, v in told.items() if v is not None}}
    if kind == "reasoning" and isinstance(held.get("reasoning_text"), str):
        return {"type": "reasoning", "content": held["reasoning_text"]}
    return {**{key: v for key, v in held.items() if v is not None}, "type": kind}


def _listed(value: Json) -> list[Json] | None:
    if not isinstance(value, _LISTS) or not value:
        return None
    made = [message(m) for m in value]
    return made if all(m is not None for m in made) else None


def _take_request(rest: dict[str, Any], facts: Facts) -> None:
    value = rest.get(_IN)
    told = loaded(value)
    held = told if isinstance(told, Mapping) else {}
    facts.messages = _listed(held.get("messages"))
    if facts.messages is not None:
        del rest[_IN]
        left = {key: v for key, v in held.items() if key not in ("messages", "tools") and v is not None}
        if left:
            rest[_IN] = left
        if isinstance(held.get("tools"), _LISTS):
            facts.tools = [messages.definition(tool) for tool in held["tools"]] or None
    elif was_cut(value):
        facts.messages = RawList(rest.pop(_IN), messages.message)
        facts.flags.append("input_truncated")


def _take_answer(rest: dict[str, Any], facts: Facts) -> None:
    value = rest.get(_OUT)
    told = loaded(value)
    replies = told.get("replies") if isinstance(told, Mapping) else None
    output = _listed(replies)
    if output is not None:
        del rest[_OUT]
        facts.output_messages, facts.calls = output, messages.calls_of(output)
        for reply in replies or ():
            meta = reply.get("meta", reply.get("_meta"))
            if isinstance(meta, Mapping):
                facts.response_model = facts.response_model or text(meta.get("model"))
                reason = text(meta.get("finish_reason"))
                facts.finish_reasons = facts.finish_reasons or ([reason] if reason else None)
                tokens.take_usage(meta.get("usage"), facts)
    elif was_cut(value):
        facts.output_messages = RawList(rest.pop(_OUT), messages.message)
        facts.flags.append("output_truncated")


def _take_tool(rest: dict[str, Any], facts: Facts) -> None:
    facts.tool_name = text(rest.pop(f"{_TOOL}name", None))
    facts.arguments, facts.result = rest.pop(f"{_TOOL}input", None), rest.pop(f"{_TOOL}output", None)
    if was_cut(facts.arguments):
        facts.flags.append("input_truncated")
    if was_cut(facts.result):
        facts.flags.append("output_truncated")
    if rest.get(f"{_TOOL}error") in (True, "true", "True"):
        del rest[f"{_TOOL}error"]
        facts.status, facts.error_message = "error", text(facts.result)


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=("haystack",),
    key_prefixes=("haystack.",),
    span_names=tuple(KINDS),
    versions="the documented attributes of haystack-ai 3.4 with opentelemetry-haystack 2.0",
    unknown="the requested model, the provider; sessions; call ids of tools; retries",
)
