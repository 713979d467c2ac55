"""Haystack's own tracing: ``haystack.agent.*`` and ``haystack.component.*`` with messages as JSON.

A model is asked by a step of an agent, or by a component of a pipeline whose class is a generator.

A ChatMessage is ``{role, content: [{text} | {tool_call: {id, tool_name, arguments}} | {tool_call_result: {result, origin,
error}} | {reasoning: {reasoning_text}}], meta: {model, finish_reason, usage}, name}``; in older versions the keys begin
with ``_``. What is no JSON, such as the request of a stream with its callback, is told as Python prints it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import identity, messages, outcome, pythonrepr, tokens
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
_COMPONENT = "haystack.component."
_RUN, _TYPE = "haystack.component.run", "haystack.component.type"
_GENERATOR, _OF_IMAGES = "Generator", "ImageGenerator"
_PRINTED = {"tool_call": "tool_name", "tool_call_result": "origin", "reasoning": "reasoning_text"}
"""Block -> a key that only it has; printed, a block has no name."""
_OF_TOOL = ("name", "description", "parameters")
_TOOL, _TOOL_STEP = "haystack.tool.", "haystack.agent.step.tool."


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of Haystack is, and its facts; None for a span of another convention."""
    if not span.name.startswith("haystack.") or "gen_ai.operation.name" in span.attributes:
        return None
    kind, operation = KINDS.get(span.name, (Kind.STEP, span.name.removeprefix("haystack.")))
    said_in = f"{span.name}."
    if span.name == _RUN and _generates(span.attributes.get(_TYPE)):
        kind, operation, said_in = Kind.MODEL, "chat", _COMPONENT
    rest = dict(span.attributes)
    facts = Facts(dialect=NAME, operation=operation)
    identity.take_given(rest, facts)
    if kind == Kind.MODEL:
        _take_request(rest, f"{said_in}input", facts)
        _take_answer(rest, f"{said_in}output", facts)
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
    if isinstance(block, Mapping) and len(block) > 1:
        block = next(({kind: block} for kind, key in _PRINTED.items() if key in block), block)
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


def _printed(value: Json) -> Mapping[str, Json] | None:
    """A dict that stands as Python prints it."""
    if not isinstance(value, str) or not value.startswith("{'"):
        return None
    try:
        told = pythonrepr.parse(value)
    except ValueError:
        return None
    return told if isinstance(told, Mapping) else None


def _generates(component: Json) -> bool:
    """Whether a component of this class asks a model for text: ``OpenAIChatGenerator``, ``HuggingFaceLocalGenerator`` …"""
    return isinstance(component, str) and component.endswith(_GENERATOR) and not component.endswith(_OF_IMAGES)


def _listed(value: Json) -> list[Json] | None:
    if not isinstance(value, _LISTS) or not value:
        return None
    made = [message(m) for m in value]
    return made if all(m is not None for m in made) else None


def _said(role: str, text: str) -> Json:
    return {"role": role, "parts": [messages.part(text)]}


def _take_request(rest: dict[str, Any], key: str, facts: Facts) -> None:
    """Generators without chat are given one text as ``prompt``; those with chat may be given one instead of messages."""
    value = rest.get(key)
    told = loaded(value)
    printed = _printed(told)
    held = told if isinstance(told, Mapping) else printed or {}
    prompt = next((held[name] for name in ("messages", "prompt") if isinstance(held.get(name), str)), None)
    facts.messages = _listed(held.get("messages")) if prompt is None else [_said("user", prompt)]
    if facts.messages is not None:
        del rest[key]
        left = {name: v for name, v in held.items() if name not in ("messages", "prompt", "tools") and v is not None}
        if left:
            rest[key] = left
        tools = held.get("tools")
        if isinstance(tools, _LISTS):
            if printed is not None:  # with the functions themselves
                tools = [{k: tool[k] for k in _OF_TOOL if k in tool} for tool in tools if isinstance(tool, Mapping)]
            facts.tools = [messages.definition(tool) for tool in tools] or None
    elif was_cut(value):
        facts.messages = RawList(rest.pop(key), messages.message)
        facts.flags.append("input_truncated")


def _take_answer(rest: dict[str, Any], key: str, facts: Facts) -> None:
    value = rest.get(key)
    told = loaded(value)
    told = told if isinstance(told, Mapping) else {}
    replies, metas = told.get("replies"), told.get("meta")
    if isinstance(replies, _LISTS) and replies and all(isinstance(reply, str) for reply in replies):
        output: list[Json] | None = [_said("assistant", reply) for reply in replies]
    else:
        output = _listed(replies)
        metas = [reply.get("meta", reply.get("_meta")) for reply in replies or ()] if output is not None else None
    if output is not None:
        del rest[key]
        facts.output_messages, facts.calls = output, messages.calls_of(output)
        for meta in metas if isinstance(metas, _LISTS) else ():
            if isinstance(meta, Mapping):
                facts.response_model = facts.response_model or text(meta.get("model"))
                reason = text(meta.get("finish_reason"))
                facts.finish_reasons = facts.finish_reasons or ([reason] if reason else None)
                tokens.take_usage(meta.get("usage"), facts)
    elif was_cut(value):
        facts.output_messages = RawList(rest.pop(key), messages.message)
        facts.flags.append("output_truncated")


def _take_tool(rest: dict[str, Any], facts: Facts) -> None:
    facts.tool_name = text(rest.pop(f"{_TOOL}name", None))
    for start in (_TOOL_STEP, _TOOL):
        facts.arguments = rest.pop(f"{start}input", facts.arguments)
        facts.result = rest.pop(f"{start}output", facts.result)
    if was_cut(facts.arguments):
        facts.flags.append("input_truncated")
    if was_cut(facts.result):
        facts.flags.append("output_truncated")
    if rest.get(f"{_TOOL}error") in (True, "true", "True"):
        del rest[f"{_TOOL}error"]
        told = loaded(facts.result)
        message = told.get("error") if isinstance(told, Mapping) and len(told) == 1 else facts.result
        facts.status, facts.error_message = "error", text(message)


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=("haystack",),
    key_prefixes=("haystack.",),
    span_names=tuple(KINDS),
    versions="haystack-ai 3.4 with opentelemetry-haystack 2.0",
    unknown="the requested model, the provider; sessions; call ids of tools; retries",
)
