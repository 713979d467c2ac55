"""Vercel AI SDK, the older telemetry: ``ai.generateText`` and its like, with ``ai.*`` attributes.

``ai.generateText.doGenerate`` and ``….doStream`` are the model calls; ``ai.generateText`` around them is the agent and repeats
their text and the sum of their tokens; ``ai.toolCall`` is a tool, a child of the model call that asked for it. (Newer
versions of the SDK speak the GenAI conventions.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import aisdk, identity, messages, outcome, tokens
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import loaded, text, texts, was_cut
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList

__all__ = ["DIALECT"]

Json = Any

NAME = "vercel-ai"

_OPERATION = "ai.operationId"
_REQUEST, _SETTINGS = "gen_ai.request.", "ai.settings."
_METADATA = "ai.telemetry.metadata."
_SESSION = ("sessionId", "session_id", "conversationId", "conversation_id", "threadId", "thread_id")
_CALLS = (".doGenerate", ".doStream")
_STEPS = {"ai.embed": "embeddings", "ai.rerank": "rerank"}
_READ_EVENTS = ("exception", "ai.stream.firstChunk", "ai.stream.finish")


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of the AI SDK is, and its facts; None for a span of another convention."""
    operation = text(span.attributes.get(_OPERATION))
    if operation is None or not operation.startswith("ai."):
        return None
    rest = {key: v for key, v in span.attributes.items() if key not in (_OPERATION, "operation.name", "resource.name")}
    kind, name = _kind(operation)
    facts = Facts(dialect=NAME, operation=name)
    _take_identity(kind, rest, facts)
    tokens.take(rest, facts)
    if kind == Kind.TOOL:
        _take_tool(rest, facts)
    elif kind != Kind.STEP:
        _take_request(rest, facts)
        _take_answer(rest, facts)
    if kind == Kind.MODEL:
        facts.streamed = operation.endswith(".doStream")
    if not outcome.fail(span, facts):
        if span.end_ns is None:
            facts.status = "partial" if facts.output_messages else None
        elif facts.streamed and not facts.finish_reasons:
            facts.status = "partial"
    outcome.keep(span, rest, facts, _READ_EVENTS)
    return kind, facts


def _kind(operation: str) -> tuple[str, str]:
    """-> (kind, operation)"""
    if operation == "ai.toolCall":
        return Kind.TOOL, "execute_tool"
    for start, name in _STEPS.items():
        if operation.startswith(start):
            return Kind.STEP, name
    if operation.endswith(_CALLS):
        return Kind.MODEL, "chat"
    return Kind.AGENT, "invoke_agent"


def _take_identity(kind: str, rest: dict[str, Any], facts: Facts) -> None:
    identity.take_given(rest, facts)
    take = rest.pop
    for key in _SESSION:
        facts.session_id = facts.session_id or text(take(_METADATA + key, None))
    facts.user_id = facts.user_id or text(take(f"{_METADATA}userId", None))
    function = text(take("ai.telemetry.functionId", None))
    if kind == Kind.AGENT:
        facts.agent_name = function
    provider = text(take("ai.model.provider", None)) or text(rest.get("gen_ai.system"))
    if rest.get("gen_ai.system") == provider:
        take("gen_ai.system", None)
    facts.provider = provider.partition(".")[0] if provider else None  # "openai.chat": the provider and its API
    facts.model = text(take("gen_ai.request.model", None)) or text(rest.get("ai.model.id"))
    if rest.get("ai.model.id") == facts.model:
        take("ai.model.id", None)
    facts.response_model = _either(rest, "gen_ai.response.model", "ai.response.model")
    facts.response_id = _either(rest, "gen_ai.response.id", "ai.response.id")


def _either(rest: dict[str, Any], *keys: str) -> str | None:
    """The first of several attributes that say the same."""
    told = [text(rest.pop(key, None)) for key in keys]
    return next((t for t in told if t is not None), None)


def _take_request(rest: dict[str, Any], facts: Facts) -> None:
    value = rest.pop("ai.prompt.messages", None)
    facts.messages = aisdk.listed(loaded(value))
    if facts.messages is None and was_cut(value):
        facts.messages = RawList(value, messages.message)
        facts.flags.append("input_truncated")
    elif facts.messages is None and value is not None:
        rest["ai.prompt.messages"] = value
    whole = loaded(rest.get("ai.prompt"))
    if facts.messages is None and isinstance(whole, Mapping):
        prompt, system = whole.get("messages", whole.get("prompt")), text(whole.get("system"))
        told = aisdk.listed(prompt) or ([_said("user", prompt)] if isinstance(prompt, str) else None)
        if told is not None:
            del rest["ai.prompt"]
            facts.messages = told
            facts.system_instructions = [messages.part(system)] if system else None
    tools = rest.pop("ai.prompt.tools", None)
    tools = loaded(tools)
    if isinstance(tools, (list, tuple)) and tools:
        facts.tools = [aisdk.definition(tool) for tool in tools]
    parameters = {key[len(start) :]: key for start in (_SETTINGS, _REQUEST) for key in rest if key.startswith(start)}
    facts.parameters = {name: rest.pop(key) for name, key in parameters.items()} or None
    choice = rest.pop("ai.prompt.toolChoice", None)
    if choice is not None:
        facts.parameters = {**(facts.parameters or {}), "tool_choice": loaded(choice)}


def _take_answer(rest: dict[str, Any], facts: Facts) -> None:
    told, reasoning = text(rest.pop("ai.response.text", None)), text(rest.pop("ai.response.reasoning", None))
    raw_calls, made = rest.pop("ai.response.toolCalls", None), rest.pop("ai.response.object", None)
    parts: list[Json] = [{"type": "reasoning", "content": reasoning}] if reasoning else []
    if told:
        parts.append(messages.part(told))
    calls = aisdk.calls(raw_calls)
    parts.extend(calls)
    if raw_calls is not None and not calls:
        if was_cut(raw_calls):
            facts.flags.append("output_truncated")
        rest["ai.response.toolCalls"] = raw_calls
    if made is not None:
        parts.append(messages.part(made))
    reasons = texts(rest.pop("gen_ai.response.finish_reasons", None))
    reason = text(rest.pop("ai.response.finishReason", None))
    facts.finish_reasons = reasons or ([reason] if reason else None)
    if parts or facts.finish_reasons:
        facts.output_messages = [{"role": "assistant", "parts": parts}]
        facts.calls = messages.calls_of(facts.output_messages)


def _said(role: str, told: str) -> Json:
    return {"role": role, "parts": [messages.part(told)]}


def _take_tool(rest: dict[str, Any], facts: Facts) -> None:
    facts.tool_name = text(rest.pop("ai.toolCall.name", None))
    facts.tool_call_id = text(rest.pop("ai.toolCall.id", None))
    facts.arguments, facts.result = rest.pop("ai.toolCall.args", None), rest.pop("ai.toolCall.result", None)
    if was_cut(facts.arguments):
        facts.flags.append("input_truncated")
    if was_cut(facts.result):
        facts.flags.append("output_truncated")


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=("ai",),
    key_prefixes=(_OPERATION,),
    versions="ai 7.0 with the older telemetry of @ai-sdk/otel 1.0",
    unknown="retries; the session, where a program does not tell it as metadata",
)
