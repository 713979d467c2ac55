"""Spans that ended go on to other processors, each as a copy that carries the stamp of its event.

A step gets what viewers need besides, where it lacks it: the current ``gen_ai.*`` names of its facts, ``input.value`` and
``output.value`` of agents and tools, the session. Its own attributes stay as they are. A span that became no event goes on
without a stamp. Whatever the processors do, the program does not feel it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from otel_agentrec.capture.forward.checkpoints import checkpoint_span
from otel_agentrec.capture.forward.cleaned import Cleaner
from otel_agentrec.capture.forward.eventrecords import process_resource
from otel_agentrec.capture.forward.sealed import Sealed, SealedSpans
from otel_agentrec.capture.forward.stamped import Said, StampedSpan
from otel_agentrec.journal.draft import SealedAt
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.stamps import Stamp
from otel_agentrec.nodes.agentsaid import AgentSaid
from otel_agentrec.nodes.spanattributes import attributes_of, shown_values, unpaid
from otel_agentrec.records import record_id_of_span

if TYPE_CHECKING:
    from otel_agentrec.capture.guard import Guard
    from otel_agentrec.capture.recorder import Recorder

__all__ = ["Forwarder", "Stamper"]

Json = Any
Told = tuple[dict[str, Json], dict[str, Json]]
Below = tuple[Json, Json]


DEEPEST = 8
"""How far it may go that a processor ends a span while it is given one: one that does so for each would go on for ever."""


class _Depth(threading.local):
    """How many spans stand behind what this thread does now."""

    now = 0


class Stamper:
    """Makes the copies.

    Args:
        gate: what everything passes that leaves the process.
        content: False adds nothing of what was said.
    """

    def __init__(self, sealed: SealedSpans, gate: Gate, content: bool, guard: Guard) -> None:
        self._sealed = sealed
        self._guard = guard
        self._gate = gate
        self._content = content
        self._cleaner = Cleaner(gate.redactor)
        self._agents = AgentSaid()
        self._mark = f"_otel_agentrec_below_{id(self)}"

    def stamped(self, span: ReadableSpan, unseen: Callable[[], object] = lambda: None) -> tuple[StampedSpan, bool]:
        """The copy of a span that ended, and whether it has a stamp: not if it became no event. ``unseen`` as
        :class:`~otel_agentrec.capture.forward.stamped.StampedSpan` has it."""
        sealed = self._sealed.of(span)
        told = self._told(sealed)
        below = self._guard.run("what an agent said", self._below, span, sealed, told[0]) or (None, None)
        make, cleaner = partial(self._said, span, sealed, told, below), self._cleaner
        context, scope = cleaner.context(span.context), cleaner.scope(span.instrumentation_scope)
        return StampedSpan(span, make, unseen, context=context, scope=scope), sealed is not None

    def resource(self, resource: Resource) -> Resource:
        """As it may leave."""
        return self._cleaner.resource(resource)

    def _told(self, sealed: Sealed | None) -> Told:
        """Facts and header of a step's event, as the rules of redaction leave them."""
        if sealed is None or sealed.event is None:
            return {}, {}
        payload, header = sealed.event.payload, sealed.header
        if self._gate.redactor.has_rules:
            payload = self._gate.payload(sealed.event.type, payload)
            header = self._gate.payload("REQUEST_HEADER", header) if header else {}
        return payload.get("facts") or {}, header

    def _below(self, span: ReadableSpan, sealed: Sealed | None, facts: dict[str, Json]) -> Below:
        """What the model calls below a span tell of what was asked and answered. Found now, once: spans end in order."""
        if not self._content:
            return None, None
        known: Below | None = getattr(span, self._mark, None)
        if known is None:
            context, parent = span.context, span.parent
            above = None if parent is None or parent.is_remote else f"{parent.span_id:016x}"
            kind = None if sealed is None else sealed.kind
            known = self._agents.ended(f"{context.trace_id:032x}", f"{context.span_id:016x}", above, kind, facts)
            setattr(span, self._mark, known)
        return known

    # --- when somebody looks at it ---

    def _said(self, span: ReadableSpan, sealed: Sealed | None, told: Told, below: Below) -> Said:
        try:
            own = _own_attributes(span)
            if sealed is None:
                return self._cleaner.said(span, own)
            if sealed.event is not None:
                own = self._as_viewers_need(span, own, sealed, told, below)
            origin = self._sealed.origin_of(span)
            if origin is not None:
                own = unpaid(own, sealed.kind, origin)
            said = self._cleaner.said(span, own)
            return said._replace(attributes={**said.attributes, **_stamp(span, sealed).attributes()})
        except Exception as error:
            self._guard.swallow("the stamp of a span", error)
            self._guard.counters.add("forward_withheld")
            return self._cleaner.nothing(span)

    def _as_viewers_need(
        self, span: ReadableSpan, own: dict[str, Json], sealed: Sealed, told: Told, below: Below
    ) -> dict[str, Json]:
        facts, header = told
        if self._gate.redactor.has_rules:  # they are about the record: so the record is what goes out
            own, known = {}, facts
        else:
            known = {key: value for key, value in facts.items() if key != "attributes"}  # they are its own
        more = attributes_of(sealed.kind, known, header, sealed.session, besides=own, content=self._content)
        if self._content:
            more.update(shown_values(sealed.kind, facts, {*own, *more}, below))
        parent = span.parent
        if parent is None or parent.is_remote:  # on every span it would make Langfuse write the trace again and again
            for name, value in (("session.id", sealed.session), ("user.id", facts.get("userId"))):
                if value is not None and name not in own:
                    more[name] = value
        own.update(more)
        return own


