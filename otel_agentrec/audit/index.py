"""What the index, the log of logs, says about the streams: opened, sealed, pruned, erased."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import orjson

from otel_agentrec.audit.structure import Structure, printable
from otel_agentrec.journal.check import Checked, Fault, check_stream
from otel_agentrec.journal.reader import SESSIONS, StreamFile

__all__ = ["TRIES", "IndexFacts", "contradiction", "read_index", "stamp", "steady_index", "tip_fault", "tip_size"]

Json = Any
TRIES = 4
"""How often a fault in a file that changes meanwhile is looked at again."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of the index: ``hash`` of a stream's first line (opened) or of its last (sealed, with ``size``).

    ``at``: line of the index.
    """

    hash: str
    size: int
    at: int


@dataclass(slots=True)
class IndexFacts:
    """The valid prefix of the index, read up to one instant.

    Args:
        checked: its chain; ``structured``: its events are in our envelope.
        opened, sealed, pruned: by stream name. resealed: earlier ends of sessions, which are closed and gone on with. erased: stream -> {(seq, i)}.
        disputed: streams that were listed twice with different hashes, and the line that says so.
    """

    checked: Checked
    structured: bool = False
    opened: dict[str, Listed] = field(default_factory=dict)
    sealed: dict[str, Listed] = field(default_factory=dict)
    resealed: dict[str, list[Listed]] = field(default_factory=dict)
    pruned: set[str] = field(default_factory=set)
    erased: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    disputed: dict[str, int] = field(default_factory=dict)

    def ends(self, stream: str) -> list[Listed]:
        """Every end that was listed of a stream, the oldest first."""
        last = self.sealed.get(stream)
        return [*self.resealed.get(stream, ()), *([last] if last is not None else ())]


def steady_index(stream: StreamFile, hashes: Collection[int] = ()) -> IndexFacts:
    """The index as it stands now; while somebody writes to it, a fault or torn tail is looked at again.

    Args:
        hashes: sizes whose head is wanted (in ``checked.hashes``).

    Raises:
        RecordingUnreadable: it can't be read.
    """
    for attempt in range(1, TRIES + 1):
        before = stamp(stream)
        facts = read_index(stream, hashes)
        steady = facts.checked.fault is None and not facts.checked.torn
        if steady or attempt == TRIES or (stamp(stream) == before and not stream.is_live()):
            break
        time.sleep(0.02)
    return facts


def read_index(stream: StreamFile, hashes: Collection[int] = ()) -> IndexFacts:
    """Verify the index once and take in what it lists."""
    structure = Structure(stream.name, named=True)
    facts = IndexFacts(Checked())

    def observe(index: int, offset: int, e: bytes, hash: str) -> Fault | None:
        fault = structure(index, offset, e, hash)
        if fault is None and structure.applies:
            _take(facts, index, orjson.loads(e))
        return fault

    facts.checked = check_stream(stream.path, observe=observe, hashes=hashes)
    facts.structured = structure.applies and facts.checked.size > 0
    return facts


def stamp(stream: StreamFile) -> tuple[tuple[int, int, int], ...]:
    """What tells that a stream's files have changed."""
    stamps = []
    for path in (stream.path, stream.content_path):
        try:
            stat = path.stat()
            stamps.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except OSError:
            stamps.append((0, 0, 0))
    return tuple(stamps)


def contradiction(index: IndexFacts, stream: StreamFile, checked: Checked) -> Fault | None:
    """What the index, as it was before the stream was read, says against a stream that is whole in itself."""
    opened, sealed = index.opened.get(stream.name), index.sealed.get(stream.name)
    if stream.name in index.disputed:
        hint = f"the index lists the stream twice with different hashes (line {index.disputed[stream.name]})"
        return Fault("equivocation", 0, 0, hint)
    if opened is not None and checked.size and opened.hash != checked.first_hash:
        hint = f"the stream was written anew: the index (line {opened.at}) knows another first line"
        return Fault("history_rewritten", 0, 0, hint, 0, printable(opened.hash), checked.first_hash)
    last = sealed or opened
    if last is not None and checked.size < last.size:
        count = last.size - checked.size
        hint = f"{count} record{'s' * (count > 1)} missing at the end: the index (line {last.at}) knows {last.size}"
        return Fault("truncated", checked.size, checked.end, hint, None, str(last.size), str(checked.size))
    for end in index.ends(stream.name):
        if checked.hashes.get(end.size) != end.hash:
            hint = f"the stream was written anew: the index (line {end.at}) knows another last line"
            found = checked.hashes.get(end.size)
            return Fault("history_rewritten", max(0, end.size - 1), 0, hint, None, printable(end.hash), found)
    if sealed is not None and checked.size > sealed.size and not stream.named:
        hint = f"events were added after the close that the index (line {sealed.at}) knows"
        return Fault("close_count_mismatch", sealed.size, 0, hint, None, str(sealed.size), str(checked.size))
    return None


def tip_fault(witness: str, tip: Json, index: Checked) -> Fault | None:
    """What a tip of the index that a stream names in its first line says against the index as it is now.

    Args:
        witness: the stream's file. tip: ``{size, hash}`` or None.
        index: read after the stream was.
    """
    size = tip_size(tip)
    if not size:
        return None
    expected = printable(tip.get("hash"))
    if size > index.size:
        hint = f"the index was put back to an older state: {witness} saw {size} lines, {index.size} are there"
        return Fault("rolled_back", index.size, index.end, hint, None, str(size), str(index.size))
    if index.hashes.get(size) != tip.get("hash"):
        hint = f"the index was written anew: {witness} saw another line {size - 1}"
        return Fault("history_rewritten", size - 1, 0, hint, size - 1, expected, index.hashes.get(size))
    return None


def tip_size(tip: Json) -> int:
    """The size that a tip names; 0 when it names none."""
    size = tip.get("size") if isinstance(tip, dict) else 0
    return size if type(size) is int and size > 0 else 0


def _take(facts: IndexFacts, at: int, event: dict[str, Json]) -> None:
    payload = event["payload"]
    stream, hash, size = payload.get("stream"), payload.get("hash"), payload.get("size")
    if not isinstance(stream, str):
        return
    type_ = event["type"]
    if type_ == "OPENED" and isinstance(hash, str):
        _list(facts, facts.opened, stream, Listed(hash, 1, at))
    elif type_ == "SEALED" and isinstance(hash, str) and type(size) is int:
        known = facts.sealed.get(stream)
        if known is not None and size > known.size and stream.startswith(f"{SESSIONS}/"):
            facts.resealed.setdefault(stream, []).append(facts.sealed.pop(stream))
        _list(facts, facts.sealed, stream, Listed(hash, size, at))
    elif type_ == "PRUNED":
        facts.pruned.add(stream)
    elif type_ == "ERASED":
        facts.erased.setdefault(stream, set()).update(_cells(payload.get("cells")))


def _list(facts: IndexFacts, table: dict[str, Listed], stream: str, entry: Listed) -> None:
    known = table.setdefault(stream, entry)
    if (known.hash, known.size) != (entry.hash, entry.size):
        facts.disputed.setdefault(stream, entry.at)


def _cells(cells: Json) -> set[tuple[int, int]]:
    """The cells an ERASED event names: ``[[seq, i], ...]``."""
    pairs = cells if isinstance(cells, list) else []
    return {
        (p[0], p[1]) for p in pairs if isinstance(p, list) and len(p) == 2 and type(p[0]) is int and type(p[1]) is int
    }
