"""What pointers of one stream lead to in the other streams of its recording."""

from __future__ import annotations

import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

from otel_agentrec.errors import RecordingUnreadable
from otel_agentrec.journal.events import Event
from otel_agentrec.journal.pointers import MARK, Pointer, keys_and_rest, steps_of, walk
from otel_agentrec.journal.reader import SESSIONS, Resolver, StreamFile

__all__ = ["Elsewhere"]

Json = Any
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}")
"""The stream of a process: no way out of the directory."""
MAX_OPEN = 8
MAX_EVENTS = 32


class Elsewhere:
    """Follows pointers. Streams stay open until :meth:`close`. Not thread-safe.

    Args:
        path: of the stream whose events point.
    """

    def __init__(self, path: Path) -> None:
        above = path.parent
        self._directory = above.parent if above.name == SESSIONS else above
        self._open: OrderedDict[str, tuple[StreamFile, Resolver]] = OrderedDict()
        self._events: OrderedDict[tuple[str, int], Event] = OrderedDict()

    def value(self, pointer: Pointer) -> Json:
        """What it leads to; ``{"$missing": …}`` where it leads nowhere, or to an event that is not the one that was meant."""
        steps = steps_of(pointer.path)
        if not steps or not _NAME.fullmatch(pointer.stream):
            return _missing("no pointer")
        try:
            event = self._event(pointer.stream, pointer.seq)
        except (IndexError, RecordingUnreadable, OSError):
            return _missing(f"{pointer.stream} has no event {pointer.seq}")
        if event.hash != pointer.hash:
            return _missing(f"event {pointer.seq} of {pointer.stream} is another one")
        _, resolver = self._stream(pointer.stream)
        path, rest = keys_and_rest(steps)
        try:
            if rest and isinstance(rest[0], int):
                return walk(resolver.element(event, path, rest[0]), rest[1:])
            found = walk(resolver.resolve(event, only={path}), steps)
        except (LookupError, TypeError):
            return _missing(f"{pointer.path} leads nowhere")
        return _missing("it points on") if isinstance(found, dict) and MARK in found else found

    def close(self) -> None:
        for _, resolver in self._open.values():
            resolver.close()
        self._open.clear()

    def _stream(self, name: str) -> tuple[StreamFile, Resolver]:
        found = self._open.pop(name, None)
        if found is None:
            file = StreamFile(name, self._directory / f"{name}.jsonl")
            found = file, Resolver(file)
        self._open[name] = found
        if len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)[1][1].close()
        return found

    def _event(self, stream: str, seq: int) -> Event:
        event = self._events.get((stream, seq))
        if event is None:
            event = self._events[stream, seq] = self._stream(stream)[0].at(seq)
            if len(self._events) > MAX_EVENTS:
                self._events.popitem(last=False)
        return event


def _missing(reason: str) -> dict[str, Json]:
    return {"$missing": {"reason": reason}}
