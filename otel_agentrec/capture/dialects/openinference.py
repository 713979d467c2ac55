"""OpenInference: spans of Arize's instrumentations and of everything that uses their conventions.

``openinference.span.kind`` says what a span is. Messages come flattened (``llm.input_messages.N.message.*``), and mostly
once more as the raw request and answer (``input.value``, ``output.value``), which tell more: ids, reasoning, streaming.
Where the shape of the raw ones is known they lead; the flattened ones are for all others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import (
    flattened,
    history,
    identity,
    langchain,
    llamaindex,
    outcome,
    pythoncall,
    pythonrepr,
    raw,
    tokens,
)
from otel_agentrec.capture.dialects import openinference_messages as flat
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.exchange import Asked, Said, parameters
from otel_agentrec.capture.dialects.messages import calls_of, definition, part
from otel_agentrec.capture.dialects.values import loaded, same, text, was_cut
from otel_agentrec.capture.spans import ERROR, LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList

__all__ = ["DIALECT"]

Json = Any

NAME = "openinference"
SCOPE = "openinference.instrumentation."

KINDS: dict[str, tuple[str, str | None]] = {
    "LLM": (Kind.MODEL, "chat"),
    "TOOL": (Kind.TOOL, "execute_tool"),
    "AGENT": (Kind.AGENT, "invoke_agent"),
    "CHAIN": (Kind.STEP, "chain"),
    "RETRIEVER": (Kind.STEP, "retrieval"),
    "RERANKER": (Kind.STEP, "rerank"),
    "EMBEDDING": (Kind.STEP, "embeddings"),
    "GUARDRAIL": (Kind.STEP, "guardrail"),
    "EVALUATOR": (Kind.STEP, "evaluation"),
    "PROMPT": (Kind.STEP, "prompt"),
}
"""``openinference.span.kind`` -> (kind, operation)."""

_KIND = "openinference.span.kind"
_IN, _OUT = "llm.input_messages", "llm.output_messages"
_OF_MODEL = (f"{_IN}.", f"{_OUT}.", "llm.token_count.")
_HANDOFF = "handoff to "
_LLAMA_INDEX = f"{SCOPE}llama_index"
_HIDDEN = "__REDACTED__"
_OBJECT = re.compile(r"<[^<>]*\bobject\b.* at 0x[0-9a-fA-F]+>")
_FIRST_TOKEN = "First Token Stream Event"

_APART = frozenset(
    {
        "_type",
        "functions",
        "input",
        "instructions",
        "messages",
        "model",
        "model_name",
        "stream",
        "streaming",
        "system",
        "tools",
    }
)
"""Invocation parameters that facts of their own hold."""
_ECHOED = _APART | {"created_at", "id", "metadata", "object", "output", "status", "usage"}
"""The same where they were read off the answer."""


_METHODS = (".run", ".kickoff", ".kickoff_async")


def _agent_in(name: str) -> str | None:
    """``Guide.kickoff`` -> ``Guide``, as its attributes say at its end: the lane of a call must not hang on when it is told."""
    method = next((method for method in _METHODS if name.endswith(method)), "")
    return name.removesuffix(method) or None


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span is in this convention, and its facts; None when it does not speak it."""
    found = _recognise(span)
    if found is None:
        return None
    kind, operation, inferred = found
    rest = dict(span.attributes)
    rest.pop(_KIND, None)
    facts = Facts(dialect=NAME, operation=operation)
    if inferred:
        facts.flags.append("operation_inferred")
    _take_identity(span, rest, facts)
    tokens.take(rest, facts)
    failed = False
    if kind == Kind.MODEL:
        _take_model(span, rest, facts)
    elif kind == Kind.TOOL:
        failed = _take_tool(span, rest, facts)
    else:
        _take_step(span, kind, rest, facts)
    _take_outcome(span, kind, failed, facts)
    outcome.note_losses(span, rest, facts)
    loose = [
        {"name": e.name, "time": str(e.ts_ns), "attributes": dict(e.attributes)}
        for e in span.events
        if e.name not in ("exception", _FIRST_TOKEN) and e.attributes
    ]
    if loose:
        rest["otel.events"] = loose
    if rest:
        facts.attributes = rest
    return kind, facts


