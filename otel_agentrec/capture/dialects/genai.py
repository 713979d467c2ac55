"""The GenAI semantic conventions of OpenTelemetry: current attributes, and the older spellings of the same convention.

Attributes may be JSON strings (as spans carry them) or structured (as events do, and spans since SDK 1.45). What was said may
also stand in events, as log records or on the span: in one with all details (``genai_details``), one per message
(``genai_messages``) or one with the whole prompt (``genai_prompts``). What is told in several of these ways counts once: the
span's attributes first, then in this order. What a span *is* only the span itself tells: a log record that names a span may
be meant for another one below it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import (
    genai_details,
    genai_messages,
    genai_prompts,
    identity,
    messages,
    outcome,
    tokens,
)
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import same, text, texts, was_cut
from otel_agentrec.capture.spans import ERROR, LogView, SpanEvent, SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList
from otel_agentrec.journal.jsontext import parse

__all__ = ["DIALECT", "JOINED_LOGS", "KIND_OF_OPERATION", "read_as", "takes", "tell"]

Element = Callable[[Any], Any]

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

_EXCEPTION = "gen_ai.client.operation.exception"
JOINED_LOGS = (genai_details.NAME, *genai_messages.NAMES, _EXCEPTION)
_DELTAS = ("gen_ai.choice.delta", "gen_ai.content.completion.chunk")

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
    return read_as(NAME, span, logs)


def read_as(
    name: str,
    span: SpanView,
    logs: Sequence[LogView] = (),
    message: Element = messages.message,
    *,
    own: bool = False,
) -> Reading | None:
    """As :func:`read`, for a convention that is this one with additions.

    Args:
        name: of that convention.
        span: its attributes brought into the spellings of this one.
        message: brings one message into the schema (pure).
        own: every such span is a step, even one of which nothing else is known.
    """
    found = _recognise(span, span.attributes, own or _is_agent_scope(span.scope))
    if found is None:
        return None
    kind, operation, inferred = found
    taken = [log for log in logs if takes(kind, log)]
    details = [event.attributes for event in span.events if event.name == genai_details.NAME]
    details += [log.attributes for log in taken if log.event_name == genai_details.NAME]
    rest = genai_details.merge(span.attributes, details)
    rest.pop("gen_ai.operation.name", None)
    facts = Facts(dialect=name, operation=operation)
    if inferred:
        facts.flags.append("operation_inferred")
    _take_identity(rest, facts)
    tokens.take(rest, facts)
    _take_parameters(rest, facts)
    reasons = texts(rest.pop("gen_ai.response.finish_reasons", None))
    if kind == Kind.TOOL:
        _take_tool(span, rest, facts)
    else:
        in_messages = _take_messages(rest, message, facts)
        in_events = _take_conversation(rest, span.events, taken, message, facts) if kind != Kind.STEP else []
        reasons = reasons or in_messages or in_events
    facts.finish_reasons = reasons or None
    loose = _take_events(span, kind, facts)
    _take_outcome(span, taken, rest, facts)
    outcome.note_losses(span, rest, facts)
    if loose:
        rest["otel.events"] = loose
    if rest:
        facts.attributes = rest
    return kind, facts


def takes(kind: str, log: LogView) -> bool:
    """Whether a log record that names a span of this kind tells of it, and not of a model call below it."""
    if log.event_name == _EXCEPTION:
        return True
    if log.event_name == genai_details.NAME:
        operation = text(log.attributes.get("gen_ai.operation.name"))
        return kind == KIND_OF_OPERATION.get(operation or "chat", Kind.MODEL)
    return kind == Kind.MODEL and log.event_name in genai_messages.NAMES


def tell(log: LogView) -> Facts | None:
    """What a log record tells of a model call whose span it does not name."""
    if log.event_name in genai_messages.NAMES:
        return genai_messages.alone(log)
    if log.event_name != genai_details.NAME or not takes(Kind.MODEL, log):
        return None
    told = read(SpanView("", "", None, "", attributes={"gen_ai.operation.name": "chat", **log.attributes}, end_ns=0))
    if told is None:
        return None
    facts = told[1]
    facts.dialect = None
    return facts


def _recognise(span: SpanView, attributes: Mapping[str, Any], of_agent: bool) -> tuple[str, str | None, bool] | None:
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
    facts.model = text(take("gen_ai.request.model", None)) or text(take("llm.model_name", None))
    facts.response_model = text(take("gen_ai.response.model", None))
    facts.response_id = text(take("gen_ai.response.id", None))
    facts.agent_id = text(take("gen_ai.agent.id", None))
    named = text(take("gen_ai.agent.name", None))
    if named is not None and named == facts.agent_id and _is_uuid(named):
        named = None  # an agent without a name goes by its id, which is another one in every process
    facts.agent_name = named or text(take("gen_ai.workflow.name", None))
    told = text(take("gen_ai.conversation.id", None)) or text(take("session.id", None))
    facts.session_id = told or facts.session_id
    resent = tokens.count(take("http.request.resend_count", None))
    if resent is not None:
        facts.retry_count = resent


def _is_uuid(value: str) -> bool:
    try:
        return str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False


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


def _take_tool(span: SpanView, rest: dict[str, Any], facts: Facts) -> None:
    """The convention names such a span ``execute_tool {tool}``, which stays where a limit threw the attributes out."""
    arguments, result = genai_messages.tool_io(span.events)
    operation, _, named = span.name.partition(" ")
    facts.tool_name = text(rest.pop("gen_ai.tool.name", None)) or (named if operation == "execute_tool" else "") or None
    facts.tool_call_id = text(rest.pop("gen_ai.tool.call.id", None))
    facts.arguments = rest.pop("gen_ai.tool.call.arguments", arguments)
    facts.result = rest.pop("gen_ai.tool.call.result", result)
    if was_cut(facts.arguments):
        facts.flags.append("input_truncated")
    if was_cut(facts.result):
        facts.flags.append("output_truncated")


def _take_messages(rest: dict[str, Any], message: Element, facts: Facts) -> list[str]:
    """Move messages, instructions and tools into the facts. -> finish reasons that the output messages name."""
    facts.messages, cut_in = messages.raw_listing(rest.pop("gen_ai.input.messages", None), message)
    raw = rest.pop("gen_ai.output.messages", None)
    output, cut_out = messages.parsed_listing(raw, same)
    reasons: list[str] = []
    if isinstance(output, RawList):
        facts.output_messages = RawList(output.text, message)
    elif output is not None:
        reasons = messages.finish_reasons_of(output)
        facts.output_messages = [message(m) for m in output]
        facts.calls = messages.calls_of(facts.output_messages)
    facts.system_instructions, _ = messages.raw_listing(rest.pop("gen_ai.system_instructions", None), messages.part)
    facts.tools, _ = messages.raw_listing(rest.pop("gen_ai.tool.definitions", None), messages.definition)
    if cut_in:
        facts.flags.append("input_truncated")
    if cut_out:
        facts.flags.append("output_truncated")
    return reasons


def _take_conversation(
    rest: dict[str, Any], events: Sequence[SpanEvent], logs: Sequence[LogView], message: Element, facts: Facts
) -> list[str]:
    """What events tell of the messages, where attributes don't or were cut. -> finish reasons that they name."""
    told = genai_messages.in_logs(logs) if logs else genai_messages.NOTHING
    on_span = genai_messages.in_span_events(events) if events else genai_messages.NOTHING
    prompt, completion = genai_prompts.take(rest, events)
    said, output = told.messages or on_span.messages or prompt, told.output or on_span.output or completion
    if said is not None and _is_wanting(facts.messages, "input_truncated", facts):
        facts.messages = [message(m) for m in said]
    if output is not None and _is_wanting(facts.output_messages, "output_truncated", facts):
        facts.output_messages = [message(m) for m in output]
        facts.calls = messages.calls_of(facts.output_messages)
    if facts.calls is None:
        facts.calls = told.calls or on_span.calls
    facts.tools = facts.tools or told.tools
    return [*(told.reasons or on_span.reasons or messages.finish_reasons_of(completion))]


