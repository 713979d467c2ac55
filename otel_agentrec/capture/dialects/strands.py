"""Strands Agents: the GenAI conventions, with content blocks of Bedrock's Converse API and no provider.

Messages stand in span events, one each or all in events with details. A loop cycle and the agent repeat what is said in
them; an agent's tokens are those of its whole life.
"""

from __future__ import annotations

from collections.abc import Sequence

from otel_agentrec.capture.dialects import bedrock, genai
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import text
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Kind

__all__ = ["DIALECT"]

NAME = "strands"
SCOPE = "strands.telemetry.tracer"
_FRAMEWORK = "strands-agents"
_STATUS = "gen_ai.tool.status"


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of Strands is, and its facts; None for a span of another scope."""
    if span.scope != SCOPE:
        return None
    reading = genai.read(span, logs)
    if reading is None:
        return None
    kind, facts = reading
    facts.dialect = NAME
    if facts.provider == _FRAMEWORK:
        facts.provider = None
    if kind == Kind.TOOL:
        facts.result = bedrock.result(facts.result)
        if facts.attributes is not None and facts.attributes.get(_STATUS) == "error" and facts.status is None:
            facts.status, facts.error_message = "error", text(facts.result)
    return kind, facts


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    joined_logs=genai.DIALECT.joined_logs,
    takes=genai.DIALECT.takes,
    versions="strands-agents 1.62, with and without gen_ai_latest_experimental",
    unknown="the provider; response model and id; retries; the session, where a program does not give it as session.id",
)
