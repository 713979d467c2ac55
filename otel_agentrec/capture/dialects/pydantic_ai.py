"""Pydantic AI: the GenAI conventions, with attributes of its own that depend on the version of its format.

Format 1 lists one event per message in the attribute ``events`` (``all_messages_events`` of an agent); formats 1 and 2 name the
input and output of tools ``tool_arguments`` and ``tool_response``. All formats tell an agent's history in one attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from otel_agentrec.capture.dialects import genai, genai_messages, messages
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import loaded, text
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind

__all__ = ["DIALECT"]

Json = Any

NAME = "pydantic-ai"
SCOPE = "pydantic-ai"

_RENAMED = {
    "tool_arguments": "gen_ai.tool.call.arguments",
    "tool_response": "gen_ai.tool.call.result",
    "pydantic_ai.all_messages": "gen_ai.input.messages",
}


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of Pydantic AI is, and its facts; None for a span of another scope."""
    if span.scope != SCOPE:
        return None
    told = dict(span.attributes)
    for own, name in _RENAMED.items():
        if own in told and name not in told:
            told[name] = told.pop(own)
    listed = "all_messages_events" if "all_messages_events" in told else "events"
    events = loaded(told.get(listed))
    conversation = genai_messages.in_list(events) if isinstance(events, list) else genai_messages.NOTHING
    if conversation != genai_messages.NOTHING:
        del told[listed]
    final = told.pop("final_result", None)
    reading = genai.read(span._replace(attributes=told), logs)
    if reading is None:
        return None
    kind, facts = reading
    facts.dialect = NAME
    _take_conversation(conversation, facts)
    if kind == Kind.AGENT and final is not None:
        facts.output_text = text(final)
    elif final is not None:
        facts.attributes = {**(facts.attributes or {}), "final_result": final}
    return kind, facts


def _take_conversation(told: genai_messages.Conversation, facts: Facts) -> None:
    if facts.messages is None and told.messages is not None:
        facts.messages = [messages.message(m) for m in told.messages]
    if facts.output_messages is None and told.output is not None:
        facts.output_messages = [messages.message(m) for m in told.output]
    if facts.calls is None:
        facts.calls = told.calls
    facts.finish_reasons = facts.finish_reasons or list(told.reasons) or None


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    joined_logs=genai.DIALECT.joined_logs,
    takes=genai.DIALECT.takes,
    versions="pydantic-ai 1.107 (format 1), 2.68 (formats 2 to 6)",
    unknown="retries inside the SDK; the input of a model call that failed",
)