def _is_wanting(said: object, flag: str, facts: Facts) -> bool:
    """Whether messages are not told yet, or only in part; the flag that says so is taken back."""
    if flag in facts.flags:
        facts.flags.remove(flag)
        return True
    return said is None


def _take_events(span: SpanView, kind: str, facts: Facts) -> list[dict[str, Any]]:
    """The text of streamed pieces, where no output message holds it. -> the events that no fact was made of."""
    read_already = _READ_EVENTS if kind != Kind.STEP else ("exception",)
    pieces: list[str] = []
    loose: list[dict[str, Any]] = []
    for event in span.events:
        if event.name in _DELTAS:
            piece = _piece(event.attributes)
            if piece is not None:
                pieces.append(piece)
        elif event.name not in read_already and event.attributes:
            loose.append({"name": event.name, "time": str(event.ts_ns), "attributes": dict(event.attributes)})
    if pieces and not facts.output_messages:
        facts.output_text = "".join(pieces)
    return loose


_READ_EVENTS = ("exception", genai_details.NAME, *genai_messages.NAMES, *genai_prompts.NAMES)


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
        "opentelemetry.instrumentation.botocore.bedrock-runtime",
        "otel_agentrec",
    ),
    key_prefixes=("gen_ai.", "mcp.method.name"),
    span_names=tuple(KIND_OF_OPERATION),
    joined_logs=JOINED_LOGS,
    kept_logs=("gen_ai.",),
    takes=takes,
    tell=tell,
    versions="semantic-conventions-genai 1.42.0-dev; opentelemetry-instrumentation-genai-* 1.3b0, openai-v2 2.1b0 to 2.4b0",
    unknown="retries (only HTTP child spans show them); the request of an answer whose content was not captured",
)
_SCOPE_PREFIXES = tuple(s for s in DIALECT.scopes if s.endswith("."))
_EXACT_SCOPES = frozenset(DIALECT.scopes)
