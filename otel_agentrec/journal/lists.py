"""Splices: a list that mostly repeats earlier lists of the same stream is stored as ranges of them, plus what is new.

A chat history is sent again on every call; stored whole it grows with the square of the run. Here each list is compared
with the newest lists of the same conversation:

1. A :class:`RawList` is compared as text at the last common element boundary; only what follows is parsed.
2. Each further element is looked up by digest: first as the continuation of a run in a recent list, then as an element
   that any earlier event of the conversation owns. What is found nowhere becomes a new cell.

Everything in this module is a cache: it can be dropped at any time, and the next list is then stored whole once.
Entries are immutable and only added after their event was written, so that readers need no lock.
"""

from __future__ import annotations

import json
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from otel_agentrec.journal.canonical import canonical_each
from otel_agentrec.journal.facts import RawList

__all__ = ["ListCache", "ListDraft", "Owner", "parse_elements", "parsed"]

Json = Any
MAX_DEPTH = 64
"""A list that would need more hops than this to be resolved points at the owning events instead."""
MAX_WEIGHT = 16 << 20
RECENT = 8
_BLANK = re.compile(r"[ \t\n\r]*")


class Owner(NamedTuple):
    """Where an element physically stands: element ``at`` of the list at ``path`` in event ``seq``."""

    seq: int
    at: int
    path: str


@dataclass(frozen=True, slots=True, eq=False)
class StoredList:
    """A list as event ``seq`` holds it. ``ends``: end offset of each element in ``text`` (for RawLists)."""

    seq: int
    path: str
    depth: int
    digests: list[bytes]
    owners: list[Owner]
    text: str | None = None
    ends: list[int] = field(default_factory=list)
    positions: dict[bytes, int] = field(default_factory=dict)

    def position(self, digest: bytes) -> int | None:
        if not self.positions and self.digests:
            self.positions.update((d, i) for i, d in enumerate(self.digests))
        return self.positions.get(digest)

    @property
    def weight(self) -> int:
        return (len(self.text) if self.text else 0) + 160 * len(self.digests)


class Run(NamedTuple):
    """Elements ``start`` to ``stop`` of an earlier list."""

    seq: int
    start: int
    stop: int
    path: str
    depth: int


@dataclass(slots=True)
class ListDraft:
    """A list ready to be written. ``items``: a Run, or the canonical bytes of a new element, in list order."""

    path: str
    items: list[Run | bytes]
    digests: list[bytes]
    owners: list[Owner | None]
    """None for elements that are new in this list."""
    text: str | None
    ends: list[int]

    @property
    def length(self) -> int:
        return len(self.digests)

    def stored(self, seq: int) -> StoredList:
        depth = max((item.depth for item in self.items if isinstance(item, Run)), default=0)
        owners = [own or Owner(seq, i, self.path) for i, own in enumerate(self.owners)]
        return StoredList(seq, self.path, depth, self.digests, owners, self.text, self.ends)


class _Shelf:
    """What one conversation has stored: its newest lists by path, and the owner of each element."""

    __slots__ = ("lists", "owners", "weight")

    def __init__(self) -> None:
        self.lists: dict[str, tuple[StoredList, ...]] = {}
        self.owners: dict[bytes, Owner] = {}
        self.weight = 0

    def put(self, draft: ListDraft, stored: StoredList) -> None:
        """Keep a list in place of those that it continues."""
        first = draft.items[0] if draft.items else None
        older = self.lists.get(draft.path, ())
        if isinstance(first, Run):
            older = tuple(
                old
                for old in older
                if (old.seq, 0, len(old.digests)) != (first.seq, first.start, first.stop) or old.path != first.path
            )
        self.lists[draft.path] = (stored, *older)[:RECENT]
        for digest, before, own in zip(draft.digests, draft.owners, stored.owners, strict=True):
            if before is None:
                self.owners[digest] = own

    def drop_oldest_list(self) -> bool:
        """Drop one list; the newest of each path stays."""
        path = max(self.lists, key=lambda path: len(self.lists[path]))
        kept = self.lists[path]
        self.lists[path] = kept[:-1] if len(kept) > 1 else kept
        return len(kept) > 1

    def drop_texts(self) -> bool:
        """Drop the texts: what follows is then parsed whole, but still not stored twice."""
        had = any(stored.text for kept in self.lists.values() for stored in kept)
        for path, kept in self.lists.items():
            self.lists[path] = tuple(replace(stored, text=None, ends=[]) for stored in kept)
        return had

    def weigh(self) -> int:
        """Weigh anew.

        Returns:
            by how much the weight has changed.
        """
        before = self.weight
        self.weight = sum(s.weight for kept in self.lists.values() for s in kept) + 200 * len(self.owners)
        return self.weight - before