def _recognise(span: SpanView) -> tuple[str, str | None, bool] | None:
    """-> (kind, operation, whether it had to be inferred), or None.

    A span that names its operation as the GenAI conventions do is theirs, although it may speak this one besides.
    """
    attributes = span.attributes
    if "gen_ai.operation.name" in attributes:
        return None
    told = text(attributes.get(_KIND))
    if told is None:
        if any(key.startswith(_OF_MODEL) for key in attributes):
            return Kind.MODEL, "chat", True
        if not span.scope.startswith(SCOPE):
            return None
        return (Kind.TOOL, "execute_tool", True) if "tool.name" in attributes else (Kind.STEP, None, False)
    kind, operation = KINDS.get(told.upper(), (Kind.STEP, told.lower()))
    if operation == "chain" and span.parent_span_id is None:
        return Kind.AGENT, "invoke_workflow", False  # what a chain at the top does is the run
    if kind == Kind.TOOL and span.name.startswith(_HANDOFF) and "tool.name" not in attributes:
        return Kind.STEP, "handoff", False
    if kind == Kind.MODEL and _only_prepares(span):
        return Kind.STEP, "prepare", False
    return kind, operation, False


def _only_prepares(span: SpanView) -> bool:
    """LlamaIndex marks all methods of a model's class; private ones (``X._prepare_chat_with_tools``) ask no model."""
    private = span.name.rpartition(".")[2].startswith("_")
    return private and span.scope == _LLAMA_INDEX and not any(key.startswith(_OF_MODEL) for key in span.attributes)


def _take_identity(span: SpanView, rest: dict[str, Any], facts: Facts) -> None:
    identity.take_given(rest, facts)
    take = rest.pop
    metadata = loaded(rest.get("metadata"))
    metadata = metadata if isinstance(metadata, Mapping) else {}
    facts.session_id = text(take("session.id", None)) or next(
        (told for key in ("session_id", "conversation_id", "thread_id") if (told := text(metadata.get(key)))),
        facts.session_id,
    )
    facts.agent_name = text(take("agent.name", None)) or text(metadata.get("lc_agent_name"))
    if facts.agent_name is None and facts.operation == "invoke_agent":
        facts.agent_name = text(rest.get("graph.node.id")) or _agent_in(span.name)
    facts.provider = text(take("llm.provider", None))
    system = text(rest.get("llm.system"))
    if system is not None and facts.provider in (None, system):
        facts.provider = system
        del rest["llm.system"]


# --- model calls --------------------------------------------------------------------------------------------------------


def _take_model(span: SpanView, rest: dict[str, Any], facts: Facts) -> None:
    asked = _take_request(span, rest, facts)
    said = _take_answer(span, rest, facts)
    given = loaded(rest.get("llm.invocation_parameters"))
    if isinstance(given, Mapping):
        del rest["llm.invocation_parameters"]
    else:
        given = {}
    echoed = facts.response_id is not None and given.get("id") == facts.response_id
    facts.parameters = {
        **(asked.parameters or {}),
        **(parameters(given, _ECHOED if echoed else _APART) or {}),
    } or None
    if facts.tools is None and isinstance(given.get("tools"), list):
        facts.tools = [definition(tool) for tool in given["tools"]] or None
    _take_names(rest, facts, asked, said, {} if echoed else given)
    streamed = (asked.streamed, given.get("stream"), given.get("streaming"))
    facts.streamed = next((told for told in streamed if isinstance(told, bool)), None)
    if any(e.name == _FIRST_TOKEN for e in span.events):
        facts.streamed = True


