"""What receives node records: in memory, or one JSON line each."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from otel_agentrec.journal.ownfile import identity
from otel_agentrec.records import NodeIoRecord, NodeType

__all__ = ["InMemoryIoCaptureSink", "JsonlIoCaptureSink", "in_cause_order"]


def in_cause_order(records: Iterable[NodeIoRecord], node_type: NodeType | str | None = None) -> list[NodeIoRecord]:
    """The records of one type (or all), stably sorted by their start.

    A record whose start is not known stays behind the one that was captured before it.
    """
    keyed: list[tuple[int, NodeIoRecord]] = []
    at = 0
    for record in records:
        at = record.started_at_epoch_ms if record.started_at_epoch_ms is not None else at
        keyed.append((at, record))
    keyed.sort(key=lambda pair: pair[0])
    return [r for _, r in keyed if node_type is None or r.node_type == node_type]


def _current(records: Iterable[NodeIoRecord]) -> list[NodeIoRecord]:
    """Each record once, as it was told last, in the order of first telling; spans that were merged away are gone."""
    told: dict[str, NodeIoRecord] = {}
    for n, record in enumerate(records):
        told[record.record_id or f"#{n}"] = record
    merged = {span for record in told.values() for span in record.merged_span_ids}
    return [r for r in told.values() if r.span_id not in merged]


class InMemoryIoCaptureSink:
    """Keeps records in memory. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: list[NodeIoRecord] = []

    def capture(self, record: NodeIoRecord) -> None:
        """Take one record; told again with the same ``record_id`` it replaces the earlier telling."""
        with self._lock:
            self._told.append(record)

    def records(self, node_type: NodeType | str | None = None) -> list[NodeIoRecord]:
        """The records, or those of one type, in cause order."""
        return in_cause_order(self._all(), node_type)

    def find(self, node_id: str) -> NodeIoRecord | None:
        """The first captured record with this node id."""
        return next((r for r in self._all() if r.node_id == node_id), None)

    def size(self) -> int:
        return len(self._all())

    def clear(self) -> None:
        with self._lock:
            self._told.clear()

    def close(self) -> None:
        """Nothing to do: the records stay readable."""

    def _all(self) -> list[NodeIoRecord]:
        with self._lock:
            self._told = _current(self._told)
            return list(self._told)


class JsonlIoCaptureSink:
    """Appends whole records to a file, one JSON object per line, and reads them back. Thread-safe.

    Lines are only ever appended, each with a single write; a last line that a crash tore is closed first, so that it
    spoils no further one. Reading passes over lines that are no record and counts them in ``skipped``.

    Args:
        path: the file; made with its directories when the first record comes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.skipped = 0
        """Lines that the last reading could not use."""
        self._lock = threading.Lock()
        self._fd: int | None = None
        self._pid = 0
        self._file: tuple[int, int] | None = None

    def capture(self, record: NodeIoRecord) -> None:
        """Append one record. Raises OSError when the file can't be written."""
        text = json.dumps(record.to_json(), ensure_ascii=False, separators=(",", ":"), default=str)
        line = text.encode("utf-8", "backslashreplace") + b"\n"  # a lone surrogate becomes its JSON escape
        with self._lock:
            fd = self._open()
            written = os.write(fd, line)
            while written < len(line):
                written += os.write(fd, line[written:])

    def records(self, node_type: NodeType | str | None = None) -> list[NodeIoRecord]:
        """The records in the file, or those of one type, in cause order."""
        return in_cause_order(self._load(), node_type)

    def find(self, node_id: str) -> NodeIoRecord | None:
        """The first record in cause order with this node id."""
        return next((r for r in self.records() if r.node_id == node_id), None)

    def size(self) -> int:
        return len(self._load())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> list[NodeIoRecord]:
        """The records of a file as they were captured, each as it was told last; an absent file holds none."""
        return cls(path)._load()

    def close(self) -> None:
        with self._lock:
            if self._fd is not None and self._ours():
                os.close(self._fd)
            self._fd = None

    def _open(self) -> int:
        if self._fd is not None and self._ours():
            return self._fd
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        self._fd, self._pid = os.open(self.path, flags, 0o600), os.getpid()
        self._file = identity(self._fd)
        size = os.fstat(self._fd).st_size
        if size:
            os.lseek(self._fd, size - 1, os.SEEK_SET)
            if os.read(self._fd, 1) != b"\n":
                os.write(self._fd, b"\n")
        return self._fd

    def _ours(self) -> bool:
        """Whether the descriptor is of this process, and still of this file: a program may close it, and open its own."""
        return self._fd is not None and self._pid == os.getpid() and identity(self._fd) == self._file

    def _load(self) -> list[NodeIoRecord]:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            self.skipped = 0
            return []
        found: list[NodeIoRecord] = []
        skipped = 0
        for line in raw.split(b"\n"):
            if not line.strip():
                continue
            try:
                data = json.loads(line)
                if not isinstance(data, dict):
                    raise ValueError("no record")
                found.append(NodeIoRecord.from_json(data))
            except (ValueError, TypeError, RecursionError):
                skipped += 1
        self.skipped = skipped
        return _current(found)
