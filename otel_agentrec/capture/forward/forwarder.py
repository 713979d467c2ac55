"""Spans that ended go on to other processors, each as a copy that carries the stamp of its event.

A step gets what viewers need besides, where it lacks it: the current ``gen_ai.*`` names of its facts, ``input.value`` and
``output.value`` of agents and tools, the session. Its own attributes stay as they are. A span that became no event goes on
without a stamp. Whatever the processors do, the program does not feel it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from otel_agentrec.capture.forward.checkpoints import checkpoint_span
from otel_agentrec.capture.forward.cleaned import Cleaner
from otel_agentrec.capture.forward.eventrecords import process_resource
from otel_agentrec.capture.forward.sealed import Sealed, SealedSpans
from otel_agentrec.journal.draft import SealedAt
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.stamps import Stamp
from otel_agentrec.nodes.agentsaid import AgentSaid
from otel_agentrec.nodes.identity import record_id_of_span
from otel_agentrec.nodes.spanattributes import attributes_of, shown_values

if TYPE_CHECKING:
    from otel_agentrec.capture.guard import Guard
    from otel_agentrec.capture.recorder import Recorder

__all__ = ["Forwarder", "Stamper"]

Json = Any


class Stamper:
    """Makes the copies.

    Args:
        gate: what everything passes that leaves the process.
        content: False adds nothing of what was said.
    """

    def __init__(self, sealed: SealedSpans, gate: Gate, content: bool) -> None:
        self._sealed = sealed
        self._gate = gate
        self._content = content
        self._cleaner = Cleaner(gate.redactor)
        self._said = AgentSaid()

    def stamped(self, span: ReadableSpan) -> tuple[ReadableSpan, Stamp | None]:
        """The copy of a span that ended, and its stamp; None for one that became no event."""
        sealed = self._sealed.of(span)
        own = _own_attributes(span)
        facts, header = self._told(sealed)
        below = self._below(span, None if sealed is None else sealed.kind, facts)
        if sealed is None:
            return self._cleaner.span(span, self._cleaner.attributes(own)), None
        context = span.context
        trace, at = f"{context.trace_id:032x}", sealed.at
        record_id = record_id_of_span(trace, f"{context.span_id:016x}")
        stamp = Stamp(record_id, at.stream, at.seq, at.hash, at.prev_hash)
        attributes = self._as_viewers_need(span, own, sealed, facts, header, below)
        attributes.update(stamp.attributes())
        return self._cleaner.span(span, attributes), stamp

    def _told(self, sealed: Sealed | None) -> tuple[dict[str, Json], dict[str, Json]]:
        """Facts and header of a step's event, as the rules of redaction leave them."""
        if sealed is None or sealed.event is None:
            return {}, {}
        payload, header = sealed.event.payload, sealed.header
        if self._gate.redactor.has_rules:
            payload = self._gate.payload(sealed.event.type, payload)
            header = self._gate.payload("REQUEST_HEADER", header) if header else {}
        return payload.get("facts") or {}, header

    def _below(self, span: ReadableSpan, kind: str | None, facts: dict[str, Json]) -> tuple[Json, Json]:
        """What the model calls below a span tell of what was asked and answered."""
        if not self._content:
            return None, None
        context, parent = span.context, span.parent
        above = None if parent is None or parent.is_remote else f"{parent.span_id:016x}"
        return self._said.ended(f"{context.trace_id:032x}", f"{context.span_id:016x}", above, kind, facts)

    def _as_viewers_need(
        self,
        span: ReadableSpan,
        own: dict[str, Json],
        sealed: Sealed,
        facts: dict[str, Json],
        header: dict[str, Json],
        below: tuple[Json, Json],
    ) -> dict[str, Json]:
        if sealed.event is None:
            return self._cleaner.attributes(own)
        redactor, known = self._gate.redactor, facts
        if redactor.has_rules:  # they are about the record: so the record is what goes out
            own = {}
        else:
            known = {key: value for key, value in facts.items() if key != "attributes"}
        more = attributes_of(sealed.kind, known, header, sealed.session, besides=own, content=self._content)
        if self._content:
            more.update(shown_values(sealed.kind, facts, {*own, *more}, below))
        parent = span.parent
        if parent is None or parent.is_remote:  # on every span it would make Langfuse write the trace again and again
            for name, value in (("session.id", sealed.session), ("user.id", facts.get("userId"))):
                if value is not None and name not in own:
                    more[name] = value
        attributes = {**own, **more}
        return attributes if redactor.has_rules else self._cleaner.attributes(attributes)


class Forwarder:
    """The processors behind one of ours. Every call of them is guarded; what they raise is counted.

    Args:
        inner: in the order in which they are called.
        then: called after each span.
    """

    def __init__(self, inner: Sequence[SpanProcessor], recorder: Recorder, then: Callable[[], None]) -> None:
        self._then = then
        self._resource: Resource | None = None
        self._inner = tuple(inner)
        self._guard: Guard = recorder.guard
        self._counters = recorder.counters
        self._stamper = recorder.outlets.stamper
        recorder.sealed.want()

    def has(self, inner: SpanProcessor) -> bool:
        return any(one is inner for one in self._inner)

    def started(self, span: Span, parent_context: Context | None) -> None:
        for one in self._inner:
            self._guard.run("a forward processor's on_start", one.on_start, span, parent_context)

    def ending(self, span: Span) -> None:
        for one in self._inner:
            self._guard.run("a forward processor's _on_ending", one._on_ending, span)

    def ended(self, span: ReadableSpan) -> None:
        """Hand on a span whose event is written by now, if it became one."""
        made = self._guard.run("the stamp of a span", self._stamper.stamped, span)
        if made is None:  # it could not be copied; as it is it may hold what must not leave
            self._counters.add("forward_lost")
            return
        copy, stamp = made
        self._counters.add("forwarded")
        if stamp is None:
            self._counters.add("forwarded_unstamped")
        self._resource = copy.resource
        self._hand_on(copy)
        self._guard.run("a checkpoint", self._then)

    def checkpoint(self, head: SealedAt) -> None:
        """Say how far a stream has come."""
        self._hand_on(checkpoint_span(head, self._resource if self._resource is not None else process_resource()))

    def _hand_on(self, span: ReadableSpan) -> None:
        for one in self._inner:
            self._guard.run("a forward processor's on_end", one.on_end, span)

    def flush(self, timeout_millis: int) -> bool:
        """False when one of them did not manage."""
        done = [
            self._guard.run("a forward processor's force_flush", one.force_flush, timeout_millis) for one in self._inner
        ]
        return all(one is not False and one is not None for one in done)

    def shutdown(self) -> None:
        for one in self._inner:
            self._guard.run("a forward processor's shutdown", one.shutdown)


def _own_attributes(span: ReadableSpan) -> dict[str, Json]:
    """A flat copy; the SDK's own mapping locks and calls back for each key."""
    held = getattr(span, "_attributes", None)
    inner = getattr(held, "_dict", None)
    return inner.copy() if type(inner) is dict else dict(span.attributes or {})
