"""Logfire's bridge of OpenAI Agents: what the framework traces, as attributes with the framework's own names.

A model call holds the raw request and answer: over the Responses API ``raw_input`` and ``response``, over the chat API
``request_data`` and ``response_data``. ``events`` repeats both. A span's name is a template of its title.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import genai, genai_messages, messages, openai, raw, tokens
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.exchange import Said, parameters
from otel_agentrec.capture.dialects.values import loaded, text
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts

__all__ = ["DIALECT"]

Json = Any
Attributes = MutableMapping[str, Any]

NAME = "logfire-openai-agents"
SCOPE = "logfire.openai_agents"

_OPERATION = "gen_ai.operation.name"
_OF_TITLE = {
    "OpenAI Agents trace": "invoke_workflow",
    "Agent run": "invoke_agent",
    "Responses API": "chat",
    "Chat completion": "chat",
    "Function": "execute_tool",
    "Handoff": "handoff",
    "Guardrail": "guardrail",
    "Task": "task",
    "Turn": "turn",
}
"""First words of a span's name -> operation."""
_NOISE = ("logfire.json_schema", "logfire.msg_template", "logfire.span_type")
_APART = frozenset({"metadata", "include_usage"})


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span is, and its facts; None when it is not one of these."""
    if span.scope != SCOPE:
        return None
    rest = {k: v for k, v in span.attributes.items() if k not in _NOISE and v != "null"}
    operation = _operation(span, rest)
    rest[_OPERATION] = operation
    said: Said | None = None
    if operation == "chat":
        said = _bring_call(rest)
    elif operation == "execute_tool":
        _bring_tool(rest)
    elif operation in ("invoke_agent", "invoke_workflow"):
        _rename(rest, "name", "gen_ai.agent.name")
        _rename(rest, "group_id", "gen_ai.conversation.id")
    elif operation == "turn":
        _rename(rest, "agent_name", "gen_ai.agent.name")
    reading = genai.read_as(NAME, span._replace(attributes=rest), logs, own=True)
    if reading is None:
        return None
    kind, facts = reading
    if said is not None:
        facts.output_raw = said.raw
    _take_error(facts)
    return kind, facts


def _operation(span: SpanView, rest: Attributes) -> str:
    if span.attributes.get("logfire.span_type") == "pending_span":
        return "pending"  # tells that a span began; the span itself comes as well
    title = span.name
    known = next((operation for words, operation in _OF_TITLE.items() if title.startswith(words)), None)
    if known is not None:
        return known
    told = text(rest.get(_OPERATION)) or text(rest.get("sdk_span_type"))
    return told or ("chat" if "raw_input" in rest or "response_data" in rest else "custom")


# --- model calls --------------------------------------------------------------------------------------------------------


def _bring_call(rest: Attributes) -> Said | None:
    """Request and answer as GenAI attributes. -> the answer."""
    said = _bring_answer(rest)
    _bring_request(rest, said)
    settings = loaded(rest.pop("model_settings", None))
    if not isinstance(settings, Mapping):
        settings = loaded(rest.pop("model_config", None))
    if isinstance(settings, Mapping):
        for key, value in (parameters(settings, _APART) or {}).items():
            rest.setdefault(f"gen_ai.request.{key}", value)
    return said


def _bring_answer(rest: Attributes) -> Said | None:
    response = loaded(rest.get("response"))
    said = openai.said(response)
    if said is not None:
        del rest["response"]
        _bring_usage(rest, said.raw.get("usage"))
    else:
        data = loaded(rest.get("response_data"))
        answer = data.get("message") if isinstance(data, Mapping) else None
        if isinstance(data, Mapping) and isinstance(answer, Mapping):
            said = Said([messages.message(answer)])
            del rest["response_data"]
            _bring_usage(rest, data.get("usage"))
    if said is None:
        return None
    rest.setdefault("gen_ai.output.messages", said.messages)
    for key, value in (
        ("gen_ai.response.id", said.response_id),
        ("gen_ai.response.model", said.model),
        ("gen_ai.response.finish_reasons", said.finish_reasons),
    ):
        if value is not None:
            rest.setdefault(key, value)
    return said


def _bring_usage(rest: Attributes, usage: Json) -> None:
    """What only the provider's own usage block tells. It stands on the span twice more."""
    for key in ("usage", "gen_ai.usage.raw", "response_id"):
        rest.pop(key, None)
    held = usage if isinstance(usage, Mapping) else {}
    details = held.get("output_tokens_details", held.get("completion_tokens_details"))
    count = tokens.count(details.get("reasoning_tokens")) if isinstance(details, Mapping) else None
    if count is not None:
        rest.setdefault("gen_ai.usage.reasoning.output_tokens", count)


def _bring_request(rest: Attributes, said: Said | None) -> None:
    given = loaded(rest.get("raw_input"))
    asked = raw.asked({"input": given}) if given is not None else raw.asked(loaded(rest.get("request_data")))
    if asked is not None:
        rest.pop("raw_input" if given is not None else "request_data", None)
        rest.setdefault("gen_ai.input.messages", asked.messages)
        if asked.model is not None:
            rest.setdefault("gen_ai.request.model", asked.model)
    response = said.raw if said is not None else None
    if isinstance(response, Mapping):
        instructions, tools = response.get("instructions"), response.get("tools")
        if isinstance(instructions, str) and instructions:
            rest.setdefault("gen_ai.system_instructions", [messages.part(instructions)])
        if isinstance(tools, list) and tools:
            rest.setdefault("gen_ai.tool.definitions", tools)
    events = loaded(rest.get("events"))
    if not isinstance(events, list):
        return
    told = genai_messages.in_list(events) if asked is None and said is None else genai_messages.NOTHING
    if told.messages is not None:
        rest.setdefault("gen_ai.input.messages", told.messages)
    elif asked is None or said is None:
        return
    unread = [e for e in events if not isinstance(e, Mapping) or e.get("event.name") not in genai_messages.NAMES]
    if unread:
        rest["events"] = unread
    else:
        del rest["events"]


# --- tools and outcome --------------------------------------------------------------------------------------------------


def _bring_tool(rest: Attributes) -> None:
    _rename(rest, "name", "gen_ai.tool.name")
    _rename(rest, "input", "gen_ai.tool.call.arguments")
    _rename(rest, "output", "gen_ai.tool.call.result")


def _take_error(facts: Facts) -> None:
    """``error`` is ``{message, data: {error}}``: what failed, and why."""
    held = loaded((facts.attributes or {}).get("error"))
    if not isinstance(held, Mapping):
        return
    facts.status = "error"
    if facts.error_message is None:
        data = held.get("data")
        why = data.get("error") if isinstance(data, Mapping) else None
        facts.error_message = text(why) or text(held.get("message"))


def _rename(rest: Attributes, old: str, new: str) -> None:
    if old in rest:
        rest.setdefault(new, rest.pop(old))


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    span_names=("Responses", "Function:"),
    versions="logfire 5.4.0 with openai-agents 0.24.0",
    unknown="call ids on tool spans; the request of a failed call; the text of a tool's error, which the framework redacts",
)