class ListCache:
    """The lists that one stream has stored. ``key`` groups what may share content: (session, scope).

    Without a session the trace is not part of the key: many programs start a new trace for each call of one conversation.
    """

    def __init__(self, max_weight: int = MAX_WEIGHT) -> None:
        self._shelves: OrderedDict[object, _Shelf] = OrderedDict()
        self._with_text: OrderedDict[object, None] = OrderedDict()
        self._max_weight = max_weight
        self._weight = 0

    def draft(self, key: object, path: str, source: Sequence[Json] | RawList) -> ListDraft:
        """Compare a list with what was stored. Lock-free: only reads entries that are already written.

        Raises:
            ValueError: ``source`` is a RawList whose text is no JSON array.
        """
        shelf = self._shelves.get(key)
        recent = shelf.lists.get(path, ()) if shelf else ()
        if isinstance(source, RawList):
            base, common = _common_prefix(recent, source.text)
            ends = base.ends[:common] if base else []
            parsed = parse_elements(source.text, ends[-1] if ends else None)
            ends += [end for _, end in parsed]
            values = canonical_each([source.element(value) for value, _ in parsed])
            text: str | None = source.text
        else:
            base, common, ends, text = None, 0, [], None
            values = canonical_each(list(source))
        digests = base.digests[:common] if base else []
        owners: list[Owner | None] = list(base.owners[:common]) if base else []
        items: list[Run | bytes] = [Run(base.seq, 0, common, path, base.depth + 1)] if base and common else []
        _match(values, digests, owners, items, recent, shelf.owners if shelf else {}, base)
        draft = ListDraft(path, items, digests, owners, text, ends)
        if any(isinstance(i, Run) and i.depth > MAX_DEPTH for i in items):
            draft.items = _by_owner(draft, values, common)
        return draft

    def add(self, key: object, seq: int, drafts: Sequence[ListDraft]) -> None:
        """Remember lists whose event was written. Called under the writer's lock."""
        shelf = self._shelves.pop(key, None) or _Shelf()
        for draft in drafts:
            shelf.put(draft, draft.stored(seq))
        self._shelves[key] = shelf
        self._with_text[key] = None
        self._with_text.move_to_end(key)
        self._weight += shelf.weigh()
        while self._weight > self._max_weight and self._drop_something(shelf):
            pass

    def _drop_something(self, current: _Shelf) -> bool:
        """One step back to the bound, the cheapest first: another conversation's texts, older lists of this one, whole
        conversations, the texts of this one. Its newest lists stay, or the next call would store them whole again."""
        oldest = next(iter(self._with_text), None)
        shelf = self._shelves[oldest] if oldest is not None else current
        if shelf is not current:
            del self._with_text[oldest]
            shelf.drop_texts()
        elif current.drop_oldest_list():
            shelf = current
        elif len(self._shelves) > 1:
            dropped, shelf = self._shelves.popitem(last=False)
            self._with_text.pop(dropped, None)
            self._weight -= shelf.weight
            return True
        elif not current.drop_texts():
            return False
        self._weight += shelf.weigh()
        return True


def parsed(value: Json) -> Json:
    """What a RawList holds, its text where that is no list; anything else as it is."""
    if not isinstance(value, RawList):
        return value
    try:
        return [value.element(item) for item, _ in parse_elements(value.text)]
    except (ValueError, RecursionError):
        return value.text


def parse_elements(text: str, after: int | None = None) -> list[tuple[Json, int]]:
    """The elements of a JSON array text from offset ``after`` (the end of an element; None: from the start).

    Integers stay exact; a number beyond the range of a double stays text.

    Raises:
        ValueError: the text is no JSON array.
        RecursionError: it is nested deeper than the interpreter allows.
    """
    out: list[tuple[Json, int]] = []
    if after is None:
        at = _skip(text, 0)
        if text[at : at + 1] != "[":
            raise ValueError("no JSON array")
        at = _skip(text, at + 1)
        if text[at : at + 1] == "]":
            return _finish(text, at + 1, out)
    else:
        at = _skip(text, after)
        if text[at : at + 1] == "]":
            return _finish(text, at + 1, out)
        at = _separator(text, at)
    while True:
        try:
            value, end = _SCAN(text, at)
        except StopIteration as stop:
            raise ValueError(f"no JSON value at offset {stop.value}") from None
        out.append((value, end))
        if text.startswith(", {", end):  # as most writers have it
            at = end + 2
        elif text.startswith(",{", end):
            at = end + 1
        else:
            at = _skip(text, end)
            if text[at : at + 1] == "]":
                return _finish(text, at + 1, out)
            at = _separator(text, at)


