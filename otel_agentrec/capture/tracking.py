"""Starts and ends of spans become journal events, each at its own moment: nothing is held back.

A span is an agent step, foreign (HTTP, databases …: :mod:`~otel_agentrec.capture.foreign`) or not yet known. One that shows
only at its end what it is still gets its record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from otel_agentrec.capture import content, dialects, evaluations, handed, steps
from otel_agentrec.capture.attempts import summarise
from otel_agentrec.capture.callkeys import CallKeys, flag_cut, limit_of
from otel_agentrec.capture.completions import Completion, fill
from otel_agentrec.capture.foreign import ForeignSpans
from otel_agentrec.capture.forward.sealed import SealedSpans
from otel_agentrec.capture.guard import Counters, Notices
from otel_agentrec.capture.logs import LogTracker
from otel_agentrec.capture.once import SaidOnce
from otel_agentrec.capture.opening import Key, OpenSpan, OpenTable, Place, RecentKeys
from otel_agentrec.capture.program import ProgramRun, stands_alone, take
from otel_agentrec.capture.spans import LogView, SpanView, from_sdk
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.capture.stepwriter import StepWriter
from otel_agentrec.journal.draft import SealedAt
from otel_agentrec.journal.facts import Facts, Kind
from otel_agentrec.settings import Settings

__all__ = ["Tracker"]

NODES = (Kind.MODEL, Kind.TOOL)
MAX_EARLY = 16
"""Completions that wait for the end of a span whose start was not seen."""


class Tracker:
    """The live edge of one recorder.

    Args:
        write: puts an event into the journal; the second argument is the stream whose events it points at, if any.
        once: what is said once per stream.
        unknown: called when a span began that does not tell what it is.
    """

    def __init__(
        self,
        write: Callable[[StepEvent, str | None], SealedAt | None],
        once: SaidOnce,
        unknown: Callable[[], object],
        settings: Settings,
        counters: Counters,
        notices: Notices,
    ) -> None:
        self.table = OpenTable()
        self.foreign = ForeignSpans(self.table)
        self.sealed = SealedSpans()
        self.logs = LogTracker(self.table, self._write_log, counters)
        self._recent = RecentKeys(4_096)
        self._is_exported_too = False
        self.on_wire_span: Callable[[OpenSpan, SpanView | None, str | None, Facts | None], object] | None = None
        """Told of spans that ended and that an attempt on the wire waits for."""
        self.program: ProgramRun | None = None
        self._early: dict[Key, Mapping[str, Any]] = {}
        self._writer = StepWriter(write, once, settings)
        self._once = once
        self._unknown = unknown
        self._settings = settings
        self._counters = counters
        self._notices = notices
        self._keys = CallKeys(settings.path)
        self._limits: set[int] = set()
        """Lengths at which SDKs of this process cut attributes."""

    # --- starts -------------------------------------------------------------------------------------------------------

    def started(self, span: Any, owner: object, abandoned: Callable[[Key], None]) -> bool:
        """A span that is not foreign began. False when another processor of this recorder has seen it already."""
        context, parent = span.context, span.parent
        key = (context.trace_id, context.span_id)
        if key in self.table:
            return False
        above = self.table.nearest((parent.trace_id, parent.span_id)) if parent is not None else None
        limit = limit_of(span)
        if limit is not None:
            self._limits.add(limit)
        entry = OpenSpan(span, key, above, owner)
        entry.watch(span, abandoned)
        evicted = self.table.add(entry)
        if evicted is not None:
            self._counters.add("evicted")
            self._give_up(evicted, "evicted")
        if self.foreign.verdict(span) == "agent" or dialects.speaks(entry.keys()):
            view = from_sdk(span)
            said = dialects.started(view)
            if said is not None:
                handed.at_start(key)
                self._once.provider(span)
                self._reveal_above(entry)
                self._journal_start(entry, view, *said)
        if not entry.is_step:
            self._unknown()
        return True

    def sweep(self) -> None:
        """Journal the starts of open spans that tell by now what they are."""
        for entry in self.table:
            if not entry.is_step and entry.is_open and entry.forked_from is None:
                self.reveal(entry)

    @property
    def has_unknown(self) -> bool:
        """Whether a span is open that has not told yet what it is."""
        return any(not entry.is_step for entry in self.table)

    def _reveal_above(self, entry: OpenSpan) -> None:
        """Spans above that told nothing at their start may tell now: runs and paths need them."""
        unknown = [one for one in entry.ancestors() if not one.is_step and one.is_open]
        for one in reversed(unknown):
            self.reveal(one)

    def reveal(self, entry: OpenSpan) -> None:
        """Look again at an open span that has not told yet what it is, and journal its start if it tells now."""
        view = entry.partial() if dialects.speaks(entry.keys()) else None
        said = dialects.started(view) if view is not None else None
        if view is not None and said is not None:
            self._journal_start(entry, view, *said)

    def _journal_start(self, entry: OpenSpan, view: SpanView, kind: str | None, facts: Facts) -> None:
        entry.is_step, entry.kind, entry.started = True, kind, True
        self._take_session(entry, facts)
        entry.session = facts.session_id
        entry.outermost = kind != Kind.AGENT or not entry.is_under(Kind.AGENT)
        handed.apply(entry.key, facts)
        if kind == Kind.MODEL and facts.asked is not None:  # a call that never ends is known by its key too
            self._keys.add(kind, facts)
        take(self.program, stands_alone(entry), kind, facts)
        name = facts.agent_name if kind == Kind.AGENT else facts.tool_name
        entry.place = Place(name, facts.tool_call_id, facts.run_id, facts.session_id)
        self._writer.write(steps.started_event(view, kind, facts, entry.path(), entry.outermost), view)

    def is_agent(self, span: Any) -> bool:
        """Whether an open span has told that it is an agent's."""
        context = span.context
        entry = self.table.get((context.trace_id, context.span_id))
        return entry is not None and entry.kind == Kind.AGENT

    def has_calls(self, span: Any) -> bool:
        """Whether calls on the wire may be those of an open span."""
        context = span.context
        entry = self.table.get((context.trace_id, context.span_id))
        return entry is not None and bool(entry.calls)

    # --- ends ---------------------------------------------------------------------------------------------------------

    def ended(self, span: Any) -> None:
        """A span that is not foreign ended: write what it is now known to be."""
        context = span.context
        key = (context.trace_id, context.span_id)
        entry = self.table.get(key)
        if entry is None:  # started before we were there, or evicted, or another processor's end came first
            if key in self._recent:
                return
            parent = span.parent
            above = self.table.nearest((parent.trace_id, parent.span_id)) if parent is not None else None
            entry = OpenSpan(span, key, above, None)
            entry.completion = self._early.pop(key, None)
        else:
            if self._is_exported_too:  # before it leaves the table: an exporter may ask from another thread
                self._recent.add(key)
            self.table.pop(key)
        view, said = self.reading(span, entry)
        if view is not None and said is not None:
            self.record(span, entry, view, said)
        self._tell_wire(entry, view, said)
        self.logs.leave(entry, said)
        handed.forget(key)
        entry.release()

    def reading(self, span: Any, entry: OpenSpan) -> tuple[SpanView | None, dialects.Reading | None]:
        """What a span that ended is."""
        entry.is_open = False
        asked = entry.is_step or entry.logs or self.foreign.verdict(span) == "agent" or dialects.speaks(entry.keys())
        view = from_sdk(span) if asked else None
        return view, dialects.read(view, entry.logs or ()) if view is not None else None

    def record(self, span: Any, entry: OpenSpan, view: SpanView, said: dialects.Reading) -> None:
        """Write the step that ended."""
        self._recent.add(entry.key)
        self._journal_end(entry, view, *said, span)

    def _journal_end(self, entry: OpenSpan, view: SpanView, kind: str, facts: Facts, span: Any) -> None:
        entry.is_step, entry.kind = True, kind
        flag_cut(kind, facts, self._limits)
        self._apply(entry, facts)
        self._keys.add(kind, facts)
        if kind == Kind.MODEL:
            self._look_for_content(entry, view, facts)
        if kind == Kind.AGENT and not entry.started:
            entry.outermost = not entry.is_under(Kind.AGENT)

        def event() -> StepEvent:
            self._once.provider(span)
            made = self._end_event(entry, view, kind, facts)
            if entry.forked_from is not None:  # the parent process records this span; here it only ended
                kept = {"header": made.payload["header"]} if "header" in made.payload else {}
                made.type = "NODE_AMENDED"
                made.payload = {
                    "spanId": entry.span_id,
                    "facts": facts.payload(),
                    "forkedFrom": entry.forked_from,
                    **kept,
                }
            return made

        at, made = self._writer.write_pointing(event, view)
        if self.sealed.is_wanted and at is not None:
            self.sealed.note(span, entry, at, made, facts)
        for evaluated in evaluations.of_span(view):
            self._writer.write(evaluated, view)

    def _end_event(self, entry: OpenSpan, view: SpanView, kind: str, facts: Facts) -> StepEvent:
        """The event of an end; what stays the same from call to call is written before it and pointed at."""
        attempts = summarise(entry.attempts or ())
        header = None
        if kind in NODES:
            steps.take_attempts(facts, attempts)
            header = self._writer.header(facts, view)
        return steps.ended_event(
            view,
            kind,
            facts,
            entry.path(),
            entry.outermost,
            header=header,
            provider=self._once.provider_seq(view),
            via=attempts.via,
        )

    def _look_for_content(self, entry: OpenSpan, view: SpanView, facts: Facts) -> None:
        if facts.messages is not None or facts.output_messages is not None or facts.output_text is not None:
            return
        if view.scope in self.logs.heard:  # log records tell it, beside the spans
            return
        if entry.is_under(Kind.MODEL):  # the span around it tells of the same call, and may have its content
            return
        self._counters.add("content_missing")
        if self._settings.content != "off":
            self._notices.once(*content.missing(view.scope))

    # --- spans that do not end ----------------------------------------------------------------------------------------

    def abandoned(self, key: Key) -> None:
        """The garbage collector took a span that never ended."""
        entry = self.table.pop(key)
        if entry is not None:
            self._counters.add("abandoned")
            self._give_up(entry, "abandoned")

    def interrupt_open(self, owner: object | None) -> None:
        """Shutdown: open model and tool spans of this processor (None: of all) get what is known of them.

        They stay in the table: should one end later after all, its record wins.
        """
        for entry in self.table:
            if (owner is None or entry.owner is owner) and not entry.interrupted:
                self._interrupt(entry, "shutdown")

    def _give_up(self, entry: OpenSpan, reason: str) -> None:
        self._interrupt(entry, reason)
        entry.is_open = False
        self._tell_wire(entry, None, None)
        entry.release()
        handed.forget(entry.key)

    def _interrupt(self, entry: OpenSpan, reason: str) -> None:
        if entry.interrupted:  # a shutdown told already
            return
        view = entry.partial()
        said = dialects.read(view, entry.logs or ()) if view is not None else None
        self.logs.leave(entry, said if said is not None and said[0] in NODES else None)
        if view is None or said is None or entry.forked_from is not None:
            return
        if said[0] not in NODES:
            if entry.started and entry.kind is None:  # it began as a call of an unknown kind: that call is closed
                closing = steps.started_event(view, None, said[1], entry.path())
                closing.type, closing.payload = "NODE_INTERRUPTED", {"reason": reason}
                self._writer.write(closing, view)
            return
        entry.interrupted = entry.is_step = True
        kind, facts = said
        entry.kind = kind
        self._apply(entry, facts)
        known = facts.output_messages or facts.output_text or facts.result is not None
        facts.status = "partial" if known else "interrupted"

        def event() -> StepEvent:
            made = self._end_event(entry, view, kind, facts)
            made.type, made.payload = "NODE_INTERRUPTED", {"reason": reason, "record": made.payload}
            return made

        self._writer.write_pointing(event, view)
        self._tell_wire(entry, view, said)

    # --- the completion hook ------------------------------------------------------------------------------------------

    def completed(self, told: Completion) -> None:
        """Facts of a span that is about to end become part of its record; of one that ended they amend it; a model call
        whose span no processor sees is recorded."""
        entry = self.table.get(told.key)
        if entry is not None:
            entry.completion = {**(entry.completion or {}), **told.facts}
            return
        if told.is_recording and not self._is_exported_too:  # it began before we were there, or is none of ours
            self._early[told.key] = told.facts
            if len(self._early) > MAX_EARLY:
                with contextlib.suppress(KeyError, StopIteration, RuntimeError):  # another thread was quicker
                    del self._early[next(iter(self._early))]
            return
        is_new = told.unseen is not None and told.key not in self._recent
        kind, facts = told.unseen if told.unseen is not None and is_new else (None, Facts(**told.facts))

        def event() -> StepEvent:
            header = self._writer.header(facts, told.view)
            if kind is not None:
                return steps.ended_event(told.view, kind, facts, header=header)
            return steps.amended_event(told.view, facts, header=header)

        self._writer.write_pointing(event, told.view)
        if kind is not None:
            self._recent.add(told.key)
            self.logs.told.add(told.key)

    def _apply(self, entry: OpenSpan, facts: Facts) -> None:
        """Put in what was told beside the span."""
        handed.apply(entry.key, facts)
        if entry.completion:
            fill(facts, entry.completion)
        self._take_session(entry, facts)
        take(self.program, stands_alone(entry), entry.kind, facts)

    def _take_session(self, entry: OpenSpan, facts: Facts) -> None:
        if facts.session_id is None:
            facts.session_id = entry.session_above(self._settings.session_attribute)

    # --- the wire -----------------------------------------------------------------------------------------------------

    def _tell_wire(self, entry: OpenSpan, view: SpanView | None, said: dialects.Reading | None) -> None:
        """Attempts on the wire may wait for the end of this span."""
        if self.on_wire_span is not None:
            kind, facts = said if said is not None else (None, None)
            self.on_wire_span(entry, view, kind, facts)
        entry.is_left = True

    def wire_told(self, view: SpanView, facts: Facts, wire_ids: Sequence[str], rung: str | None) -> None:
        """What the wire tells of a call whose span ended: facts that the span lacks, and which attempts it was."""

        def event() -> StepEvent:
            made = steps.amended_event(view, facts, header=self._writer.header(facts, view))
            if wire_ids:
                made.payload.update(wireIds=list(wire_ids), rung=rung)
            if not made.payload["facts"]:
                del made.payload["facts"]
            return made

        self._writer.write_pointing(event, view)

    # --- log records --------------------------------------------------------------------------------------------------

    def _write_log(self, log: LogView, path: list[str]) -> None:
        evaluated = evaluations.of_log(log)
        facts = dialects.told(log) if evaluated is None else None
        if facts is not None and facts.messages is not None:
            self.logs.hear(log.scope)

        def event() -> StepEvent:
            header = self._writer.header(facts, log) if facts is not None else None
            made = evaluated or steps.log_event(log, facts, header=header)
            if path:
                made.trace["path"] = path
            return made

        self._writer.write_pointing(event, log)

    # --- what exporters are given besides -----------------------------------------------------------------------------

    def expect_exports(self, waiting: int) -> None:
        """An exporter will be given spans that ended, up to ``waiting`` of them behind the newest one."""
        self._is_exported_too = True
        self._recent.grow(2 * waiting)

    def has_seen(self, key: Key) -> bool:
        """Whether a processor saw the start of a span, or its step is written already."""
        return key in self.table or key in self._recent
