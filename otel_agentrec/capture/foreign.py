"""Spans that are no step of an agent (HTTP, databases …): one dictionary lookup each, by their scope.

A foreign span leaves only a pointer to the step above it, so that steps below it find their way up. Below an open model call
a foreign client span is one HTTP attempt of that call.
"""

from __future__ import annotations

from typing import Any

from opentelemetry.trace import SpanKind

from otel_agentrec.capture import dialects
from otel_agentrec.capture.attempts import attempt_of
from otel_agentrec.capture.opening import OpenTable
from otel_agentrec.capture.spans import from_sdk
from otel_agentrec.journal.facts import Kind

__all__ = ["ForeignSpans"]

MAX_SCOPES = 4_096


class ForeignSpans:
    """Args:
    table: the open spans.
    """

    def __init__(self, table: OpenTable) -> None:
        self._table = table
        self._verdicts: dict[str, str] = {}

    def started(self, span: Any) -> bool:
        """Whether a span that began is foreign; then all is done. Touches nothing but single dictionary entries."""
        if self.verdict(span) != "foreign":
            return False
        parent = span.parent
        above = self._table.nearest((parent.trace_id, parent.span_id)) if parent is not None else None
        if above is not None:
            context = span.context
            self._table.add_foreign((context.trace_id, context.span_id), above)
        return True

    def ended(self, span: Any) -> bool:
        """The same for a span that ended."""
        scope = span.instrumentation_scope
        verdict = self._verdicts.get(scope.name) if scope is not None else None
        if (verdict or self.verdict(span)) != "foreign":
            return False
        if not self._table.foreign:
            return True
        context = span.context
        above = self._table.pop_foreign((context.trace_id, context.span_id))
        if above is not None and span.kind is SpanKind.CLIENT:
            step = above.nearest_step()
            if step is not None and step.is_open and step.kind in (Kind.MODEL, None):
                attempt = attempt_of(from_sdk(span))
                if attempt is not None:
                    step.add_attempt(attempt)
        return True

    def verdict(self, span: Any) -> str:
        """``agent``, ``foreign`` or ``unknown``, by the span's scope."""
        scope = span.instrumentation_scope
        name = scope.name if scope is not None else ""
        verdict = self._verdicts.get(name)
        if verdict is None:
            verdict = dialects.scope_verdict(name)
            if len(self._verdicts) < MAX_SCOPES:
                self._verdicts[name] = verdict
        return verdict
