"""LangSmith's OTel export of LangChain and LangGraph: the GenAI conventions, with all that was said in LangChain's own form.

``gen_ai.prompt`` and ``gen_ai.completion`` hold the inputs and outputs of every run: messages of a model, arguments and result
of a tool, the state of a graph. A failed model call has an exception event, but its status may stay OK.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import genai, langchain, messages, outcome, raw, tokens
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import loaded, text, was_cut
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList

__all__ = ["DIALECT"]

Json = Any

NAME = "langsmith"
SCOPE = "langsmith"

KINDS: dict[str, tuple[str, str]] = {
    "llm": (Kind.MODEL, "chat"),
    "tool": (Kind.TOOL, "execute_tool"),
    "chain": (Kind.STEP, "chain"),
    "retriever": (Kind.STEP, "retrieval"),
    "embedding": (Kind.STEP, "embeddings"),
    "prompt": (Kind.STEP, "prompt"),
    "parser": (Kind.STEP, "parser"),
}
"""``langsmith.span.kind`` -> (kind, operation)."""

_KIND = "langsmith.span.kind"
_IN, _OUT = "gen_ai.prompt", "gen_ai.completion"
_METADATA = "langsmith.metadata."
_USAGE = f"{_METADATA}usage_metadata"
_SESSION = ("session_id", "conversation_id", "thread_id")
_TRACEBACK = "Traceback (most recent call last)"
_REPR = re.compile(r"([A-Za-z_][\w.]*)\(")


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a run of LangSmith is, and its facts; None for a span of another convention."""
    told = text(span.attributes.get(_KIND))
    if told is None:
        return None
    rest = dict(span.attributes)
    rest.pop(_KIND)
    value, result = rest.pop(_IN, None), rest.pop(_OUT, None)
    kind, operation = KINDS.get(told, (Kind.STEP, told))
    rest["gen_ai.operation.name"] = operation
    agent = text(rest.pop(f"{_METADATA}lc_agent_name", None))
    if operation == "chain" and (span.parent_span_id is None or span.name == agent):
        kind, operation = (
            Kind.AGENT,
            "invoke_agent",
        )  # a graph names its run as its agent; a chain at the top is the run
    reading = genai.read(span._replace(attributes=rest), logs)
    assert reading is not None  # it has an operation
    facts = reading[1]
    facts.dialect, facts.operation = NAME, operation
    left = facts.attributes or {}
    _take_identity(left, facts)
    facts.agent_name = agent or (span.name if kind == Kind.AGENT else None)
    if kind == Kind.MODEL:
        _take_model(value, result, left, facts)
    elif kind == Kind.TOOL:
        facts.tool_name = facts.tool_name or span.name or None
        _take_tool(value, result, facts)
    else:
        facts.messages = _state(value, _IN, left)
        facts.output_messages = _state(result, _OUT, left)
    _take_failure(span, facts)
    facts.attributes = left or None
    return kind, facts


def _take_identity(left: dict[str, Any], facts: Facts) -> None:
    for key in _SESSION:
        facts.session_id = facts.session_id or text(left.pop(_METADATA + key, None))
    facts.user_id = facts.user_id or text(left.pop(f"{_METADATA}user_id", None))
    if facts.provider == "langchain":  # stands for the framework where no model is asked
        facts.provider = None


def _take_model(value: Json, result: Json, left: dict[str, Any], facts: Facts) -> None:
    asked, said = raw.asked(loaded(value)), raw.said(loaded(result))
    if asked is not None:
        facts.messages = asked.messages
        facts.system_instructions = facts.system_instructions or asked.instructions
    elif was_cut(value):
        facts.messages = RawList(value, messages.message)
        facts.flags.append("input_truncated")
    elif value is not None:
        left[_IN] = value
    if said is not None:
        facts.output_messages, facts.calls = said.messages, messages.calls_of(said.messages)
        facts.finish_reasons = facts.finish_reasons or said.finish_reasons
        facts.response_id = facts.response_id or said.response_id
        facts.response_model = facts.response_model or said.model
    elif was_cut(result):
        facts.output_messages = RawList(result, messages.message)
        facts.flags.append("output_truncated")
    elif result not in (None, "{}"):
        left[_OUT] = result
    if tokens.take_usage(loaded(left.get(_USAGE)), facts):
        del left[_USAGE]
    if facts.input_tokens == 0:  # no model is asked nothing: LangChain counts 0 where a stream did not tell
        facts.input_tokens = None


def _take_tool(value: Json, result: Json, facts: Facts) -> None:
    facts.arguments = value
    if was_cut(value):
        facts.flags.append("input_truncated")
    told = loaded(result)
    if isinstance(told, Mapping) and told.keys() == {"output"}:
        output = told["output"]
        answered = langchain.tool_message(output)
        facts.result = output
        if answered is not None:
            facts.result = answered.get("content")
            facts.tool_call_id = facts.tool_call_id or text(answered.get("tool_call_id"))
            if answered.get("status") == "error":
                facts.status, facts.error_message = "error", text(facts.result)
    elif told != {}:
        facts.result = result
        if was_cut(result):
            facts.flags.append("output_truncated")


def _state(value: Json, key: str, left: dict[str, Any]) -> list[Json] | None:
    """The messages in a graph's state; a state of another shape is kept as it is."""
    told = loaded(value)
    listed = raw.listed(told.get("messages")) if isinstance(told, Mapping) else raw.listed(told)
    if value is not None and (listed is None or (isinstance(told, Mapping) and len(told) > 1)):
        left[key] = value
    return listed


def _take_failure(span: SpanView, facts: Facts) -> None:
    """The exception's message is the ``repr`` of the exception and a traceback; its type is always ``Exception``."""
    kind, message = outcome.thrown(span)
    if kind is None and message is None:
        return
    facts.status = "error"
    told = (message or "").partition(_TRACEBACK)[0].strip() or message
    named = _REPR.match(told or "")
    facts.error_type = named.group(1) if named and kind in (None, "Exception") else kind
    facts.error_message = told


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    key_prefixes=(_KIND,),
    versions="langsmith 0.15 with langgraph 1.2, langchain 1.5",
    unknown="retries; reasoning of OpenAI's chat API; the project is no session",
)
