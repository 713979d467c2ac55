"""The GenAI semantic conventions of OpenTelemetry: current attributes, and the older spellings of the same convention.

Attributes may be JSON strings (as spans carry them) or structured (as events do, and spans since SDK 1.45). Read besides the
span: the event ``gen_ai.client.inference.operation.details``, whose attributes are those of the span, and exception events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import identity, messages, outcome, tokens
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import same, text, texts, was_cut
from otel_agentrec.capture.spans import ERROR, LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList
from otel_agentrec.journal.jsontext import parse

__all__ = ["DIALECT", "KIND_OF_OPERATION"]

NAME = "otel-genai"

KIND_OF_OPERATION: dict[str, str] = {
    "chat": Kind.MODEL,
    "generate_content": Kind.MODEL,
    "text_completion": Kind.MODEL,
    "execute_tool": Kind.TOOL,
    "invoke_agent": Kind.AGENT,
    "invoke_workflow": Kind.AGENT,
    "create_agent": Kind.STEP,
    "plan": Kind.STEP,
    "fetch_response": Kind.STEP,
    "embeddings": Kind.STEP,
    "embedding": Kind.STEP,
    "retrieval": Kind.STEP,
    "rerank": Kind.STEP,
    "moderation": Kind.STEP,
    "create_memory_store": Kind.STEP,
    "delete_memory_store": Kind.STEP,
    "create_memory": Kind.STEP,
    "update_memory": Kind.STEP,
    "upsert_memory": Kind.STEP,
    "search_memory": Kind.STEP,
    "delete_memory": Kind.STEP,
}

_DETAILS = "gen_ai.client.inference.operation.details"
_EXCEPTION = "gen_ai.client.operation.exception"
_DELTAS = ("gen_ai.choice.delta", "gen_ai.choice", "gen_ai.content.completion.chunk", "gen_ai.content.completion")

_REQUEST = "gen_ai.request."
_OLD_PARAMETERS = {
    "gen_ai.openai.request.seed": "seed",
    "gen_ai.openai.request.response_format": "output.type",
    "gen_ai.openai.request.service_tier": "service_tier",
    "openai.request.service_tier": "service_tier",
    "gen_ai.output.type": "output.type",
}
_AMBIENT = ("gen_ai.conversation.", "gen_ai.agent.", "gen_ai.workflow.")
"""Attributes that propagate to any span below an agent and say nothing of what the span is."""


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span is in this convention, and its facts; None when it is no agent step."""
    rest: dict[str, Any] = {}
    for log in logs:  # the span's own word wins over what an event repeats
        if log.event_name == _DETAILS:
            rest.update(log.attributes)
    rest.update(span.attributes)
    found = _recognise(span, rest)
    if found is None:
        return None
    kind, operation, inferred = found
    rest.pop("gen_ai.operation.name", None)
    facts = Facts(dialect=NAME, operation=operation)
    if inferred:
        facts.flags.append("operation_inferred")
    _take_identity(rest, facts)
    tokens.take(rest, facts)
    _take_parameters(rest, facts)
    reasons = texts(rest.pop("gen_ai.response.finish_reasons", None))
    if kind == Kind.TOOL:
        _take_tool(rest, facts)
    else:
        in_messages = _take_messages(rest, facts)
        reasons = reasons or in_messages
    facts.finish_reasons = reasons or None
    loose = _take_events(span, facts)
    _take_outcome(span, logs, rest, facts)
    outcome.note_losses(span, rest, facts)
    if loose:
        rest["otel.events"] = loose
    if rest:
        facts.attributes = rest
    return kind, facts


def _recognise(span: SpanView, attributes: Mapping[str, Any]) -> tuple[str, str | None, bool] | None:
    """-> (kind, operation, whether the operation had to be inferred), or None.

    An operation outside the convention is judged by what else the span says: an answer makes it a model call, a tool's name
    a tool call. Without an operation (a limit may have thrown it out first: it is the oldest attribute) the span's name
    decides, when the span speaks this convention at all.
    """
    operation = text(attributes.get("gen_ai.operation.name"))
    if operation is not None:
        return KIND_OF_OPERATION.get(operation) or _by_evidence(attributes) or Kind.STEP, operation, False
    if attributes.get("mcp.method.name") == "tools/call":
        return Kind.TOOL, "execute_tool", False
    speaks = any(key.startswith("gen_ai.") and not key.startswith(_AMBIENT) for key in attributes)
    of_agent = _is_agent_scope(span.scope)
    if not speaks and not of_agent:
        return None
    word = span.name.partition(" ")[0]
    if word in KIND_OF_OPERATION:
        return KIND_OF_OPERATION[word], word, True
    kind = _by_evidence(attributes)
    if kind is not None:
        return kind, None, True
    return (Kind.STEP, None, False) if of_agent else None


def _by_evidence(attributes: Mapping[str, Any]) -> str | None:
    if "gen_ai.tool.call.id" in attributes or "gen_ai.tool.call.arguments" in attributes:
        return Kind.TOOL
    if any(key in attributes for key in _ANSWERED):
        return Kind.MODEL
    if "gen_ai.tool.name" in attributes:
        return Kind.TOOL
    return None


_ANSWERED = (
    "gen_ai.response.id",
    "gen_ai.response.finish_reasons",
    "gen_ai.response.model",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
)


def _is_agent_scope(scope: str) -> bool:
    return scope in _EXACT_SCOPES or scope.startswith(_SCOPE_PREFIXES)


