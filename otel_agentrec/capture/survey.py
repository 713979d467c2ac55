"""Who stands above whom in a set of files: what one pass over them must know before events can be written.

Exporters send children before their parents and roots last, often in other batches or files; so whether an agent is the
outermost one, and which HTTP attempts belong to a model call, shows only when all spans were seen once. Kept per span: three
ids and a kind, no content.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from otel_agentrec.capture.ambient import Above, session_above
from otel_agentrec.capture.attempts import Attempt, Attempts, attempt_of, summarise
from otel_agentrec.capture.spans import SpanView
from otel_agentrec.journal.facts import Kind

__all__ = ["MAX_LINKS", "Survey"]

MAX_LINKS = 1000
"""So many links stand in one LINKS event."""


class _Seen(NamedTuple):
    parent: str | None
    kind: str | None
    """None for a foreign span."""
    session: str | None


class Survey:
    """All spans of a set of files, or of one trace as it arrives, by trace and span id. Spans are added, then questions asked."""

    def __init__(self) -> None:
        self._traces: dict[str, dict[str, _Seen]] = {}
        self._attempts: dict[str, list[Attempt]] = defaultdict(list)
        self._below: dict[tuple[str, str], list[Attempt]] | None = None

    def add(self, span: SpanView, kind: str | None, session: str | None = None) -> None:
        """Take one span. The same span twice counts once; as a step, when either copy is one.

        Args:
            session: as it tells it.
        """
        self._below = None
        trace = self._traces.setdefault(span.trace_id, {})
        known = trace.get(span.span_id)
        if known is None or known.kind is None:
            trace[span.span_id] = _Seen(span.parent_span_id, kind, session)
        if kind is None:
            attempt = attempt_of(span)
            if attempt is not None:
                self._attempts[span.trace_id].append(attempt)

    def is_step(self, trace_id: str | None, span_id: str | None) -> bool:
        """Whether a span is a step of an agent that is in the files."""
        seen = self._traces.get(trace_id or "", {}).get(span_id or "")
        return seen is not None and seen.kind is not None

    def is_outermost(self, span: SpanView) -> bool:
        """Whether no agent span stands above this one."""
        trace = self._traces.get(span.trace_id, {})
        return all(seen.kind != Kind.AGENT for _, seen in _above(trace, span.span_id, span.parent_span_id))

    def session_above(self, span: SpanView) -> str | None:
        """The session that a span above tells which is no step."""
        trace = self._traces.get(span.trace_id, {})
        return session_above(
            Above(seen.kind is not None, seen.session) for _, seen in _above(trace, span.span_id, span.parent_span_id)
        )

    def attempts(self, span: SpanView) -> Attempts:
        """What HTTP client spans whose nearest step is this span tell of attempts."""
        if self._below is None:
            self._below = self._assign()
        return summarise(self._below.get((span.trace_id, span.span_id), ()))

    def links(self) -> Iterator[dict[str, dict[str, str]]]:
        """Payloads of LINKS: parents of the foreign spans that stand above or below a step; the parent of a root is ""."""
        chunk: dict[str, dict[str, str]] = {}
        size = 0
        for trace_id, trace in self._traces.items():
            for span_id in self._near(trace):
                chunk.setdefault(trace_id, {})[span_id] = trace[span_id].parent or ""
                size += 1
                if size == MAX_LINKS:
                    yield chunk
                    chunk, size = {}, 0
        if chunk:
            yield chunk

    def _near(self, trace: dict[str, _Seen]) -> list[str]:
        steps = [(span_id, seen) for span_id, seen in trace.items() if seen.kind is not None]
        if not steps:
            return []
        nearest = _nearest_steps(trace)
        near = {span_id for span_id, step in nearest.items() if step is not None}
        for span_id, seen in steps:
            for above, other in _above(trace, span_id, seen.parent):
                if other.kind is not None or (above in near and nearest[above] is None):
                    break
                near.add(above)
        return [span_id for span_id, seen in trace.items() if seen.kind is None and span_id in near]

    def _assign(self) -> dict[tuple[str, str], list[Attempt]]:
        below: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
        for trace_id, attempts in self._attempts.items():
            nearest = _nearest_steps(self._traces[trace_id])
            for attempt in attempts:
                step = nearest.get(attempt.span_id)
                if step is not None:
                    below[trace_id, step].append(attempt)
        return below


def _above(trace: dict[str, _Seen], span_id: str, parent: str | None) -> Iterator[tuple[str, _Seen]]:
    """The ancestors that are known, nearest first; a circle ends where it closes."""
    walked = {span_id}
    while parent is not None and parent not in walked:
        seen = trace.get(parent)
        if seen is None:
            return
        yield parent, seen
        walked.add(parent)
        parent = seen.parent


def _nearest_steps(trace: dict[str, _Seen]) -> dict[str, str | None]:
    """Foreign span id -> the nearest step above it, or None. Each link is walked once."""
    nearest: dict[str, str | None] = {}
    for span_id, seen in trace.items():
        if seen.kind is not None or span_id in nearest:
            continue
        walk = [span_id]
        found: str | None = None
        for above, other in _above(trace, span_id, seen.parent):
            if other.kind is not None:
                found = above
                break
            if above in nearest:
                found = nearest[above]
                break
            walk.append(above)
        nearest.update(dict.fromkeys(walk, found))
    return nearest
