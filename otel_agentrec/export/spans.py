"""A recording as spans: ids and times as they were recorded, with the stamp of each event."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from otel_agentrec.journal.events import Event
from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.reader import Recording, Resolver, StreamFile
from otel_agentrec.journal.stamps import Stamp
from otel_agentrec.nodes.agentsaid import AgentSaid
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.skeleton import ENDED
from otel_agentrec.nodes.sound import facts_of, record_of, where_of
from otel_agentrec.nodes.spanattributes import attributes_of, plain_value, shown_values
from otel_agentrec.records import record_id_of_span

__all__ = ["Exported"]

Json = Any
ENDS = {"RUN_ENDED": Kind.AGENT, "HANDOFF_ENDED": Kind.AGENT, "STEP_ENDED": Kind.STEP}
NODES = ("NODE_RECORDED", "NODE_INTERRUPTED")
INTERRUPTED = "agentrec.interrupted"
NO_PROVIDER: dict[str, Json] = {"resource": {"service.name": "unknown_service:python"}}
"""As the SDK names a service that nobody named. Jaeger wants a name."""
REMEMBERED = 32
"""Headers and resources of one stream that are kept at hand."""


class Exported:
    """The spans of a recording, one for each step that ended, or was interrupted and did not end later.

    A call's leading span tells all that is known of the call, also what log records and the wire told; a span that was
    merged into it tells what it told itself. Events that name no span (records of the seeds' own files) give none.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._view = view = fold(recording)
        self._leading = {(s.trace, s.span): s for s in view.leading}
        self._place = {(s.stream, s.seq) for s in view.spans()}

    def __len__(self) -> int:
        """About how many spans there are."""
        return len(self._place)

    def spans(self, after: Mapping[str, int] | None = None) -> Iterator[tuple[str, int, ReadableSpan]]:
        """(stream, seq, span), stream by stream in the order of ends.

        Args:
            after: stream -> seq of its last event that is not wanted any more.
        """
        for stream in self.recording.streams():
            yield from self._of(stream, (after or {}).get(stream.name, -1) + 1)

    def _of(self, stream: StreamFile, from_seq: int) -> Iterator[tuple[str, int, ReadableSpan]]:
        pointed, said = _Pointed(stream), AgentSaid()
        with Resolver(stream) as resolver:
            for event in stream.events(from_seq):
                if event.type not in ENDS and event.type not in NODES:
                    continue
                where = where_of(event)
                leading = self._leading.get((where.trace, where.span))
                if not where.trace or (
                    event.type == "NODE_INTERRUPTED" and leading is not None and leading.state == ENDED
                ):
                    continue
                record = record_of(event)
                if leading is not None:
                    facts, header = self._view.told(leading)
                    session = self._view.session(leading)
                else:
                    facts = facts_of(replace(event, payload=resolver.resolve(event)))
                    header, session = pointed.payload(record.get("header"), resolver), event.session
                provider = pointed.payload(record.get("provider"), resolver) or pointed.any_provider(resolver)
                kind = _kind_of(event, record)
                below = said.ended(where.trace, where.span, where.parent, kind, facts)
                span = _span(event, facts, header, provider, session, below)
                if span is not None:
                    yield stream.name, event.seq, span


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
    return ENDS.get(event.type) or str(record.get("type") or Kind.STEP)


def _span(
    event: Event,
    facts: Mapping[str, Json],
    header: Mapping[str, Json],
    provider: Mapping[str, Json],
    session: str | None,
    below: tuple[Json, Json],
) -> ReadableSpan | None:
    where, record = where_of(event), record_of(event)
    kind = _kind_of(event, record)
    try:
        context = _context(where.trace, where.span)
        parent = _context(where.trace, where.parent) if where.parent else None
    except ValueError:
        return None
    is_interrupted = event.type == "NODE_INTERRUPTED"
    start = _ns(record.get("startedAt")) or event.ts * 1_000_000
    end = _ns(record.get("endedAt")) or max(start, event.ts * 1_000_000)
    attributes = attributes_of(kind, facts, header, session)
    attributes.update(shown_values(kind, facts, attributes, below))
    if parent is None:  # on every span it would make Langfuse write the trace again and again
        attributes.update({k: v for k, v in (("session.id", session), ("user.id", facts.get("userId"))) if v})
    if event.run is not None:
        attributes["agentrec.run.id"] = event.run
    if is_interrupted:
        attributes[INTERRUPTED] = str(event.payload.get("reason") or "interrupted")
    record_id = record_id_of_span(where.trace, where.span)
    attributes.update(Stamp(record_id, event.stream, event.seq, event.hash, event.prev_hash).attributes())
    resource = provider.get("resource")
    resource = resource if isinstance(resource, Mapping) else {}
    return ReadableSpan(
        name=str(record.get("name") or kind.lower()),
        context=context,
        parent=parent,
        resource=Resource({key: plain_value(value) for key, value in resource.items()}),
        attributes=attributes,
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
