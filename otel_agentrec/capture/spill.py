"""Log records that wait for their span, kept out of memory."""

from __future__ import annotations

import pickle
import tempfile
from collections import defaultdict
from types import TracebackType

from otel_agentrec.capture.spans import LogView

__all__ = ["LogSpill"]

IN_MEMORY = 16 << 20
MAX_COMPARED = 64


class LogSpill:
    """Log records by the span that they belong to.

    Content of logs can be as large as the files; beyond 16 MiB it waits in a temporary file without a name. Only what this
    object wrote itself is ever unpickled.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed in __exit__
        self._places: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._odd: dict[tuple[str, str], list[LogView]] = defaultdict(list)

    def add(self, log: LogView) -> None:
        """Keep a record that names its span. Raises OSError when the temporary directory is full."""
        key = (log.trace_id or "", log.span_id or "")
        try:
            data = pickle.dumps(tuple(log), protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, RecursionError, TypeError):
            self._odd[key].append(log)
            return
        self._places[key].append(self._file.seek(0, 2))
        self._file.write(data)

    def of(self, trace_id: str, span_id: str) -> list[LogView]:
        """The records of one span, in the order in which they came. One that was exported again counts once."""
        key = (trace_id, span_id)
        logs = list(self._odd.get(key, ()))
        for place in self._places.get(key, ()):
            self._file.seek(place)
            logs.append(LogView(*pickle.load(self._file)))
        return _once(logs)

    def __enter__(self) -> LogSpill:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


def _once(logs: list[LogView]) -> list[LogView]:
    """Without what a repeated export brought: equal records of the same nanosecond. Without a time nothing tells them apart
    from two equal messages."""
    kept: list[LogView] = []
    known: defaultdict[tuple[str, int | None, int | None], list[LogView]] = defaultdict(list)
    for log in logs:
        if log.observed_ns is None and log.ts_ns is None:
            kept.append(log)
            continue
        same_time = known[log.event_name, log.observed_ns, log.ts_ns]
        if not any(_equal(log, other) for other in same_time[-MAX_COMPARED:]):
            kept.append(log)
            same_time.append(log)
    return kept


def _equal(log: LogView, other: LogView) -> bool:
    try:
        return log == other
    except RecursionError:
        return False
