"""What an exporter is given: spans in batches, after they ended, children before their parents; log records apart from them.

Where a processor of ours sees the same spans too, it told more and told it first: then nothing is left to do here. Else each
batch is written like the ends of live spans. Parents mostly come in a later batch, so three things are remembered meanwhile,
all of them bounded: who stands above a foreign span, HTTP attempts of calls to come, log records of spans to come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from otel_agentrec.capture import dialects
from otel_agentrec.capture.attempts import Attempt, attempt_of
from otel_agentrec.capture.opening import Key, OpenSpan, RecentKeys, take_oldest
from otel_agentrec.capture.spans import LogView, SpanView, from_sdk
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.capture.tracking import Tracker
from otel_agentrec.journal.facts import Kind

__all__ = ["Exported"]

MAX_PARENTS = 65_536
MAX_ATTEMPTS = 4_096
MAX_LOGS = 1_024
"""Spans whose log records wait for them."""


class _Given(NamedTuple):
    span: Any
    entry: OpenSpan
    parent: Key | None


class Exported:
    """Args:
    write: puts an event into the journal.
    seen: called when a processor of ours saw a span that an exporter is given.
    """

    def __init__(
        self, tracker: Tracker, write: Callable[[StepEvent], object], seen: Callable[[], object] = lambda: None
    ) -> None:
        self._tracker = tracker
        self._write = write
        self._seen = seen
        self.after_fork()

    def after_fork(self) -> None:
        """In the child: what waits here is the parent's."""
        self._lock = threading.Lock()
        self._parents: dict[Key, Key | None] = {}
        """Foreign span -> its parent, while no step is known to stand below it."""
        self._wanted = RecentKeys(MAX_PARENTS)
        """Spans that stand above a step, and have not come yet."""
        self._attempts: dict[Key, list[Attempt]] = {}
        self._logs: dict[Key, list[LogView]] = {}

    # --- spans --------------------------------------------------------------------------------------------------------

    def spans(self, batch: Iterable[Any]) -> None:
        """Write the steps of a batch that no processor of ours has seen."""
        with self._lock:
            given = self._fresh(batch)
            steps = [(one, *said) for one in given.values() if (said := self._read(one)) is not None]
            links: dict[Key, Key | None] = {}
            for key, one in given.items():
                if not one.entry.is_step:
                    self._foreign(key, one, links)
                    self._tracker.logs.leave(one.entry, None)
            for one, _, _ in steps:
                if one.parent is not None and not one.entry.path():
                    self._climb(one.parent, links)
            if links:
                self._write(_links(links))
            for one, view, reading in steps:
                for attempt in self._attempts.pop(one.entry.key, ()):
                    one.entry.add_attempt(attempt)
                self._tracker.record(one.span, one.entry, view, reading)
                self._tracker.logs.leave(one.entry, reading)

    def _fresh(self, batch: Iterable[Any]) -> dict[Key, _Given]:
        given: dict[Key, _Given] = {}
        for span in batch:
            context, parent = span.context, span.parent
            key = (context.trace_id, context.span_id)
            if self._tracker.has_seen(key):
                self._seen()
                continue
            above = (parent.trace_id, parent.span_id) if parent is not None else None
            given[key] = _Given(span, OpenSpan(span, key, None, None), above)
        for one in given.values():
            if one.parent is not None:
                over = given.get(one.parent)
                one.entry.above = over.entry if over is not None else self._tracker.table.nearest(one.parent)
        return given

    def _read(self, one: _Given) -> tuple[SpanView, dialects.Reading] | None:
        """What a span is, if it is a step."""
        entry = one.entry
        for log in self._logs.pop(entry.key, ()):
            if not entry.add_log(log):
                self._tracker.logs.record(log, entry)
        if self._tracker.foreign.verdict(one.span) == "foreign":
            return None
        view, said = self._tracker.reading(one.span, entry)
        if view is None or said is None:
            return None
        entry.is_step, entry.kind = True, said[0]
        return view, said

    def _foreign(self, key: Key, one: _Given, links: dict[Key, Key | None]) -> None:
        self._parents[key] = one.parent
        if len(self._parents) > MAX_PARENTS:
            take_oldest(self._parents)
        if key in self._wanted:
            self._climb(key, links)
        attempt = attempt_of(from_sdk(one.span))
        attempts = [*self._attempts.pop(key, ()), *([attempt] if attempt is not None else ())]
        if attempts:
            self._hand_up(one, attempts)

    def _hand_up(self, one: _Given, attempts: Sequence[Attempt]) -> None:
        """HTTP attempts belong to the nearest step above: here, or in a batch to come."""
        above: OpenSpan | None = one.entry
        for entry in one.entry.ancestors():
            if entry.is_step:
                if entry.kind == Kind.MODEL:
                    for attempt in attempts:
                        entry.add_attempt(attempt)
                return
            above = entry
        parent = self._parents.get(above.key) if above is not None else None
        if parent is not None:
            self._attempts.setdefault(parent, []).extend(attempts)
            if len(self._attempts) > MAX_ATTEMPTS:
                take_oldest(self._attempts)

    def _climb(self, at: Key | None, links: dict[Key, Key | None]) -> None:
        """Tell who stands above the foreign spans from here upwards, as far as they have come."""
        while at is not None:
            if at not in self._parents:
                self._wanted.add(at)
                return
            parent = self._parents.pop(at)
            links[at] = parent
            at = parent

    # --- logs ---------------------------------------------------------------------------------------------------------

    def log(self, log: LogView, echo: int) -> None:
        """Keep a log record for the span that is to come; one whose span is open or was here is told at once.

        Args:
            echo: as :meth:`LogTracker.emitted` wants it.
        """
        key = (int(log.trace_id or "0", 16), int(log.span_id or "0", 16))
        told: Sequence[LogView] = [log]
        with self._lock:
            if key[1] and dialects.log_use(log.event_name) == "join" and not self._tracker.has_seen(key):
                self._logs.setdefault(key, []).append(log)
                told = (take_oldest(self._logs) or ()) if len(self._logs) > MAX_LOGS else ()
        for one in told:
            self._tracker.logs.emitted(one, echo)

    def finish(self) -> None:
        """No more spans will come: tell the log records that wait for one."""
        with self._lock:
            waiting, self._logs = self._logs, {}
        for logs in waiting.values():
            for log in logs:
                self._tracker.logs.emitted(log, 0)


def _links(links: dict[Key, Key | None]) -> StepEvent:
    told: dict[str, dict[str, str]] = {}
    for (trace_id, span_id), parent in links.items():
        told.setdefault(f"{trace_id:032x}", {})[f"{span_id:016x}"] = f"{parent[1]:016x}" if parent is not None else ""
    return StepEvent("LINKS", {"links": told})