def _number(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


_SCAN: Callable[[str, int], tuple[Json, int]] = json.JSONDecoder(parse_float=_number, strict=False).scan_once  # type: ignore[attr-defined]


def _skip(text: str, at: int) -> int:
    m = _BLANK.match(text, at)
    return m.end() if m else at


def _separator(text: str, at: int) -> int:
    if text[at : at + 1] != ",":
        raise ValueError(f"no comma at offset {at}")
    return _skip(text, at + 1)


def _finish(text: str, at: int, out: list[tuple[Json, int]]) -> list[tuple[Json, int]]:
    if _skip(text, at) != len(text):
        raise ValueError(f"text after the array at offset {at}")
    return out


def _common_prefix(recent: Sequence[StoredList], text: str) -> tuple[StoredList | None, int]:
    """The stored list that shares most leading elements with a text, and how many."""
    best, count = None, 0
    for stored in recent:
        if stored.text is None or len(stored.ends) <= count:
            continue
        if count and not _shares(stored, text, count + 1):
            continue
        low, high = count, len(stored.ends)
        while low < high:  # the longest boundary up to which both texts are equal
            middle = high if low == count else (low + high + 1) // 2
            if _shares(stored, text, middle):
                low = middle
            else:
                high = middle - 1
        if low > count:
            best, count = stored, low
    return best, count


def _shares(stored: StoredList, text: str, count: int) -> bool:
    """Whether both texts are equal up to the end of element ``count`` - 1, and the element ends there in ``text`` too."""
    end = stored.ends[count - 1]
    assert stored.text is not None
    return (
        len(text) > end
        and stored.text[end - 1] in '}]"'
        and text[end] in ",] \t\n\r"
        and text[:end] == stored.text[:end]
    )


def _digest(value: bytes) -> bytes:
    return blake2b(value, digest_size=16).digest()


def _match(
    values: Sequence[bytes],
    digests: list[bytes],
    owners: list[Owner | None],
    items: list[Run | bytes],
    recent: Sequence[StoredList],
    known: dict[bytes, Owner],
    base: StoredList | None,
) -> None:
    """Append to ``items`` a run or a new element for each value, continuing runs where possible."""
    lists = [base, *(s for s in recent if s is not base)] if base else list(recent)
    current: StoredList | None = base
    for value in values:
        digest = _digest(value)
        digests.append(digest)
        last = items[-1] if items else None
        if (
            isinstance(last, Run)
            and current is not None
            and last.stop < len(current.digests)
            and current.digests[last.stop] == digest
        ):
            items[-1] = last._replace(stop=last.stop + 1)
            owners.append(current.owners[last.stop])
            continue
        owner = known.get(digest)
        owners.append(owner)
        found = _find(lists, digest) if owner else None
        if found:
            current, at = found
            items.append(Run(current.seq, at, at + 1, current.path, current.depth + 1))
            owners[-1] = current.owners[at]
        else:
            current = None
            items.append(Run(owner.seq, owner.at, owner.at + 1, owner.path, 1) if owner else value)


def _find(lists: Sequence[StoredList], digest: bytes) -> tuple[StoredList, int] | None:
    for stored in lists:
        at = stored.position(digest)
        if at is not None:
            return stored, at
    return None


def _by_owner(draft: ListDraft, values: Sequence[bytes], common: int) -> list[Run | bytes]:
    """The same list as ranges of the events that own its elements (one hop)."""
    out: list[Run | bytes] = []
    for i, owner in enumerate(draft.owners):
        last = out[-1] if out else None
        if owner is None:
            out.append(values[i - common])
        elif isinstance(last, Run) and (last.seq, last.stop, last.path) == owner:
            out[-1] = last._replace(stop=last.stop + 1)
        else:
            out.append(Run(owner.seq, owner.at, owner.at + 1, owner.path, 1))
    return out