def _take_names(rest: dict[str, Any], facts: Facts, asked: Asked, said: Said, given: Mapping[str, Json]) -> None:
    """The requested and the answering model. ``llm.model_name`` is the one or the other, as the instrumentation likes."""
    named = text(rest.pop("llm.model_name", None))
    requested = text(rest.pop("llm.request.model_name", None))
    facts.model = requested or text(given.get("model")) or text(given.get("model_name")) or asked.model
    facts.response_model = text(rest.pop("llm.response.model_name", None)) or said.model
    if facts.model is None and named != facts.response_model:
        facts.model = named
    elif facts.response_model is None and named != facts.model:
        facts.response_model = named


def _take_request(span: SpanView, rest: dict[str, Any], facts: Facts) -> Asked:
    tools = flat.take_tools(rest)
    value = rest.get("input.value")
    asked = history.asked(value) or raw.asked(loaded(value))
    if asked is not None:
        _drop(rest, "input")
        facts.messages, facts.system_instructions = asked.messages, asked.instructions
        if not asked.has_instructions():
            facts.system_instructions = flat.instructions(rest, _IN)
        flattened.drop(rest, _IN)
    elif (told := flat.take(rest, _IN) or flat.take_prompts(rest)) is not None:
        facts.messages = told
        _drop_repeated(rest, "input", told)
    elif text(value) is not None:
        facts.messages = _from_text(span, rest, "input", "user")
    if was_cut(value):
        facts.flags.append("input_truncated")
    facts.tools = (asked.tools if asked is not None else None) or tools
    return asked if asked is not None else Asked([])


def _take_answer(span: SpanView, rest: dict[str, Any], facts: Facts) -> Said:
    flat_messages = flat.take(rest, _OUT) or flat.take_completions(rest)
    value = rest.get("output.value")
    parsed = loaded(value)
    said = raw.said(parsed)
    told: list[Json] | RawList | None = flat_messages
    if said is not None:
        told = said.messages or flat_messages
        if said.raw is not None or not isinstance(parsed, Mapping):
            _drop(rest, "output")
    elif flat_messages is not None:
        _drop_repeated(rest, "output", flat_messages)
    elif text(value) is not None:
        told = _from_text(span, rest, "output", "assistant")
    if was_cut(value):
        facts.flags.append("output_truncated")
    facts.output_messages = told
    if isinstance(told, list):
        facts.calls = calls_of(told)
    said = said or Said([])
    reason = text(rest.pop("llm.finish_reason", None))
    facts.finish_reasons = said.finish_reasons or ([reason] if reason else None)
    facts.response_id, facts.output_raw = said.response_id, said.raw
    return said


def _from_text(span: SpanView, rest: dict[str, Any], side: str, role: str) -> list[Json] | RawList | None:
    """A plain text as a message; text of a list that was cut stays what it is."""
    value = rest[f"{side}.value"]
    if was_cut(value):
        _drop(rest, side)
        return RawList(value, same)
    if not isinstance(value, str) or isinstance(loaded(value), (dict, list)) or not _is_said(span, value):
        return None  # stays among the attributes
    _drop(rest, side)
    return [{"role": role, "parts": [part(value)]}]


def _is_said(span: SpanView, value: str) -> bool:
    """Whether a plain text is what somebody said: not hidden by a switch, no object as Python or LlamaIndex prints it."""
    printed = span.scope == _LLAMA_INDEX and value.startswith("assistant: ")
    return value != _HIDDEN and not printed and not _OBJECT.fullmatch(value)


def _drop(rest: dict[str, Any], side: str) -> None:
    rest.pop(f"{side}.value", None)
    rest.pop(f"{side}.mime_type", None)


def _drop_repeated(rest: dict[str, Any], side: str, told: list[Json]) -> None:
    """Drop a text that one of the messages holds as well."""
    value = rest.get(f"{side}.value")
    parts = (p for m in told if isinstance(m, Mapping) for p in m.get("parts") or ())
    if any(isinstance(p, Mapping) and p.get("content") == value for p in parts):
        _drop(rest, side)


# --- tool calls, agents and other steps ---------------------------------------------------------------------------------


