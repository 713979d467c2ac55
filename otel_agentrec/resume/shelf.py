"""Answers on a shelf: put there, found by key, handed out; under one secret, one inert list and one way to match."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.records import NodeType
from otel_agentrec.resume.entries import Entry, Hit, Side
from otel_agentrec.resume.requests import Request, Store

__all__ = ["Asked", "Match", "Shelf"]

Match = Literal["content", "occurrence"]
_log = logging.getLogger("otel_agentrec")


class Asked(NamedTuple):
    """A request with its keys, and those of the second look-up."""

    request: Request
    keys: tuple[str, ...]
    aliases: tuple[str, ...]


class Shelf:
    """The answers of one cache. Thread-safe."""

    def __init__(self, match: Match, ring: KeyRing, inert: tuple[str, ...]) -> None:
        self.match, self.ring, self.inert = match, ring, inert
        self.store = Store()
        self.lock = threading.Lock()
        self._sides = {NodeType.MODEL: Side(), NodeType.TOOL: Side()}

    def __len__(self) -> int:
        return sum(len(side.order) for side in self._sides.values())

    def entries(self, kind: NodeType) -> list[Entry]:
        """All answers of one kind, the oldest first."""
        with self.lock:
            return list(self._sides[kind].order.values())

    def read(self, read: Callable[[object], Request], asked: object) -> Asked | None:
        """A request with its keys; None when it has none: the call is made, and not kept."""
        try:
            request = read(asked)
            return Asked(request, *self._keys(request))
        except Exception as error:
            _log.debug("no key for a %s: %r", type(asked).__name__, error)
            return None

    def take(self, kind: NodeType, what: Asked | None) -> Hit | None:
        """The answer to a request; under ``occurrence`` it is handed out once."""
        if what is None:
            return None
        with self.lock:
            for n, key in enumerate((*what.keys, *what.aliases)):
                entries = self._sides[kind].by_key.get(key, [])
                if self.match == "occurrence":
                    entries = [e for e in entries if not e.used]
                    call_id = what.request.call_id
                    entries = [e for e in entries if call_id is not None and e.call_id == call_id] or entries
                if entries:
                    entry = entries[0]
                    entry.used = True
                    return Hit(entry.value, n >= len(what.keys), entry.label)
        return None

    def freeze(self, kind: NodeType, what: Asked | None) -> Entry | None:
        """What is to be kept of a call, its request as it is now; the value comes later."""
        if what is None:
            return None
        try:
            held = self.store.hold(what.request)
        except Exception as error:
            _log.debug("not kept, a %s: %r", what.request.kind, error)
            return None
        return Entry(kind, None, what.keys, what.aliases, held, what.request.call_id, used=True)

    def put(self, entry: Entry) -> None:
        """Put in what this process did. A call that its maker and its span tell of is one."""
        with self.lock:
            side = self._sides[entry.kind]
            key = entry.keys[0]
            mine, other = (side.told, side.direct) if entry.told else (side.direct, side.told)
            mine[key] += 1
            there = side.by_key.get(key, ())
            if self.match == "content":
                if not there:
                    side.add(entry)
                elif not entry.told or there[0].told:
                    there[0].value, there[0].told = entry.value, entry.told
                    there[0].held = entry.held or there[0].held
            elif mine[key] > other[key]:
                side.add(entry)
            elif not entry.told:  # its span came first: what the caller got is better than what telemetry tells
                for span in [e for e in there if e.told][:1]:
                    span.value, span.told, span.held = entry.value, False, entry.held

    def add(self, entry: Entry) -> None:
        """Put in what an earlier process did; its keys are made under this secret."""
        with self.lock:
            side = self._sides[entry.kind]
            if self.match == "occurrence" or not any(side.by_key.get(key) for key in entry.keys):
                side.add(entry)

    def restore(self, kind: NodeType, request: Request, value: Any) -> None:
        """Put in what an earlier process did, keyed anew. Raises NoKey."""
        keys, aliases = self._keys(request)
        self.add(Entry(kind, value, keys, aliases, self.store.hold(request), request.call_id))

    def remove_last(self, kind: NodeType) -> bool:
        """Take away the answer that came last. False: there is none."""
        with self.lock:
            side = self._sides[kind]
            if not side.order:
                return False
            side.remove(next(reversed(side.order.values())))
            return True

    def rewind(self) -> None:
        """Every answer may be handed out once more."""
        with self.lock:
            for side in self._sides.values():
                for entry in side.order.values():
                    entry.used = False

    def adopt(self, ring: KeyRing) -> None:
        """Make keys under another secret; what is held without its request can't be found any more, and goes."""
        with self.lock:
            if ring.key_id == self.ring.key_id:
                return
            self.ring = ring
            for kind, side in self._sides.items():
                self._sides[kind] = Side()
                for entry in side.order.values():
                    if entry.held is not None:
                        entry.keys, entry.aliases = self._keys(entry.held.request())
                        self._sides[kind].add(entry)

    def _keys(self, request: Request) -> tuple[tuple[str, ...], tuple[str, ...]]:
        key, alias = request.keys(self.ring, self.inert)
        return (key,), (alias,) if alias else ()
