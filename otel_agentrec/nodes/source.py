"""Where the fold reads events from: a recording on disk, or events in memory.

The fold reads everything once without content (:meth:`Source.events`), and later single events with their content
(:meth:`Source.facts`, :meth:`Source.event`), so that a recording larger than memory can be folded.
"""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from otel_agentrec.journal.events import Event, content_of
from otel_agentrec.journal.facts import RawList
from otel_agentrec.journal.normal import restore
from otel_agentrec.journal.reader import Recording, Resolver, StreamFile
from otel_agentrec.nodes.memo import Memo
from otel_agentrec.nodes.sound import facts_of, record_of

__all__ = ["MemorySource", "Place", "RecordingSource", "Source"]

Json = Any
_NEAR = 32
"""So many events are read through, and remembered, rather than looked up."""
_HOLDERS = ("facts", "record", "given")
"""Payload keys below which content stands."""


class Place(NamedTuple):
    """Where an event stands: the name of its stream, and its sequence number there."""

    stream: str
    seq: int


class Source(Protocol):
    """What the fold needs of a recording."""

    def events(self) -> Iterator[Event]:
        """All events in (stream, seq) order. Content in the payloads may still be references."""
        ...

    def event(self, place: Place) -> Event:
        """One event, its payload with all content. Raises LookupError when there is none."""
        ...

    def outline(self, place: Place) -> Event:
        """One event without what was said: content is left out, but not the mark of content that was not recorded."""
        ...

    def facts(self, place: Place, keys: Collection[str]) -> dict[str, Json]:
        """Only these facts of one event, with content. Cheaper than :meth:`event` beside a long chat history."""
        ...

    def holds(self, place: Place, key: str) -> bool:
        """Whether this very event holds the fact."""
        ...

    def payload(self, place: Place, keys: Collection[str]) -> dict[str, Json]:
        """The payload of one event; of what was said in it, only what stands under these keys."""
        ...

    def is_live(self, stream: str) -> bool:
        """Is the process that writes this stream still at it?"""
        ...


class MemorySource:
    """Events in memory, in any order; their payloads hold the content already.

    Args:
        events: the events.
        live: names of the streams that are still being written, or a function that tells.
    """

    def __init__(self, events: Iterable[Event], live: Collection[str] | Callable[[str], bool] = ()) -> None:
        self._events = sorted(events, key=lambda e: (e.stream, e.seq, e.id))
        self._by_place = {Place(e.stream, e.seq): e for e in self._events}
        self._live = live

    def events(self) -> Iterator[Event]:
        return iter(self._events)

    def event(self, place: Place) -> Event:
        event = self._by_place[place]
        facts = facts_of(event)
        if not any(isinstance(value, RawList) for value in facts.values()):
            return event
        plain = {key: _plain(value) for key, value in facts.items()}
        payload = (
            {"facts": plain} if event.type != "NODE_INTERRUPTED" else {"record": {**record_of(event), "facts": plain}}
        )
        return dataclasses.replace(event, payload={**event.payload, **payload})

    def outline(self, place: Place) -> Event:
        event = self._by_place[place]
        return dataclasses.replace(event, payload=_without_content(event))

    def facts(self, place: Place, keys: Collection[str]) -> dict[str, Json]:
        return {k: _plain(v) for k, v in facts_of(self._by_place[place]).items() if k in keys}

    def holds(self, place: Place, key: str) -> bool:
        return facts_of(self._by_place[place]).get(key) is not None

    def payload(self, place: Place, keys: Collection[str]) -> dict[str, Json]:
        return self._by_place[place].payload

    def is_live(self, stream: str) -> bool:
        return self._live(stream) if callable(self._live) else stream in self._live