def _take_tool(span: SpanView, rest: dict[str, Any], facts: Facts) -> bool:
    """-> whether the result says that it is an error."""
    facts.tool_name = text(rest.pop("tool.name", None)) or span.name or None
    facts.tool_call_id = text(rest.pop("tool_call.id", None)) or text(rest.pop("tool.id", None))
    value, result = _shown(rest, "input"), _shown(rest, "output")
    facts.arguments = _arguments(value, rest.get("tool.parameters"))
    facts.result, failed = result, False
    if was_cut(value):
        facts.flags.append("input_truncated")
    if was_cut(result):
        facts.flags.append("output_truncated")
    parsed = loaded(result)
    answered = langchain.tool_message(parsed)
    output = llamaindex.tool_output(parsed)
    if answered is not None:
        facts.result = answered.get("content")
        facts.tool_call_id = facts.tool_call_id or text(answered.get("tool_call_id"))
        failed = answered.get("status") == "error"
        if answered.get("artifact") is not None:
            rest["output.value"] = result
    elif output is not None:
        facts.result, failed = output
    for side in ("input", "output"):
        if f"{side}.value" not in rest:
            rest.pop(f"{side}.mime_type", None)
    return failed


def _shown(rest: dict[str, Any], side: str) -> Json:
    """Take a value, unless it was hidden."""
    return None if rest.get(f"{side}.value") == _HIDDEN else rest.pop(f"{side}.value", None)


def _arguments(value: Json, schema: Json) -> Json:
    """Arguments by name where the telemetry wraps them (as a Python call, or as the text of a dict), else as they came."""
    parsed = loaded(value)
    if isinstance(parsed, str) and parsed.lstrip()[:2] in ("{'", "{}"):
        try:
            parsed = pythonrepr.parse(parsed)
        except ValueError:
            return value
        return parsed if isinstance(parsed, dict) else value
    called = pythoncall.by_name(parsed, schema)
    return value if called is None else called


def _take_step(span: SpanView, kind: str, rest: dict[str, Any], facts: Facts) -> None:
    """Messages that an agent or a chain was given and gave. Objects of other shapes stay among the attributes."""
    for side, prefix, role in (("input", _IN, "user"), ("output", _OUT, "assistant")):
        flat_messages = flat.take(rest, prefix)
        value = rest.get(f"{side}.value")
        parsed = loaded(value)
        held = parsed.get("messages") if isinstance(parsed, Mapping) else parsed
        told: Any = raw.listed(held)
        if told is not None:
            _drop(rest, side)
            if isinstance(parsed, Mapping) and len(parsed) > 1:
                rest[f"{side}.value"] = {key: v for key, v in parsed.items() if key != "messages"}
        elif flat_messages is not None:
            told = flat_messages
        elif kind == Kind.AGENT and text(value) is not None and not was_cut(value):
            told = _from_text(span, rest, side, role)
        if side == "input":
            facts.messages = told
        else:
            facts.output_messages = told


# --- the end ------------------------------------------------------------------------------------------------------------


def _take_outcome(span: SpanView, kind: str, failed: bool, facts: Facts) -> None:
    """Status and error. The status text repeats the exception, some with its type or traceback in it."""
    thrown_type, thrown = outcome.thrown(span)
    if span.status_code == ERROR:
        facts.status, facts.error_type = "error", thrown_type
        facts.error_message = thrown or span.status_message
    elif failed:
        facts.status = "error"
        facts.error_message = text(facts.result)
    elif span.end_ns is None:
        facts.status = "partial" if facts.output_messages else None
    elif kind == Kind.MODEL and facts.streamed and span.status_code == 0 and not facts.finish_reasons:
        facts.status = "partial"  # instrumentations set OK when a stream has come to its end


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    key_prefixes=("openinference.", *_OF_MODEL),
    versions="openinference-instrumentation-openai 0.1.66, -anthropic 3.1.0, -langchain 0.1.80, -openai-agents 2.6.0, "
    "-smolagents 0.1.43, -llama-index 4.6.1, -crewai 1.1.21",
    unknown="retries; call ids of tools (LangChain tells them); whether a model name is the requested one, where only one "
    "is told; the input of a failed call of OpenAI Agents",
)
