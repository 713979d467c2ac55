"""MLflow's tracing: ``mlflow.spanType``, ``mlflow.spanInputs``, ``mlflow.spanOutputs``. Every value is JSON, texts are quoted.

A model call is asked and answered in the provider's own form. Each piece of a stream is an event, too; the answer that MLflow
makes of them lacks calls of tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from otel_agentrec.capture.dialects import identity, messages, outcome, raw, tokens
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import loaded, text, was_cut
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList
from otel_agentrec.journal.jsontext import parse
from otel_agentrec.nodes.answers import merge_pieces

__all__ = ["DIALECT"]

Json = Any

NAME = "mlflow"

KINDS: dict[str, tuple[str, str]] = {
    "CHAT_MODEL": (Kind.MODEL, "chat"),
    "LLM": (Kind.MODEL, "text_completion"),
    "TOOL": (Kind.TOOL, "execute_tool"),
    "AGENT": (Kind.AGENT, "invoke_agent"),
    "WORKFLOW": (Kind.AGENT, "invoke_workflow"),
    "RETRIEVER": (Kind.STEP, "retrieval"),
    "EMBEDDING": (Kind.STEP, "embeddings"),
    "RERANKER": (Kind.STEP, "rerank"),
}
"""``mlflow.spanType`` -> (kind, operation); any other type is a step of that name."""

_TYPE, _IN, _OUT = "mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"
_USAGE = "mlflow.chat.tokenUsage"
_CHUNK, _PIECE = "mlflow.chunk.item.", "mlflow.chunk.value"


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of MLflow is, and its facts; None for a span of another convention."""
    told = _told(span.attributes.get(_TYPE))
    if told is None or "gen_ai.operation.name" in span.attributes:
        return None
    kind, operation = KINDS.get(told.upper(), (Kind.STEP, told.lower()))
    if told.upper() == "CHAIN" and span.parent_span_id is None:
        kind, operation = Kind.AGENT, "invoke_workflow"  # what a chain at the top does is the run
    rest = {key: v for key, v in span.attributes.items() if key != _TYPE}
    facts = Facts(dialect=NAME, operation=operation)
    identity.take_given(rest, facts)
    facts.session_id = _told(rest.pop("mlflow.trace.session", None))
    facts.user_id = facts.user_id or _told(rest.pop("mlflow.trace.user", None))
    chunks: list[str] = []
    value, result = rest.get(_IN), rest.get(_OUT)
    if was_cut(value):
        facts.flags.append("input_truncated")
    if was_cut(result):
        facts.flags.append("output_truncated")
    if kind == Kind.MODEL:
        _take_model(rest, facts)
        chunks = _take_chunks(span, facts)
    elif kind == Kind.TOOL:
        facts.tool_name = span.name or None
        facts.arguments, facts.result = rest.pop(_IN, None), rest.pop(_OUT, None)
    elif kind == Kind.AGENT:
        facts.agent_name = span.name or None
    if not outcome.fail(span, facts) and span.end_ns is None:
        facts.status = "partial" if facts.output_messages else None
    outcome.keep(span, rest, facts, ("exception", *chunks))
    return kind, facts


def _take_model(rest: dict[str, Any], facts: Facts) -> None:
    value, result = rest.get(_IN), rest.get(_OUT)
    asked, said = raw.asked(loaded(value)), raw.said(loaded(result))
    if asked is not None:
        del rest[_IN]
        facts.messages, facts.system_instructions, facts.tools = asked.messages, asked.instructions, asked.tools
        facts.model, facts.streamed, facts.parameters = asked.model, asked.streamed, asked.parameters
    elif was_cut(value):
        facts.messages = RawList(rest.pop(_IN), messages.message)
    if said is not None:
        del rest[_OUT]
        facts.output_messages, facts.calls = said.messages, messages.calls_of(said.messages)
        facts.finish_reasons, facts.response_id = said.finish_reasons, said.response_id
        facts.response_model, facts.output_raw = said.model, said.raw
    elif was_cut(result):
        facts.output_messages = RawList(rest.pop(_OUT), messages.message)
    named = _told(rest.pop("mlflow.llm.model", None)) or _told(rest.pop("model", None))
    if facts.response_model is None and named != facts.model:
        facts.response_model = named
    facts.provider = _told(rest.pop("mlflow.llm.provider", None))
    if tokens.take_usage(loaded(rest.get(_USAGE)), facts):
        del rest[_USAGE]


def _take_chunks(span: SpanView, facts: Facts) -> list[str]:
    """The calls of a streamed answer. -> the names of the events that were read; none where pieces are missing."""
    pieces = {e.name: loaded(e.attributes.get(_PIECE)) for e in span.events if e.name.startswith(_CHUNK)}
    if not pieces or facts.calls or span.dropped.events:
        return []
    merged = merge_pieces(list(pieces.values()))
    said = raw.said(merged) if merged is not None else None
    calls = messages.calls_of(said.messages) if said is not None else []
    if said is None or not calls:
        return []
    facts.output_messages, facts.calls, facts.output_raw = said.messages, calls, said.raw
    facts.finish_reasons = said.finish_reasons or facts.finish_reasons
    facts.response_id, facts.response_model = said.response_id or facts.response_id, said.model or facts.response_model
    return list(pieces)


def _told(value: Json) -> str | None:
    """A text, with or without the quotes of JSON."""
    if isinstance(value, str) and value[:1] == '"':
        try:
            value = parse(value)
        except ValueError:
            return None
    return text(value)


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=("mlflow.",),
    key_prefixes=("mlflow.span",),
    versions="mlflow-tracing 3.17",
    unknown="call ids of tools; sessions and users (MLflow keeps them beside the trace); retries",
)
