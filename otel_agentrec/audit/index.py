"""What the index, the log of logs, says about the streams: opened, sealed, pruned, erased."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from otel_agentrec.audit.structure import Structure
from otel_agentrec.journal.check import Checked, Fault, check_stream

__all__ = ["IndexFacts", "Listed", "read_index"]

Json = Any


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of the index: ``hash`` of a stream's first line (opened) or of its last (sealed, with ``size``)."""

    hash: str
    size: int
    at: int


@dataclass(slots=True)
class IndexFacts:
    """The valid prefix of the index, read up to one instant.

    Args:
        checked: its chain; ``structured``: its events are in our envelope.
        opened, sealed, pruned: by stream name. erased: (stream -> {(seq, i)}).
        disputed: streams that were listed twice with different hashes, and the line that says so.
    """

    checked: Checked
    structured: bool = False
    opened: dict[str, Listed] = field(default_factory=dict)
    sealed: dict[str, Listed] = field(default_factory=dict)
    pruned: set[str] = field(default_factory=set)
    erased: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    disputed: dict[str, int] = field(default_factory=dict)


def read_index(path: Path, hashes: Collection[int] = ()) -> IndexFacts:
    """Verify the index and take in what it lists.

    Args:
        hashes: sizes whose head is wanted (in ``checked.hashes``).

    Raises:
        RecordingUnreadable: it can't be read.
    """
    structure = Structure("index", named=True)
    facts = IndexFacts(Checked())

    def observe(index: int, offset: int, e: bytes, hash: str) -> Fault | None:
        fault = structure(index, offset, e, hash)
        if fault is None and structure.applies:
            _take(facts, index, orjson.loads(e))
        return fault

    facts.checked = check_stream(path, observe=observe, hashes=hashes)
    facts.structured = structure.applies
    return facts


def _take(facts: IndexFacts, at: int, event: dict[str, Json]) -> None:
    payload = event["payload"]
    stream, hash, size = payload.get("stream"), payload.get("hash"), payload.get("size")
    if not isinstance(stream, str):
        return
    type_ = event["type"]
    if type_ == "OPENED" and isinstance(hash, str):
        _list(facts, facts.opened, stream, Listed(hash, 1, at))
    elif type_ == "SEALED" and isinstance(hash, str) and type(size) is int:
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