def _stamp(span: ReadableSpan, sealed: Sealed) -> Stamp:
    context, at = span.context, sealed.at
    record_id = record_id_of_span(f"{context.trace_id:032x}", f"{context.span_id:016x}")
    return Stamp(record_id, at.stream, at.seq, at.hash, at.prev_hash)


class Forwarder:
    """The processors behind one of ours. Every call of them is guarded; what they raise is counted.

    Args:
        inner: in the order in which they are called.
        then: called after each span.
    """

    def __init__(self, inner: Sequence[SpanProcessor], recorder: Recorder, then: Callable[[], None]) -> None:
        self._then = then
        self._resource: Resource | None = None
        self._depth = _Depth()
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

    def then(self) -> Callable[[ReadableSpan], None]:
        """What is to be called with a span that ends now, once its event is written: perhaps later, perhaps on another thread."""
        depth = self._depth.now
        return partial(self.ended, depth=depth) if depth else self.ended

    def ended(self, span: ReadableSpan, *, depth: int = 0) -> None:
        """Hand on a span whose event is written by now, if it became one."""
        if depth >= DEEPEST:
            self._counters.add("forward_lost")
            return
        made = self._guard.run("a span's copy", self._stamper.stamped, span, self._unseen_of(span))
        if made is None:
            self._counters.add("forward_lost")
            return
        copy, has_stamp = made
        self._counters.add("forwarded")
        if not has_stamp:
            self._counters.add("forwarded_unstamped")
        self._resource = span.resource
        self._hand_on(copy, depth + 1, self._guard.run)
        self._guard.run("a checkpoint", self._then)

    def _unseen_of(self, span: ReadableSpan) -> Callable[[], object]:
        """Counts a copy that no processor looked at: a full queue drops spans, and tells nobody which. Processors leave out
        spans that are not sampled by design, and a forked child what its parent has queued."""
        process = os.getpid()

        def count() -> None:
            if os.getpid() == process:
                self._counters.add("forward_unseen")

        return count if span.context.trace_flags & 1 else lambda: None

    def checkpoint(self, head: SealedAt) -> None:
        """Say how far a stream has come."""
        seen = self._resource
        resource = self._stamper.resource(seen) if seen is not None else process_resource()
        self._hand_on(checkpoint_span(head, resource), self._depth.now + 1, self._guard.run_later)

    def _hand_on(self, span: ReadableSpan, depth: int, run: Callable[..., object]) -> None:
        outer, self._depth.now = self._depth.now, depth
        try:
            for one in self._inner:
                run("a forward processor's on_end", one.on_end, span)
        finally:
            self._depth.now = outer

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