class RecordingSource:
    """A recording on disk; one event is found by its sequence number and resolved when it is asked for."""

    def __init__(self, recording: Recording) -> None:
        self._streams = {s.name: s for s in recording.streams()}
        self._cursors = {name: _Cursor(s) for name, s in self._streams.items()}
        self._resolvers: OrderedDict[str, Resolver] = OrderedDict()
        self._live: dict[str, bool] = {}
        self._messages = Memo(_as_sent)

    def events(self) -> Iterator[Event]:
        for name in sorted(self._streams):
            yield from self._streams[name].events()

    def event(self, place: Place) -> Event:
        event = self._cursors[place.stream].at(place.seq)
        return dataclasses.replace(event, payload=self._sent(self._resolver(place.stream).resolve(event)))

    def outline(self, place: Place) -> Event:
        event = self._cursors[place.stream].at(place.seq)
        return dataclasses.replace(event, payload=self._sent(_without_content(event)))

    def facts(self, place: Place, keys: Collection[str]) -> dict[str, Json]:
        event = self._cursors[place.stream].at(place.seq)
        at = "$.payload.record.facts" if event.type == "NODE_INTERRUPTED" else "$.payload.facts"
        payload = self._resolver(place.stream).resolve(event, only={f"{at}.{key}" for key in keys})
        facts = facts_of(dataclasses.replace(event, payload=payload))
        return {key: self._sent(value) for key, value in facts.items() if key in keys}

    def holds(self, place: Place, key: str) -> bool:
        return facts_of(self._cursors[place.stream].at(place.seq)).get(key) is not None

    def payload(self, place: Place, keys: Collection[str]) -> dict[str, Json]:
        event = self._cursors[place.stream].at(place.seq)
        only = {f"$.payload.{key}" for key in keys}
        return {
            key: self._sent(value) if key in keys else value
            for key, value in self._resolver(place.stream).resolve(event, only=only).items()
        }

    def _sent(self, value: Json) -> Json:
        """A value without the marks of canonical form; the elements of long lists are looked at once."""
        if isinstance(value, list) and len(value) > 1:
            return self._messages.map(value)
        if isinstance(value, dict) and not any(key[:1] == "$" for key in value):
            return {key: self._sent(x) for key, x in value.items()}
        return _as_sent(value)

    def is_live(self, stream: str) -> bool:
        if stream not in self._live:
            self._live[stream] = stream in self._streams and self._streams[stream].is_live()
        return self._live[stream]

    def _resolver(self, stream: str) -> Resolver:
        found = self._resolvers.pop(stream, None) or Resolver(self._streams[stream])
        self._resolvers[stream] = found
        if len(self._resolvers) > 16:
            self._resolvers.popitem(last=False)
        return found


class _Cursor:
    """Finds events of one stream; quick when they are asked for in about the order in which they stand."""

    def __init__(self, stream: StreamFile) -> None:
        self._stream = stream
        self._ahead: Iterator[Event] = iter(())
        self._next = -1
        self._recent: OrderedDict[int, Event] = OrderedDict()

    def at(self, seq: int) -> Event:
        """One event, content not resolved. Raises IndexError when there is none that is whole."""
        found = self._recent.get(seq)
        if found is not None:
            return found
        if seq < self._next:
            return self._stream.at(seq)
        if self._next < 0 or seq > self._next + _NEAR:
            self._ahead = self._stream.events(seq)
        for event in self._ahead:
            self._next = event.seq + 1
            self._recent[event.seq] = event
            if len(self._recent) > _NEAR:
                self._recent.popitem(last=False)
            if event.seq >= seq:
                break
        return self._recent[seq] if seq in self._recent else self._stream.at(seq)


def _without_content(event: Event) -> dict[str, Json]:
    """The payload without what was said."""
    said = content_of(event.type)

    def kept(node: dict[str, Json], prefix: str) -> dict[str, Json]:
        out: dict[str, Json] = {}
        for key, value in node.items():
            if prefix + key in said and not (isinstance(value, dict) and "$off" in value):
                continue
            out[key] = kept(value, f"{prefix}{key}.") if key in _HOLDERS and isinstance(value, dict) else value
        return out

    return kept(event.payload, "") if said else event.payload


def _plain(value: Json) -> Json:
    """A list that was handed over as JSON text, as a list."""
    if not isinstance(value, RawList):
        return value
    try:
        return [value.element(item) for item in json.loads(value.text)]
    except (ValueError, TypeError, RecursionError):
        return value.text


def _as_sent(value: Json) -> Json:
    """A value without the marks of canonical form (``$int``, ``$$key`` …), as far as JSON can say it."""
    return restore(value) if _has_marks(value) else value


def _has_marks(value: Json) -> bool:
    """Is there any key that begins with ``$``? Four times faster than a copy, and most values have none."""
    stack = [value]
    while stack:
        at = stack.pop()
        if type(at) is dict:
            if any(key[:1] == "$" for key in at):
                return True
            at = at.values()
        elif type(at) is not list:
            continue
        stack.extend(x for x in at if type(x) is dict or type(x) is list)
    return False
