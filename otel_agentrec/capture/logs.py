"""Log records at the live edge: those that tell of an open span wait for its end, all others are recorded at once.

A program emits log records of every kind; what none of our dialects knows costs one dictionary lookup where its scope is
foreign, else a look at the event's name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from otel_agentrec.capture import dialects
from otel_agentrec.capture.dialects.genai_details import NAME as DETAILS
from otel_agentrec.capture.guard import LOGGER_NAME, Counters
from otel_agentrec.capture.opening import OpenSpan, OpenTable, RecentKeys
from otel_agentrec.capture.spans import LogView

__all__ = ["LogTracker"]

MAX_SCOPES = 4_096
MAX_ECHOES = 3


class _Recording(threading.local):
    echo = 0
    """How many times over the log record that this thread is recording answers the recording of another one."""


class LogTracker:
    """Args:
    table: the open spans that log records are joined to.
    write: puts a log record into the journal, with the span ids of the open steps above it, nearest first.
    """

    def __init__(self, table: OpenTable, write: Callable[[LogView, list[str]], object], counters: Counters) -> None:
        self._table = table
        self._write = write
        self._counters = counters
        self._foreign: dict[str, bool] = {}
        self.told = RecentKeys(1_024)
        """Spans whose record holds already what their event with all details is about to say."""
        self.heard: set[str] = set()
        """Scopes that :meth:`hear` was told of."""
        self._recording = _Recording()

    def wants(self, data: Any) -> bool:
        """Whether a log record that was emitted tells of an agent. Touches nothing but single dictionary entries."""
        scope = data.instrumentation_scope
        foreign = self._foreign.get(scope.name if scope is not None else "")
        if foreign is None:
            foreign = self._look(scope.name if scope is not None else "")
        return not foreign and dialects.log_use(_event_name(data.log_record)) != "ignore"

    def echo(self) -> int | None:
        """How far a log record that is emitted now is an echo of our own recording, to be given to :meth:`emitted`; None
        when it is not to be recorded: a program that answers each of our writes with a log record would never end."""
        echo = self._recording.echo
        if echo <= MAX_ECHOES:
            return echo
        self._counters.add("logs_echoed")
        return None

    def _look(self, scope: str) -> bool:
        """Our own log lines are not the agent's. Loggers of the program are unknown: any of them may emit events."""
        foreign = scope.startswith(LOGGER_NAME) or dialects.scope_verdict(scope) == "foreign"
        if len(self._foreign) < MAX_SCOPES:
            self._foreign[scope] = foreign
        return foreign

    def emitted(self, log: LogView, echo: int) -> None:
        """A log record that is wanted. Its values must not change any more."""
        key = (int(log.trace_id or "0", 16), int(log.span_id or "0", 16))
        entry = self._table.get(key)
        if entry is not None and dialects.log_use(log.event_name) == "join":
            may_be_its = entry.kind is None or dialects.may_take(entry.kind, log)
            if may_be_its and entry.add_log(log):
                return
        if log.event_name == DETAILS and key in self.told:
            return
        self._recording.echo = echo + 1
        try:
            self.record(log, self._table.nearest(key))
        finally:
            self._recording.echo = 0

    def leave(self, entry: OpenSpan, reading: dialects.Reading | None) -> None:
        """A span tells what it is, or that it is no step: record what was joined to it and is not its own."""
        if not entry.logs:
            return
        left = dialects.unread(reading, entry.logs)
        if left:
            entry.logs = [log for log in entry.logs if not any(log is other for other in left)]
            for log in left:
                self.record(log, entry)

    def hear(self, scope: str) -> None:
        """Log records of this scope tell what was said, and do not name the span of the call."""
        if len(self.heard) < MAX_SCOPES:
            self.heard.add(scope)

    def record(self, log: LogView, near: OpenSpan | None) -> None:
        """Record a log record as it is. ``near``: the span that it names, or the nearest step above that."""
        path = near.path() if near is not None else []
        if near is not None and near.is_step and near.span_id != log.span_id:
            path.insert(0, near.span_id)
        self._write(log, path)
        self._counters.add("logs_recorded")


def _event_name(record: Any) -> str:
    name = record.event_name
    if not name:
        attributes = record.attributes
        held = getattr(
            attributes, "_dict", attributes
        )  # the SDK's own mapping locks, and raises for what it does not hold
        name = held.get("event.name") if held else None
    return name if isinstance(name, str) else ""
