"""The telemetry conventions, one module each, and the order in which they are tried.

A dialect is pure: it looks at one span (and the log records that belong to it), never at others. To add one, write its module
and name it in :data:`DIALECTS`, the more specific before the more general.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Literal

from otel_agentrec.capture.dialects import (
    ag2,
    anthropic_sdk,
    autogen,
    claude_code,
    genai,
    google_adk,
    haystack,
    langfuse,
    langsmith,
    litellm,
    logfire_agents,
    mlflow,
    openai_agents,
    openinference,
    pydantic_ai,
    semantic_kernel,
    strands,
    tokens,
    traceloop,
    vercel_ai,
)
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind

__all__ = [
    "DIALECTS",
    "Dialect",
    "Reading",
    "Verdict",
    "log_use",
    "may_take",
    "read",
    "scope_verdict",
    "speaks",
    "started",
    "told",
    "unread",
]

DIALECTS: tuple[Dialect, ...] = (
    claude_code.DIALECT,
    autogen.DIALECT,
    pydantic_ai.DIALECT,
    strands.DIALECT,
    vercel_ai.DIALECT,
    langsmith.DIALECT,
    langfuse.DIALECT,
    mlflow.DIALECT,
    haystack.DIALECT,
    ag2.DIALECT,
    google_adk.DIALECT,
    semantic_kernel.DIALECT,
    litellm.DIALECT,
    anthropic_sdk.DIALECT,
    logfire_agents.DIALECT,
    openai_agents.DIALECT,
    openinference.DIALECT,
    traceloop.DIALECT,
    genai.DIALECT,
)

Verdict = Literal["agent", "foreign", "unknown"]

_FOREIGN = (
    "opentelemetry.instrumentation.aio",
    "opentelemetry.instrumentation.asgi",
    "opentelemetry.instrumentation.asyncio",
    "opentelemetry.instrumentation.asyncpg",
    "opentelemetry.instrumentation.boto",
    "opentelemetry.instrumentation.celery",
    "opentelemetry.instrumentation.confluent_kafka",
    "opentelemetry.instrumentation.dbapi",
    "opentelemetry.instrumentation.django",
    "opentelemetry.instrumentation.elasticsearch",
    "opentelemetry.instrumentation.fastapi",
    "opentelemetry.instrumentation.flask",
    "opentelemetry.instrumentation.grpc",
    "opentelemetry.instrumentation.httpx",
    "opentelemetry.instrumentation.jinja2",
    "opentelemetry.instrumentation.kafka",
    "opentelemetry.instrumentation.mysql",
    "opentelemetry.instrumentation.pika",
    "opentelemetry.instrumentation.psycopg",
    "opentelemetry.instrumentation.pymemcache",
    "opentelemetry.instrumentation.pymongo",
    "opentelemetry.instrumentation.pymysql",
    "opentelemetry.instrumentation.pyramid",
    "opentelemetry.instrumentation.redis",
    "opentelemetry.instrumentation.requests",
    "opentelemetry.instrumentation.sqlalchemy",
    "opentelemetry.instrumentation.sqlite3",
    "opentelemetry.instrumentation.starlette",
    "opentelemetry.instrumentation.threading",
    "opentelemetry.instrumentation.tornado",
    "opentelemetry.instrumentation.tortoiseorm",
    "opentelemetry.instrumentation.urllib",
    "opentelemetry.instrumentation.wsgi",
)
"""Instrumentations of transports, stores and servers: none of their spans is a step of an agent."""

_AGENT_EXACT = frozenset(s for d in DIALECTS for s in d.scopes if not s.endswith("."))
_AGENT_PREFIXES = tuple(s for d in DIALECTS for s in d.scopes if s.endswith("."))
_KEYS = tuple(k for d in DIALECTS for k in d.key_prefixes)
_JOINED = frozenset(n for d in DIALECTS for n in d.joined_logs)
_KEPT = tuple(n for d in DIALECTS for n in d.kept_logs)


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span is and its facts, by the first dialect that knows it; None for a span that is no step of an agent."""
    for dialect in DIALECTS:
        reading = dialect.read(span, logs)
        if reading is not None:
            if reading[0] == Kind.MODEL:
                tokens.settle(reading[1])
            return reading
    return None


def started(span: SpanView) -> tuple[str | None, Facts] | None:
    """As :func:`read` for a span that only begins: the kind is None while nothing but its scope tells of an agent."""
    reading = read(span)
    if reading is None:
        return None
    kind, facts = reading
    facts.status = None
    return (None if kind == Kind.STEP and facts.operation is None else kind), facts


def scope_verdict(scope: str) -> Verdict:
    """What all spans of an instrumentation scope are; ``unknown`` when each span must be asked. Worth caching per scope."""
    if scope in _AGENT_EXACT or scope.startswith(_AGENT_PREFIXES):
        return "agent"
    return "foreign" if scope.startswith(_FOREIGN) else "unknown"


def speaks(keys: Iterable[str]) -> bool:
    """Whether any of a span's attribute names belongs to a known convention."""
    return any(map(_is_known, keys))


@functools.lru_cache(maxsize=4_096)
def _is_known(key: str) -> bool:
    return key.startswith(_KEYS)


def log_use(event_name: str) -> Literal["join", "keep", "ignore"]:
    """What becomes of a log record: its span's dialect reads it, it is recorded as it is, or it is none of ours."""
    if event_name in _JOINED:
        return "join"
    return "keep" if event_name.startswith(_KEPT) and event_name else "ignore"


def may_take(kind: str, log: LogView) -> bool:
    """Whether a log record that names a span of this kind may tell of it, and not of a call below it."""
    return any(dialect.takes(kind, log) for dialect in DIALECTS if log.event_name in dialect.joined_logs)


def told(log: LogView) -> Facts | None:
    """What a log record that no span took tells of a model call; None when it tells nothing."""
    for dialect in DIALECTS:
        if log.event_name in dialect.joined_logs:
            facts = dialect.tell(log)
            if facts is not None:
                return facts
    return None


def unread(reading: Reading | None, logs: Sequence[LogView]) -> list[LogView]:
    """The log records that name a span and are none of its facts: those that :func:`read` passed over."""
    if reading is None:
        return list(logs)
    kind, facts = reading
    dialect = _BY_NAME.get(facts.dialect or "")
    return [
        log
        for log in logs
        if dialect is None or log.event_name not in dialect.joined_logs or not dialect.takes(kind, log)
    ]


_BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
