"""Langfuse's SDK: ``langfuse.observation.*``. The type of an observation says what it is, its input and output are JSON.

A model call is asked and answered in the provider's own form, mostly OpenAI's; a function is recorded as a Python call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import identity, messages, outcome, pythoncall, raw, tokens
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.exchange import Said, parameters
from otel_agentrec.capture.dialects.values import loaded, text, was_cut
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList

__all__ = ["DIALECT"]

Json = Any

NAME = "langfuse"

KINDS: dict[str, tuple[str, str]] = {
    "generation": (Kind.MODEL, "chat"),
    "tool": (Kind.TOOL, "execute_tool"),
    "agent": (Kind.AGENT, "invoke_agent"),
    "embedding": (Kind.STEP, "embeddings"),
    "retriever": (Kind.STEP, "retrieval"),
    "evaluator": (Kind.STEP, "evaluation"),
}
"""``langfuse.observation.type`` -> (kind, operation); any other type is a step of that name."""

_OBSERVED = "langfuse.observation."
_TYPE = f"{_OBSERVED}type"


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What an observation is, and its facts; None for a span of another convention."""
    told = text(span.attributes.get(_TYPE))
    if told is None or "gen_ai.operation.name" in span.attributes:
        return None
    kind, operation = KINDS.get(told, (Kind.STEP, told))
    if kind == Kind.STEP and span.parent_span_id is None and told in ("span", "chain"):
        kind, operation = Kind.AGENT, "invoke_workflow"  # what is at the top is the run
    rest = {key: v for key, v in span.attributes.items() if key not in (_TYPE, "langfuse.internal.is_app_root")}
    facts = Facts(dialect=NAME, operation=operation)
    identity.take_given(rest, facts)
    facts.session_id = text(rest.pop("session.id", None))
    value, result = rest.pop(f"{_OBSERVED}input", None), rest.pop(f"{_OBSERVED}output", None)
    if was_cut(value):
        facts.flags.append("input_truncated")
    if was_cut(result):
        facts.flags.append("output_truncated")
    if kind == Kind.MODEL:
        _take_model(value, result, rest, facts)
    elif kind == Kind.TOOL:
        facts.tool_name = span.name or None
        called = pythoncall.by_name(loaded(value))
        facts.arguments, facts.result = (value if called is None else called), result
    else:
        if kind == Kind.AGENT:
            facts.agent_name = span.name or None
        rest.update({f"{_OBSERVED}{side}": v for side, v in (("input", value), ("output", result)) if v is not None})
    _take_outcome(span, rest, facts)
    outcome.keep(span, rest, facts)
    return kind, facts


def _take_model(value: Json, result: Json, rest: dict[str, Any], facts: Facts) -> None:
    asked, said = raw.asked(loaded(value)), _said(result)
    if asked is not None:
        facts.messages, facts.system_instructions, facts.tools = asked.messages, asked.instructions, asked.tools
        facts.model = asked.model
    elif was_cut(value):
        facts.messages = RawList(value, messages.message)
    elif isinstance(value, str) and value:
        facts.messages = [{"role": "user", "parts": [messages.part(value)]}]
    if said is not None:
        facts.output_messages, facts.calls = said.messages, messages.calls_of(said.messages)
        facts.finish_reasons, facts.response_id = said.finish_reasons, said.response_id
        facts.response_model = said.model
    elif was_cut(result):
        facts.output_messages = RawList(result, messages.message)
    elif result is not None:
        rest[f"{_OBSERVED}output"] = result
    named = text(rest.pop(f"{_OBSERVED}model.name", None))  # the answering model once there is an answer
    if result is None:
        facts.model = facts.model or named
    else:
        facts.response_model = facts.response_model or named
    usage = rest.get(f"{_OBSERVED}usage_details")
    if tokens.take_usage(loaded(usage), facts):
        del rest[f"{_OBSERVED}usage_details"]
    given = loaded(rest.get(f"{_OBSERVED}model.parameters"))
    if isinstance(given, Mapping):
        del rest[f"{_OBSERVED}model.parameters"]
        facts.parameters = parameters(given)
    if f"{_OBSERVED}completion_start_time" in rest:
        facts.streamed = True


def _said(result: Json) -> Said | None:
    """An answer in any provider's form, one message, or a text."""
    told = loaded(result)
    said = raw.said(told)
    if said is None and isinstance(told, Mapping) and "role" in told:
        said = Said([messages.message(told)])
    if said is None and isinstance(told, str) and told and not was_cut(told):
        said = Said([{"role": "assistant", "parts": [messages.part(told)]}])
    return said


def _take_outcome(span: SpanView, rest: dict[str, Any], facts: Facts) -> None:
    level, message = rest.get(f"{_OBSERVED}level"), text(rest.get(f"{_OBSERVED}status_message"))
    if outcome.fail(span, facts):
        facts.error_message = facts.error_message or message
    elif level == "ERROR":
        facts.status, facts.error_message = "error", message
    elif span.end_ns is None:
        facts.status = "partial" if facts.output_messages else None
    if facts.status == "error":
        rest.pop(f"{_OBSERVED}level", None)
        if message == facts.error_message:
            rest.pop(f"{_OBSERVED}status_message", None)


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=("langfuse-sdk",),
    key_prefixes=(_OBSERVED,),
    versions="langfuse 5.0",
    unknown="the provider; call ids of tools; finish reasons; reasoning of OpenAI's chat API; retries",
)