def _take_identity(rest: dict[str, Any], facts: Facts) -> None:
    """Move names and ids from the attributes into the facts. Empty strings count as absent."""
    identity.take_given(rest, facts)
    take = rest.pop
    facts.provider = text(take("gen_ai.provider.name", None))
    system = text(rest.get("gen_ai.system"))
    if system is not None and facts.provider in (None, system):
        facts.provider = system
        del rest["gen_ai.system"]
    facts.model = text(take("gen_ai.request.model", None))
    facts.response_model = text(take("gen_ai.response.model", None))
    facts.response_id = text(take("gen_ai.response.id", None))
    facts.agent_id = text(take("gen_ai.agent.id", None))
    facts.agent_name = text(take("gen_ai.agent.name", None)) or text(take("gen_ai.workflow.name", None))
    facts.session_id = text(take("gen_ai.conversation.id", None)) or text(take("session.id", None))
    resent = tokens.count(take("http.request.resend_count", None))
    if resent is not None:
        facts.retry_count = resent


def _take_parameters(rest: dict[str, Any], facts: Facts) -> None:
    streamed = rest.get("gen_ai.request.stream")
    if isinstance(streamed, bool):
        facts.streamed = streamed
        del rest["gen_ai.request.stream"]
    names = [key for key in rest if key.startswith(_REQUEST) or key in _OLD_PARAMETERS]
    if not names:
        return
    parameters: dict[str, Any] = {}
    for key in names:
        name = _OLD_PARAMETERS.get(key) or key[len(_REQUEST) :]
        if name not in parameters or key.startswith(_REQUEST):
            parameters[name] = rest.pop(key)
    facts.parameters = parameters


def _take_tool(rest: dict[str, Any], facts: Facts) -> None:
    facts.tool_name = text(rest.pop("gen_ai.tool.name", None))
    facts.tool_call_id = text(rest.pop("gen_ai.tool.call.id", None))
    facts.arguments = rest.pop("gen_ai.tool.call.arguments", None)
    facts.result = rest.pop("gen_ai.tool.call.result", None)
    if was_cut(facts.arguments):
        facts.flags.append("input_truncated")
    if was_cut(facts.result):
        facts.flags.append("output_truncated")


def _take_messages(rest: dict[str, Any], facts: Facts) -> list[str]:
    """Move messages, instructions and tools into the facts. -> finish reasons that the output messages name."""
    facts.messages, cut_in = messages.raw_listing(rest.pop("gen_ai.input.messages", None), messages.message)
    raw = rest.pop("gen_ai.output.messages", None)
    output, cut_out = messages.parsed_listing(raw, same)
    reasons: list[str] = []
    if isinstance(output, RawList):
        facts.output_messages = RawList(output.text, messages.message)
    elif output is not None:
        reasons = messages.finish_reasons_of(output)
        facts.output_messages = [messages.message(m) for m in output]
        facts.calls = messages.calls_of(facts.output_messages)
    facts.system_instructions, _ = messages.raw_listing(rest.pop("gen_ai.system_instructions", None), messages.part)
    facts.tools, _ = messages.raw_listing(rest.pop("gen_ai.tool.definitions", None), messages.definition)
    if cut_in:
        facts.flags.append("input_truncated")
    if cut_out:
        facts.flags.append("output_truncated")
    return reasons


def _take_events(span: SpanView, facts: Facts) -> list[dict[str, Any]]:
    """The text of streamed pieces, where no output message holds it. -> the events that no fact was made of."""
    pieces: list[str] = []
    loose: list[dict[str, Any]] = []
    for event in span.events:
        if event.name in _DELTAS:
            piece = _piece(event.attributes)
            if piece is not None:
                pieces.append(piece)
        elif event.name != "exception" and event.attributes:
            loose.append({"name": event.name, "time": str(event.ts_ns), "attributes": dict(event.attributes)})
    if pieces and not facts.output_messages:
        facts.output_text = "".join(pieces)
    return loose


def _piece(attributes: Mapping[str, Any]) -> str | None:
    content = attributes.get("content") or attributes.get("gen_ai.completion")
    if isinstance(content, str):
        return content
    held = attributes.get("message")
    if isinstance(held, str):
        try:
            held = parse(held)
        except ValueError:
            return None
    content = held.get("content") if isinstance(held, Mapping) else None
    return content if isinstance(content, str) else None


def _take_outcome(span: SpanView, logs: Sequence[LogView], rest: dict[str, Any], facts: Facts) -> None:
    """Status and error. A handled exception event alone makes no failure."""
    error_type = text(rest.pop("error.type", None))
    thrown_type, thrown = outcome.thrown(span, (log.attributes for log in logs if log.event_name == _EXCEPTION))
    if span.status_code == ERROR or error_type:
        facts.status = "error"
        facts.error_type = error_type or thrown_type
        facts.error_message = span.status_message or thrown
        return
    known = facts.output_messages or facts.output_text
    if span.end_ns is None:
        facts.status = "partial" if known else None
    elif facts.finish_reasons and set(facts.finish_reasons) == {"error"} and facts.output_tokens is None:
        # a stream that broke or was closed early: some frameworks call a success "error", but those count its tokens
        facts.status = "partial"


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(
        "opentelemetry.instrumentation.genai.",
        "opentelemetry.util.genai.handler",
        "opentelemetry.instrumentation.openai_v2",
        "opentelemetry.instrumentation.google_genai",
        "otel_agentrec",
    ),
    key_prefixes=("gen_ai.", "mcp.method.name"),
    span_names=tuple(KIND_OF_OPERATION),
    joined_logs=(_DETAILS, _EXCEPTION),
    kept_logs=("gen_ai.",),
    versions="semantic-conventions-genai 1.42.0-dev; opentelemetry-instrumentation-genai-* 1.3b0, openai-v2 2.4b0",
    unknown="retries (only HTTP child spans show them); the request of an answer whose content was not captured",
)
_SCOPE_PREFIXES = tuple(s for s in DIALECT.scopes if s.endswith("."))
_EXACT_SCOPES = frozenset(DIALECT.scopes)
