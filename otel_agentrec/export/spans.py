"""A recording as spans: ids and times as they were recorded, with the stamp of each event."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from otel_agentrec.journal.events import Event
from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.reader import Recording, Resolver, StreamFile
from otel_agentrec.journal.stamps import Stamp
from otel_agentrec.nodes.agentsaid import AgentSaid
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.skeleton import ENDED, INTERRUPTED, Span
from otel_agentrec.nodes.sound import facts_of, record_of, where_of
from otel_agentrec.nodes.spanattributes import attributes_of, plain_value, shown_values, unpaid
from otel_agentrec.records import record_id_of_span

__all__ = ["Exported"]

Json = Any
ENDS = {"RUN_ENDED": Kind.AGENT, "HANDOFF_ENDED": Kind.AGENT, "STEP_ENDED": Kind.STEP}
STARTS = {"RUN_STARTED": Kind.AGENT, "HANDOFF_STARTED": Kind.AGENT, "STEP_STARTED": Kind.STEP, "NODE_STARTED": None}
NODES = ("NODE_RECORDED", "NODE_INTERRUPTED")
WHY_INTERRUPTED = "agentrec.interrupted"
NO_PROVIDER: dict[str, Json] = {"resource": {"service.name": "unknown_service:python"}}
"""As the SDK names a service that nobody named. Jaeger wants a name."""
REMEMBERED = 32
"""Headers and resources of one stream that are kept at hand."""


class Exported:
    """The spans of a recording, one for each step that ended, or was interrupted and did not end later: so too those that were
    open when their process died, which have the stamp of their start and end with the last event of their stream. A call
    that was answered from a recording says so, and cost nothing.

    A call's leading span tells all that is known of the call, also what log records and the wire told; a span that was
    merged into it tells what it told itself. Events that name no span (records of the seeds' own files) give none.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._view = view = fold(recording)
        self._leading = {(s.trace, s.span): s for s in view.leading}
        self._place = {(s.stream, s.seq) for s in view.spans() if s.state == ENDED}
        self._begun: dict[str, list[tuple[int, int]]] = {}
        """stream -> (seq of the end, seq of the start or -1) of its spans"""
        self._unended: dict[str, list[Span]] = {}
        """stream -> the spans of whose end nothing tells, though it came, the latest first: children before their parents"""
        self._agents: dict[str, Span] = {}
        """run -> its outermost agent"""
        for s in view.spans():
            if s.kind == Kind.AGENT and s.up is None and s.trace:
                self._agents.setdefault(view.run(s), s)
            self._begun.setdefault(s.stream, []).append((s.seq, s.started_seq))
            if s.state == INTERRUPTED and s.seq == s.started_seq and (s.extra is None or s.extra.interrupted is None):
                self._unended.setdefault(s.stream, []).insert(0, s)

    def __len__(self) -> int:
        """About how many spans there are."""
        return len(self._place) + sum(map(len, self._unended.values()))

    def spans(self, after: Mapping[str, int] | None = None) -> Iterator[tuple[str, int, ReadableSpan]]:
        """(stream, position, span), stream by stream in the order of ends.

        A span's position is the seq of its last event. Spans that did not end stand behind the last event of their stream,
        where nothing comes any more.

        Args:
            after: stream -> position of its last span that is not wanted any more.
        """
        for stream in self.recording.streams():
            yield from self._of(stream, (after or {}).get(stream.name, -1) + 1)

    def _of(self, stream: StreamFile, wanted: int) -> Iterator[tuple[str, int, ReadableSpan]]:
        pointed, said = _Pointed(stream), AgentSaid()
        unended, last = self._unended.get(stream.name, ()), stream.last()
        if last is None or last.seq + len(unended) < wanted:
            return
        # what an agent shows is told by the calls below it, which may have been sent before
        first = min([wanted, *(start for end, start in self._begun.get(stream.name, ()) if end >= wanted)])
        with Resolver(stream) as resolver:
            for event in stream.events(0 if unended else max(0, first)):
                if event.type in ENDS or event.type in NODES:
                    span = self._span(event, pointed, resolver, said, event.seq >= wanted)
                    if span is not None:
                        yield stream.name, event.seq, span
            for position, s in enumerate(unended, last.seq + 1):
                event = stream.at(s.seq)
                span = self._span(event, pointed, resolver, said, position >= wanted, last.ts)
                if span is not None:
                    yield stream.name, position, span

    def _span(
        self,
        event: Event,
        pointed: _Pointed,
        resolver: Resolver,
        said: AgentSaid,
        is_wanted: bool,
        cut_off_ms: int | None = None,
    ) -> ReadableSpan | None:
        """The span of which an event tells; None when there is none, or it is not wanted. ``cut_off_ms``: when its process was
        last heard of, of a span that did not end."""
        where = where_of(event)
        leading = self._leading.get((where.trace, where.span))
        if not where.trace or (event.type == "NODE_INTERRUPTED" and leading is not None and leading.state == ENDED):
            return None
        record = record_of(event)
        kind = _kind_of(event, record)
        if not is_wanted and kind != Kind.MODEL:
            said.ended(where.trace, where.span, where.parent, kind, {})
            return None
        if leading is not None:
            facts, header = self._view.told(leading)
            session = self._view.session(leading)
        else:
            facts = facts_of(replace(event, payload=resolver.resolve(event)))
            header, session = pointed.payload(record.get("header"), resolver), event.session
        below = said.ended(where.trace, where.span, where.parent, kind, facts)
        if not is_wanted:
            return None
        provider = pointed.payload(record.get("provider"), resolver) or pointed.any_provider(resolver)
        answered = leading.answered_from if leading is not None else None
        links = self._links(self._view.span(where.trace, where.span))
        told = _Told(facts, header, provider, session, below, answered, links)
        return _made(event, told, cut_off_ms)

    def _links(self, s: Span | None) -> list[Link]:
        """From the agent of an attempt to that of the run that it went on with, as the span had it live."""
        if s is None or self._agents.get(run := self._view.run(s)) != s:
            return []
        lineages = self._view.lineages
        runs = lineages.runs(lineages.root(run))
        before = runs[runs.index(run) - 1] if run in runs[1:] else None
        old = self._agents.get(before) if before is not None else None
        if old is None:
            return []
        return [Link(_context(old.trace, old.span), {"agentrec.resumes": before})]


class _Pointed:
    """Payloads of earlier events of a stream that later ones point at."""

    def __init__(self, stream: StreamFile) -> None:
        self._stream = stream
        self._held: OrderedDict[int, dict[str, Json]] = OrderedDict()
        self._first: dict[str, Json] | None = None

    def any_provider(self, resolver: Resolver) -> dict[str, Json]:
        """That of the process, for steps that no provider made: a run that is named after its program."""
        if self._first is None:
            seen = (event for event in self._stream.events() if event.type == "PROVIDER_SEEN")
            first = next(seen, None)
            self._first = NO_PROVIDER if first is None else resolver.resolve(first)
        return self._first

    def payload(self, seq: Json, resolver: Resolver) -> dict[str, Json]:
        """Empty when there is no such event, or its line is damaged."""
        if type(seq) is not int:
            return {}
        if seq not in self._held:
            try:
                self._held[seq] = resolver.resolve(self._stream.at(seq))
            except LookupError:
                return {}
            if len(self._held) > REMEMBERED:
                self._held.popitem(last=False)
        self._held.move_to_end(seq)
        return self._held[seq]


def _kind_of(event: Event, record: Mapping[str, Json]) -> str:
    return ENDS.get(event.type) or STARTS.get(event.type) or str(record.get("type") or Kind.STEP)


class _Told(NamedTuple):
    """What is known of a step. ``below``: what its agent was asked and answered; ``answered``: the recording that it was
    answered from; ``links``: to what it goes on with."""

    facts: Mapping[str, Json]
    header: Mapping[str, Json]
    provider: Mapping[str, Json]
    session: str | None
    below: tuple[Json, Json]
    answered: Mapping[str, Json] | None
    links: Sequence[Link]


def _made(event: Event, told: _Told, cut_off_ms: int | None) -> ReadableSpan | None:
    facts, session = told.facts, told.session
    where, record = where_of(event), record_of(event)
    kind = _kind_of(event, record)
    try:
        context = _context(where.trace, where.span)
        parent = _context(where.trace, where.parent) if where.parent else None
    except ValueError:
        return None
    is_interrupted = event.type == "NODE_INTERRUPTED" or cut_off_ms is not None
    start = _ns(record.get("startedAt")) or event.ts * 1_000_000
    end = _ns(record.get("endedAt")) or max(start, (cut_off_ms or event.ts) * 1_000_000)
    attributes = attributes_of(kind, facts, told.header, session)
    attributes.update(shown_values(kind, facts, attributes, told.below))
    if told.answered is not None:
        attributes = unpaid(attributes, kind, told.answered)
    if parent is None:  # on every span it would make Langfuse write the trace again and again
        attributes.update({k: v for k, v in (("session.id", session), ("user.id", facts.get("userId"))) if v})
    if event.run is not None:
        attributes["agentrec.run.id"] = event.run
    if is_interrupted:
        why = "its process died" if cut_off_ms is not None else event.payload.get("reason")
        attributes[WHY_INTERRUPTED] = str(why or "interrupted")
    record_id = record_id_of_span(where.trace, where.span)
    attributes.update(Stamp(record_id, event.stream, event.seq, event.hash, event.prev_hash).attributes())
    resource = told.provider.get("resource")
    resource = resource if isinstance(resource, Mapping) else {}
    return ReadableSpan(
        name=str(record.get("name") or kind.lower()),
        context=context,
        parent=parent,
        resource=Resource({key: plain_value(value) for key, value in resource.items()}),
        attributes=attributes,
        links=told.links,
        kind=SpanKind.CLIENT if kind == Kind.MODEL else SpanKind.INTERNAL,
        status=_status(facts, is_interrupted),
        start_time=start,
        end_time=end,
        instrumentation_scope=InstrumentationScope(str(record.get("scope") or "otel_agentrec")),
    )


def _status(facts: Mapping[str, Json], is_interrupted: bool) -> Status:
    if facts.get("status") == "error":
        message = facts.get("errorMessage")
        return Status(StatusCode.ERROR, message if isinstance(message, str) else None)
    if is_interrupted:
        return Status(StatusCode.ERROR, "interrupted: it did not end")
    return Status(StatusCode.UNSET)


def _context(trace: str, span: str) -> SpanContext:
    return SpanContext(int(trace, 16), int(span, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _ns(text: Json) -> int | None:
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 20 else None
