"""The hash chain: how a line is sealed and split, and two event logs, as ai4j has them.

A line is ``{"event":E,"hash":H,"prevHash":P}`` in canonical bytes, with H = lower-case hex of
sha256(utf8(P) + "|" + E). The frame around E has a fixed length, so E is sliced out, never parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.journal.plain import plain_event

__all__ = [
    "GENESIS",
    "PREFIX_LEN",
    "SUFFIX_LEN",
    "ChainVerification",
    "HashChainedEventLog",
    "InMemoryEventLog",
    "Link",
    "link_hash",
    "seal",
    "split",
]

GENESIS = "0" * 64
"""``prevHash`` of the first line."""

_PREFIX = b'{"event":'
_SUFFIX = re.compile(rb',"hash":"([0-9a-f]{64})","prevHash":"([0-9a-f]{64})"\}')
PREFIX_LEN = 9
SUFFIX_LEN = 153


def link_hash(prev_hash: str, e: bytes) -> str:
    """The hash (64 lower-case hex) that links the canonical event bytes ``e`` to the line before it."""
    return sha256(prev_hash.encode() + b"|" + e).hexdigest()


def seal(prev_hash: str, e: bytes) -> tuple[bytes, str]:
    """The line of the canonical event bytes ``e``, newline included, and its hash."""
    hash_ = link_hash(prev_hash, e)
    return b'{"event":%b,"hash":"%b","prevHash":"%b"}\n' % (e, hash_.encode(), prev_hash.encode()), hash_


def split(line: bytes) -> tuple[bytes, str, str] | None:
    """``(E, hash, prevHash)`` of a line without its newline; None when a byte of the frame is wrong.

    Neither the hash nor E is checked.
    """
    end = len(line) - SUFFIX_LEN
    if end <= PREFIX_LEN or not line.startswith(_PREFIX):
        return None
    frame = _SUFFIX.fullmatch(line, end)
    if frame is None:
        return None
    return line[PREFIX_LEN:end], frame[1].decode(), frame[2].decode()


class Link(NamedTuple):
    """One sealed event: the event as the caller gave it, the hash before it, its own hash (64 hex each)."""

    event: object
    prev_hash: str
    hash: str


class ChainVerification(NamedTuple):
    """What :meth:`HashChainedEventLog.verify_chain` found; ``first_broken_index`` counts from 0, −1 = intact."""

    is_valid: bool
    first_broken_index: int


class _Links:
    """Links by index, and the number by which ``sequence`` is ahead of them. Swapped whole, never emptied."""

    __slots__ = ("ahead", "by_index")

    def __init__(self) -> None:
        self.by_index: dict[int, Link] = {}
        self.ahead = 0

    def snapshot(self) -> list[Link]:
        return [self.by_index[i] for i in range(len(self.by_index))]


class InMemoryEventLog:
    """Events in order, in memory, without hashes: the plain twin of :class:`HashChainedEventLog`.

    An event may be any object. It is kept as it is, not copied. Any thread may append, and so may code that interrupts an
    append (a finaliser, a signal handler): no lock is held, a place in the log is taken in one atomic step.
    """

    def __init__(self) -> None:
        self._links = _Links()

    def append(self, event: object) -> Link:
        """Add an event.

        Returns:
            its link (the hashes of a log without a chain are empty).
        """
        return self._append(self._links, event)

    def on_event(self, event: object) -> None:
        """Listener method: :meth:`append` for ``listeners=[log]``."""
        self.append(event)

    @property
    def sequence(self) -> int:
        """Number of the last event, from 1; 0 before the first. After a restore: the largest number of the events."""
        return self._links.ahead + len(self._links.by_index)

    @property
    def links(self) -> list[Link]:
        """The links so far, oldest first (a copy)."""
        return self._links.snapshot()

    @property
    def events(self) -> list[object]:
        """The events so far, oldest first (a copy)."""
        return [link.event for link in self.links]

    def __len__(self) -> int:
        return len(self._links.by_index)

    def __bool__(self) -> bool:
        """True, also of an empty one: ``if log:`` asks whether there is one."""
        return True

    def restore(self, events: Iterable[object]) -> None:
        """Replace everything by these events (or links; their events are taken), sealed anew.

        Stored hashes are not trusted, so a change made between saving and restoring is not seen here: verify the file.
        ``sequence`` becomes the largest ``seq`` or ``sequence`` that an event has, else their number.
        """
        links = _Links()
        for event in events:
            self._append(links, event.event if type(event) is Link else event)
        numbers = [n for link in links.snapshot() if (n := _number_of(link.event)) is not None]
        if numbers:
            links.ahead = max(numbers) - len(links.by_index)
        self._links = links

    def clear(self) -> None:
        """Forget everything."""
        self._links = _Links()

    def _append(self, links: _Links, event: object) -> Link:
        sealed = self._canonical(event)
        while True:
            n = len(links.by_index)
            link = self._link(links.by_index[n - 1] if n else None, event, sealed)
            # Whoever comes first, in this thread or another, has place n; the others link again behind it.
            if links.by_index.setdefault(n, link) is link:
                return link

    def _canonical(self, event: object) -> bytes:
        return b""

    def _link(self, before: Link | None, event: object, sealed: bytes) -> Link:
        return Link(event, "", "")


class HashChainedEventLog(InMemoryEventLog):
    """An event log in which each event is sealed to all events before it.

    ``hash = sha256(prevHash + "|" + canonical(event))``. It shows that recorded events were edited, removed from the middle
    or swapped afterwards; a tail that was cut off, or a chain that was written anew, needs a checkpoint kept elsewhere.

    An event that is JSON is sealed by its RFC 8785 bytes; any other object by its normal form
    (:mod:`otel_agentrec.journal.normal`), an object without a form of its own by its public attributes.
    """

    def verify_chain(self) -> ChainVerification:
        """Compute the chain again from the first event; never raises, whatever an event was replaced by."""
        prev = GENESIS
        for i, link in enumerate(self.links):
            if link.prev_hash != prev or link.hash != link_hash(prev, self._canonical(link.event)):
                return ChainVerification(False, i)
            prev = link.hash
        return ChainVerification(True, -1)

    def tamper_event(self, index: int, replacement: object) -> None:
        """Replace an event without sealing it anew. Only for tests of verification.

        Raises:
            IndexError: there is no such event.
        """
        by_index = self._links.by_index
        if index not in by_index:
            raise IndexError(f"no event {index}: the log holds {len(by_index)}")
        by_index[index] = by_index[index]._replace(event=replacement)

    def _canonical(self, event: object) -> bytes:
        # A digest for what is cut, or a change in it would not be seen; minus zero as RFC 8785 writes it.
        return canonical_any(plain_event(event), cell=True, signed_zero=False)

    def _link(self, before: Link | None, event: object, sealed: bytes) -> Link:
        prev = before.hash if before else GENESIS
        return Link(event, prev, link_hash(prev, sealed))


def _number_of(event: object) -> int | None:
    """The event's own ``seq`` or ``sequence``; None when it has none, or none that is an integer."""
    for name in ("seq", "sequence"):
        try:
            n = event.get(name) if isinstance(event, dict) else getattr(event, name, None)
        except Exception:
            continue
        if type(n) is int:
            return n
    return None
