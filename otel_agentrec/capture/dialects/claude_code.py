"""Claude Code's own telemetry: spans ``claude_code.*`` and log events of a scope of its own.

Spans tell which calls there were, their tokens and the results of tools; log events tell what was said. They name the span of
the whole interaction and not the call that they are about: of a tool they have the call id, of a model the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from otel_agentrec.capture.dialects import genai, messages, raw, tokens
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import loaded, text
from otel_agentrec.capture.spans import LogView, SpanEvent, SpanView
from otel_agentrec.journal.facts import Facts, Kind

__all__ = ["DIALECT"]

Json = Any

NAME = "claude-code"
SCOPE = "com.anthropic.claude_code."

KINDS: dict[str, tuple[str, str]] = {
    "interaction": (Kind.AGENT, "invoke_agent"),
    "llm_request": (Kind.MODEL, "chat"),
    "tool": (Kind.TOOL, "execute_tool"),
    "tool.execution": (Kind.TOOL, "execute_tool"),
}
"""``span.type`` -> (kind, operation); any other type is a step of that name. An execution stands inside its tool."""

_TYPE = "span.type"
_ATTEMPT = "gen_ai.request.attempt"
_OUTPUT = "tool.output"
_ANY_MCP_TOOL = "mcp_tool"
"""Stands for the name of a tool of an MCP server where details are not to be told."""
_PROMPT, _SAID, _TOOL = "user_prompt", "assistant_response", "tool_result"
_REQUEST_BODY, _RESPONSE_BODY = "api_request_body", "api_response_body"


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of Claude Code is, and its facts; None for a span of another scope."""
    if not span.scope.startswith(SCOPE):
        return None
    attributes = dict(span.attributes)
    told = text(attributes.pop(_TYPE, None)) or span.name.removeprefix("claude_code.")
    kind, operation = KINDS.get(told, (Kind.STEP, told))
    attributes["gen_ai.operation.name"] = operation
    prompt = attributes.pop("user_prompt", None)
    events = [event for event in span.events if event.name not in (_ATTEMPT, _OUTPUT)]
    reading = genai.read(span._replace(attributes=attributes, events=events))
    if reading is None:
        return None
    facts = reading[1]
    facts.dialect = NAME
    left = facts.attributes or {}
    if kind == Kind.MODEL:
        _take_attempts(span.events, left, facts)
    elif kind == Kind.TOOL:
        _take_tool(span.events, left, facts)
    elif kind == Kind.AGENT:
        prompts = [prompt, *(log.attributes.get("prompt") for log in logs if takes(kind, log))]
        asked = next((t for p in prompts if (t := text(p)) is not None), None)
        facts.messages = None if asked is None else [{"role": "user", "parts": [messages.part(asked)]}]
    if left.get("success") is False and facts.status is None:
        facts.status, facts.error_message = "error", text(left.get("error"))
    facts.attributes = left or None
    return kind, facts


def takes(kind: str, log: LogView) -> bool:
    """Whether a log event tells of the span that it names: only of the whole interaction."""
    return kind == Kind.AGENT and log.event_name == _PROMPT and log.scope.startswith(SCOPE)


def tell(log: LogView) -> Facts | None:
    """What a log event tells of a model or tool call whose span it does not name."""
    if not log.scope.startswith(SCOPE):
        return None
    told = log.attributes
    if log.event_name == _TOOL:
        return _tell_tool(told)
    if log.event_name == _SAID:
        said = text(told.get("response"))
        return None if said is None else _answered([{"role": "assistant", "parts": [messages.part(said)]}])
    body = loaded(told.get("body"))
    if log.event_name == _REQUEST_BODY:
        asked = raw.asked(body)
        if asked is None:
            return None
        return Facts(
            messages=asked.messages,
            system_instructions=asked.instructions,
            tools=asked.tools,
            parameters=asked.parameters,
        )
    answer = raw.said(body) if log.event_name == _RESPONSE_BODY else None
    if answer is None:
        return None
    facts = _answered(answer.messages)
    facts.calls = messages.calls_of(answer.messages)
    facts.response_id, facts.finish_reasons = answer.response_id, answer.finish_reasons
    return facts


def _answered(said: list[Json]) -> Facts:
    return Facts(output_messages=said)


def _tell_tool(told: Any) -> Facts | None:
    call_id = text(told.get("tool_use_id"))
    if call_id is None:
        return None
    facts = Facts(tool_call_id=call_id, arguments=told.get("tool_input"))
    if str(told.get("success")).lower() == "false":
        facts.status, facts.error_type = "error", text(told.get("error_type"))
        facts.error_message = text(told.get("error"))
    return facts


def _take_attempts(events: Sequence[SpanEvent], left: dict[str, Any], facts: Facts) -> None:
    """One event for each HTTP request that was made."""
    seen = [tokens.count(event.attributes.get("attempt")) or 0 for event in events if event.name == _ATTEMPT]
    last = max([tokens.count(left.pop("attempt", None)) or 0, len(seen), *seen])
    if last > 1 and (facts.retry_count or 0) < last - 1:
        facts.retry_count = last - 1


def _take_tool(events: Sequence[SpanEvent], left: dict[str, Any], facts: Facts) -> None:
    """A model calls the tools of a server by a name with the server's in front."""
    named = text(left.get("tool_name"))
    if named is not None and named != _ANY_MCP_TOOL:
        facts.tool_name = left.pop("tool_name")
    facts.tool_call_id = facts.tool_call_id or text(left.get("tool_use_id"))
    if left.get("tool_use_id") == facts.tool_call_id:
        left.pop("tool_use_id", None)
    if facts.arguments is None:
        facts.arguments = left.pop("tool_input", None)
    for event in events:
        if event.name == _OUTPUT and facts.result is None:
            facts.result = event.attributes.get("output")


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    joined_logs=(_PROMPT, _SAID, _TOOL, _REQUEST_BODY, _RESPONSE_BODY),
    takes=takes,
    tell=tell,
    versions="Claude Code 2.1 (claude-agent-sdk 0.2)",
    unknown="without raw bodies: what the model was asked, its reasoning, response ids, and which calls it asked for "
    "(read off the tools that follow)",
)
